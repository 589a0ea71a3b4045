// fuzz/seal.hpp: corrects checksums after changes of bytes, like a forger. Random changes
// would never pass them, and the code after the checks would not be tested.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bytes/checksum.hpp"
#include "format/journal.hpp"
#include "format/records/record.hpp"
#include "format/wire/superblock.hpp"
#include "target.hpp"

namespace vellum::fuzz {

inline void put_u64(Bytes& bytes, std::size_t at, std::uint64_t value) {
  if (at + sizeof value <= bytes.size()) std::memcpy(bytes.data() + at, &value, sizeof value);
}

inline format::Uuid uuid_at(View bytes, std::size_t at) {
  format::Uuid id{};
  if (at + id.size() <= bytes.size()) std::memcpy(id.data(), bytes.data() + at, id.size());
  return id;
}

// Structures whose last 8 bytes are the checksum of all bytes before them.
inline void seal_end(Bytes& bytes, std::uint64_t seed) {
  if (bytes.size() < 8) return;
  put_u64(bytes, bytes.size() - 8, base::checksum64(View(bytes).first(bytes.size() - 8), seed));
}

// A record's checksum covers header, hash and payload, with itself as zero. A header that
// states more bytes than exist is not changed.
inline void seal_record(Bytes& bytes, std::uint64_t seed) {
  constexpr std::size_t kChecksumAt = 48;
  format::RecordHeader h;
  if (format::decode_record_header(bytes, h) != nullptr) return;
  const std::uint64_t body =
      format::kRecordHeaderBytes + (h.has_hash ? 32u : 0u) + std::uint64_t{h.stored_bytes};
  if (body > bytes.size()) return;
  put_u64(bytes, kChecksumAt, 0);
  put_u64(bytes, kChecksumAt,
          base::checksum64(View(bytes).first(static_cast<std::size_t>(body)), seed));
}

// A journal frame's checksum covers the header before it and the payload.
inline void seal_frame(Bytes& bytes, std::uint64_t seed) {
  constexpr std::size_t kLengthAt = 24, kChecksumAt = 32;
  if (bytes.size() < format::kFrameHeaderBytes) return;
  std::uint32_t payload = 0;
  std::memcpy(&payload, bytes.data() + kLengthAt, sizeof payload);
  if (payload > bytes.size() - format::kFrameHeaderBytes) return;
  const View all(bytes);
  put_u64(bytes, kChecksumAt,
          base::checksum64(all.first(kChecksumAt), all.subspan(format::kFrameHeaderBytes, payload),
                           seed));
}

}  // namespace vellum::fuzz
