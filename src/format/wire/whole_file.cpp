#include "format/wire/whole_file.hpp"

#include <cassert>
#include <cstring>

#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/number.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

// Each kind has its key.
base::MessageKey kind_key(const WholeFileKind& kind) noexcept {
  std::uint64_t magic = 0;
  std::memcpy(&magic, kind.magic, kWholeFileMagicBytes);
  return {base::KeyUse::file, magic, 0};
}

const char* text_of(FrameProblem problem) noexcept {
  switch (problem) {
    case FrameProblem::none:
      break;
    case FrameProblem::truncated:
      return "truncated";
    case FrameProblem::newer_format:
      return kNewerFormat;
    case FrameProblem::malformed:
      return "malformed";
    case FrameProblem::checksum_mismatch:
      return "checksum mismatch";
    case FrameProblem::other_store:
      return "belongs to another store";
  }
  return nullptr;
}

// Checks everything except the seal.
const char* check_whole_file(const WholeFileKind& kind, std::span<const std::byte> bytes,
                             const Uuid& store_id, bool sealed) noexcept {
  assert(std::strlen(kind.magic) == kWholeFileMagicBytes && kind.not_this != nullptr &&
         kind.too_large != nullptr);
  if (bytes.size() > kind.max_bytes + seal_bytes(sealed)) return kind.too_large;
  if (!has_magic(kind, bytes)) {
    return kind.not_this;
  }
  if (const char* problem = text_of(check_frame(bytes, store_id))) return problem;
  if (number_of(bytes) == format_version(sealed)) return nullptr;
  return sealed ? "a plain file in an encrypted store" : "an encrypted file in a plain store";
}

std::span<const std::byte> body_of(std::span<const std::byte> bytes) noexcept {
  return bytes.subspan(kWholeFileHeaderBytes, bytes.size() - kWholeFileHeaderBytes - 8);
}

// Seals a file that has header and body. The header is authenticated.
void seal_body(const WholeFileKind& kind, const StoreKeys& keys, std::vector<std::byte>& file) {
  const std::size_t clear_bytes = kWholeFileHeaderBytes + kind.clear_bytes;
  const std::size_t text_bytes = file.size() - clear_bytes;
  assert(file.size() >= clear_bytes);
  file.resize(file.size() + kSealBytes);
  const auto clear = std::span(file).first(clear_bytes);
  const auto text = std::span(file).subspan(clear_bytes, text_bytes);
  const auto seal = std::span(file).last(kSealBytes);
  if (kind.is_named_by_hash) {
    keys.seal_alike(kind_key(kind), clear, text, seal);
  } else {
    keys.seal(kind_key(kind), clear, text, seal);
  }
}

}  // namespace

bool has_magic(const WholeFileKind& kind, std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kWholeFileMagicBytes &&
         std::memcmp(bytes.data(), kind.magic, kWholeFileMagicBytes) == 0;
}

std::vector<std::byte> encode_whole_file(const WholeFileKind& kind, std::span<const std::byte> body,
                                         const FileSeal& seal) {
  assert(std::strlen(kind.magic) == 8);
  const bool sealed = seal.keys != nullptr;
  const std::size_t length = kWholeFileHeaderBytes + body.size() + seal_bytes(sealed) + 8;
  assert(length <= UINT32_MAX);
  std::vector<std::byte> out;
  out.reserve(length);
  ByteWriter w(out);
  w.bytes(std::as_bytes(std::span(kind.magic, 8)));
  w.u32(format_version(sealed));
  w.u32(static_cast<std::uint32_t>(length));
  w.bytes(seal.store_id);
  w.bytes(body);
  if (sealed) seal_body(kind, *seal.keys, out);
  append_checksum(out, checksum_seed(seal.store_id));
  assert(out.size() == length);
  return out;
}

FrameProblem check_frame(std::span<const std::byte> bytes, const Uuid& store_id) noexcept {
  ByteReader in(bytes);
  in.bytes(kWholeFileMagicBytes);
  const std::uint32_t version = in.u32();
  const std::uint32_t length = in.u32();
  Uuid id{};
  read_uuid(in, id);
  if (is_newer(bytes, checksum_seed(id))) return FrameProblem::newer_format;
  if (!in.ok() || length > bytes.size() || bytes.size() < kWholeFileHeaderBytes + 8) {
    return FrameProblem::truncated;
  }
  if (length != bytes.size()) return FrameProblem::malformed;
  if (!ends_with_checksum(bytes, checksum_seed(id))) return FrameProblem::checksum_mismatch;
  if (!number_is_known(version)) return FrameProblem::malformed;
  return id == store_id ? FrameProblem::none : FrameProblem::other_store;
}

const char* open_whole_file(const WholeFileKind& kind, std::span<const std::byte> bytes,
                            const Uuid& store_id, std::span<const std::byte>& body) noexcept {
  if (const char* problem = check_whole_file(kind, bytes, store_id, false)) return problem;
  body = body_of(bytes);
  return nullptr;
}

const char* open_whole_file(const WholeFileKind& kind, std::span<const std::byte> bytes,
                            const FileSeal& seal, std::vector<std::byte>& opened,
                            std::span<const std::byte>& body) {
  if (seal.keys == nullptr) return open_whole_file(kind, bytes, seal.store_id, body);
  if (const char* problem = check_whole_file(kind, bytes, seal.store_id, true)) return problem;
  const auto stored = body_of(bytes);
  if (stored.size() < kind.clear_bytes + kSealBytes) return "malformed";
  const auto text = stored.first(stored.size() - kSealBytes);
  opened.assign(text.begin(), text.end());
  if (!seal.keys->open(kind_key(kind), bytes.first(kWholeFileHeaderBytes + kind.clear_bytes),
                       std::span(opened).subspan(kind.clear_bytes), stored.last(kSealBytes))) {
    return "not written with the store's key (forged or exchanged)";
  }
  body = opened;
  return nullptr;
}

bool is_sealed_file(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kWholeFileHeaderBytes && number_of(bytes) == kSealedFormatVersion;
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
