// The nonces of all that an encrypted store wrote on a SimFs, whether or not a crash left it.
//
// The log has each write in full. Writes of packs and journals begin at a multiple of 8 bytes and
// contain whole records and frames; other sealed files are one write.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "format/journal.hpp"
#include "format/records/record.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/number.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::sim {

class NonceWatch {
 public:
  void look(const Log& log) {
    for (const Op& op : log) {
      if (op.kind == Op::OpKind::write) look_at_write(*op.bytes, op.offset);
    }
  }
  std::size_t records = 0, frames = 0, files = 0;  // distinct ones
  // A nonce of two different messages; empty: there is none.
  std::string repeat;

 private:
  using Bytes = std::span<const std::byte>;

  // `message` ends with its seal.
  void note(Bytes message, std::size_t& kind) {
    const auto text = [](Bytes b) {
      return std::string(reinterpret_cast<const char*>(b.data()), b.size());
    };
    const Bytes nonce = message.last(base::kSealBytes).first(base::kNonceBytes);
    const auto [at, is_new] = seen_.emplace(text(nonce), text(message));
    kind += is_new ? 1 : 0;
    if (is_new || at->second == text(message)) return;
    repeat =
        fmt::format("a nonce of messages of {} and {} bytes", at->second.size(), message.size());
  }
  void look_at_write(Bytes write, std::uint64_t offset) {
    if (offset == 0 && write.size() >= 12 &&
        format::number_of(write) == format::kSealedFormatVersion) {
      look_at_front(write);
    }
    for (std::size_t at = (8 - offset % 8) % 8; at + format::kFrameHeaderBytes <= write.size();) {
      const std::size_t bytes = look_at_part(write.subspan(at), offset + at);
      at += bytes == 0 ? 8 : bytes;
    }
  }
  void look_at_front(Bytes file) {
    constexpr std::size_t kJournalSealAt = 512;
    const std::string_view magic(reinterpret_cast<const char*>(file.data()), 8);
    if (magic == format::kJournalMagic) {
      return note(file.first(kJournalSealAt + base::kSealBytes), files);
    }
    for (const char* clear : {format::kPackMagic, format::kSuperblockMagic, format::kKeySlotsMagic,
                              format::kTierIdMagic}) {
      if (magic == clear) return;
    }
    note(file.first(file.size() - 8), files);  // without the checksum
  }
  // The size of the record or frame there; 0: there is none.
  std::size_t look_at_part(Bytes part, std::uint64_t offset) {
    format::RecordHeader h;
    if (format::decode_record_header(part, h) == nullptr && h.offset_bytes == offset && h.sealed) {
      const auto bytes = static_cast<std::size_t>(format::record_body_bytes(h));
      if (bytes > part.size()) return 0;  // a copy in steps: the writer's was whole
      note(part.first(bytes), records);
      return static_cast<std::size_t>(format::record_extent_bytes(h));
    }
    const auto extent = static_cast<std::size_t>(format::frame_extent_at(part));
    if (extent == 0 || extent > part.size()) return 0;
    constexpr std::size_t kPayloadBytesAt = 24;
    std::uint32_t payload_bytes = 0;
    std::memcpy(&payload_bytes, part.data() + kPayloadBytesAt, sizeof payload_bytes);
    note(part.first(format::kFrameHeaderBytes + payload_bytes + base::kSealBytes), frames);
    return extent;
  }

  std::map<std::string, std::string> seen_;
};

}  // namespace vellum::sim
