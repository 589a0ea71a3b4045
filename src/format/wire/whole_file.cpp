#include "format/wire/whole_file.hpp"

#include <cassert>
#include <cstring>

#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/number.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {

std::vector<std::byte> encode_whole_file(const WholeFileKind& kind, std::span<const std::byte> body,
                                         const Uuid& store_id) {
  assert(std::strlen(kind.magic) == 8);
  const std::size_t length = kWholeFileHeaderBytes + body.size() + 8;
  assert(length <= UINT32_MAX);
  std::vector<std::byte> out;
  out.reserve(length);
  ByteWriter w(out);
  w.bytes(std::as_bytes(std::span(kind.magic, 8)));
  w.u32(kFormatVersion);
  w.u32(static_cast<std::uint32_t>(length));
  w.bytes(store_id);
  w.bytes(body);
  append_checksum(out, checksum_seed(store_id));
  assert(out.size() == length);
  return out;
}

const char* open_whole_file(const WholeFileKind& kind, std::span<const std::byte> bytes,
                            const Uuid& store_id, std::span<const std::byte>& body) noexcept {
  assert(std::strlen(kind.magic) == 8 && kind.not_this != nullptr && kind.too_large != nullptr);
  if (bytes.size() > kind.max_bytes) return kind.too_large;
  ByteReader in(bytes);
  const auto magic = in.bytes(8);
  if (magic.size() != 8 || std::memcmp(magic.data(), kind.magic, 8) != 0) return kind.not_this;
  const std::uint32_t version = in.u32();
  const std::uint32_t length = in.u32();
  Uuid id{};
  read_uuid(in, id);
  if (is_newer(bytes, checksum_seed(id))) return kNewerFormat;
  if (!in.ok() || length > bytes.size() || bytes.size() < kWholeFileHeaderBytes + 8) {
    return "truncated";
  }
  if (length != bytes.size()) return "malformed";
  if (!ends_with_checksum(bytes, checksum_seed(id))) return "checksum mismatch";
  if (version != kFormatVersion) return "malformed";
  if (id != store_id) return kOtherStore;
  body = bytes.subspan(kWholeFileHeaderBytes, bytes.size() - kWholeFileHeaderBytes - 8);
  return nullptr;
}

Uuid id_of_whole_file(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kIdOffsetBytes = 16;
  Uuid id{};
  if (bytes.size() >= kIdOffsetBytes + id.size()) {
    std::memcpy(id.data(), bytes.data() + kIdOffsetBytes, id.size());
  }
  return id;
}

}  // namespace vellum::format
