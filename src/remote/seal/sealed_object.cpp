#include "remote/seal/sealed_object.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/fail.hpp"
#include "format/wire/limits.hpp"
#include "format/wire/wire.hpp"

namespace vellum::remote {
namespace {

using base::ObjectCipher;

constexpr const char* kMagic = "VLMSEAL\n";
constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kTagBytes = base::kAuthenticatorBytes;
constexpr std::size_t kSealedChunk = kSealedChunkBytes + kTagBytes;
constexpr const char* kDoesNotOpen =
    "it does not open: it was changed, or is of another object or remote";

// An empty object has one chunk: it has to be authenticated, too.
std::uint64_t chunks_of(std::uint64_t size_bytes) noexcept {
  return std::max<std::uint64_t>(1, (size_bytes + kSealedChunkBytes - 1) / kSealedChunkBytes);
}

std::vector<std::byte> encode_header(const SealedHeader& header) {
  std::vector<std::byte> out;
  format::ByteWriter w(out);
  w.bytes(std::as_bytes(std::span(kMagic, kMagicBytes)));
  w.u32(format::kObjectsFormatVersion);
  w.u32(0);
  w.u64(header.size_bytes);
  w.bytes(header.salt);
  assert(out.size() == kSealedHeaderBytes);
  return out;
}

// What each chunk is authenticated with.
std::vector<std::byte> context_of(const SealedHeader& header, const std::string& key) {
  std::vector<std::byte> out = encode_header(header);
  const auto name = std::as_bytes(std::span(key));
  out.insert(out.end(), name.begin(), name.end());
  return out;
}

}  // namespace

std::uint64_t sealed_bytes(std::uint64_t size_bytes) noexcept {
  if (size_bytes > kMaxSealableBytes) return UINT64_MAX;
  return kSealedHeaderBytes + size_bytes + chunks_of(size_bytes) * kTagBytes;
}

std::uint64_t opened_bytes(std::uint64_t sealed_size_bytes) noexcept {
  if (sealed_size_bytes < kSealedHeaderBytes + kTagBytes) return 0;
  const std::uint64_t chunks = sealed_size_bytes - kSealedHeaderBytes;
  const std::uint64_t tags = (chunks + kSealedChunk - 1) / kSealedChunk * kTagBytes;
  if (tags > chunks || sealed_bytes(chunks - tags) != sealed_size_bytes) return 0;
  return chunks - tags;
}

bool is_sealed_object(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kMagicBytes && std::memcmp(bytes.data(), kMagic, kMagicBytes) == 0;
}

std::vector<std::byte> seal_object(const base::ObjectKeys& keys, const std::string& key,
                                   std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxSealableBytes) {
    fail(Errc::invalid_argument, "{}: {} bytes are too many for an encrypted object", key,
         bytes.size());
  }
  SealedHeader header;
  header.size_bytes = bytes.size();
  base::fill_random(header.salt);
  ObjectCipher cipher(keys, header.salt, ObjectCipher::Direction::seal);
  const auto context = context_of(header, key);
  std::vector<std::byte> out = encode_header(header);
  out.resize(static_cast<std::size_t>(sealed_bytes(bytes.size())));
  auto to = std::span(out).subspan(kSealedHeaderBytes);
  for (std::uint64_t chunk = 0; !to.empty(); ++chunk) {
    const std::size_t count = std::min(bytes.size(), kSealedChunkBytes);
    cipher.seal(chunk, context, bytes.first(count), to.first(count),
                to.subspan(count).first<kTagBytes>());
    bytes = bytes.subspan(count);
    to = to.subspan(count + kTagBytes);
  }
  assert(bytes.empty());
  return out;
}

const char* decode_sealed_header(std::span<const std::byte> start, SealedHeader& out) noexcept {
  if (!is_sealed_object(start)) return "not a sealed object, in an encrypted remote";
  format::ByteReader in(start);
  in.u64();
  const std::uint32_t version = in.u32(), reserved = in.u32();
  out.size_bytes = in.u64();
  const auto salt = in.bytes(out.salt.size());
  if (!in.ok() || reserved != 0 || out.size_bytes > kMaxSealableBytes) return kDoesNotOpen;
  if (version != format::kObjectsFormatVersion) return "sealed in an unknown way";
  std::ranges::copy(salt, out.salt.begin());
  return nullptr;
}

ObjectRange chunks_with(const SealedHeader& header, const ObjectRange& range) noexcept {
  assert(range.length_bytes > 0 && range.offset_bytes <= header.size_bytes &&
         range.length_bytes <= header.size_bytes - range.offset_bytes);
  const std::uint64_t first = range.offset_bytes / kSealedChunkBytes;
  const std::uint64_t last = (range.offset_bytes + range.length_bytes - 1) / kSealedChunkBytes;
  const std::uint64_t end = std::min((last + 1) * kSealedChunkBytes, header.size_bytes);
  return {kSealedHeaderBytes + first * kSealedChunk,
          end - first * kSealedChunkBytes + (last - first + 1) * kTagBytes};
}

const char* open_chunks(const base::ObjectKeys& keys, const std::string& key,
                        const SealedHeader& header, const ObjectRange& range,
                        std::span<const std::byte> sealed, std::vector<std::byte>& out) {
  assert(sealed.size() == chunks_with(header, range).length_bytes);
  ObjectCipher cipher(keys, header.salt, ObjectCipher::Direction::open);
  const auto context = context_of(header, key);
  const std::uint64_t first = range.offset_bytes / kSealedChunkBytes;
  const std::size_t count = (sealed.size() + kSealedChunk - 1) / kSealedChunk;
  out.resize(sealed.size() - count * kTagBytes);
  auto to = std::span(out);
  for (std::uint64_t chunk = first; !sealed.empty(); ++chunk) {
    const std::size_t bytes = std::min(sealed.size() - kTagBytes, kSealedChunkBytes);
    if (!cipher.open(chunk, context, sealed.first(bytes), to.first(bytes),
                     sealed.subspan(bytes).first<kTagBytes>())) {
      return kDoesNotOpen;
    }
    to = to.subspan(bytes);
    sealed = sealed.subspan(bytes + kTagBytes);
  }
  const auto before = static_cast<std::ptrdiff_t>(range.offset_bytes - first * kSealedChunkBytes);
  out.erase(out.begin(), out.begin() + before);
  out.resize(static_cast<std::size_t>(range.length_bytes));
  return nullptr;
}

const char* open_object(const base::ObjectKeys& keys, const std::string& key,
                        std::span<const std::byte> sealed, std::vector<std::byte>& out) {
  SealedHeader header;
  if (const char* problem = decode_sealed_header(sealed, header)) return problem;
  if (sealed.size() != sealed_bytes(header.size_bytes)) return kDoesNotOpen;
  const auto chunks = sealed.subspan(kSealedHeaderBytes);
  if (header.size_bytes != 0) {
    return open_chunks(keys, key, header, {0, header.size_bytes}, chunks, out);
  }
  ObjectCipher cipher(keys, header.salt, ObjectCipher::Direction::open);
  out.clear();
  return cipher.open(0, context_of(header, key), {}, {}, chunks.first<kTagBytes>()) ? nullptr
                                                                                    : kDoesNotOpen;
}

}  // namespace vellum::remote
