// base/bytes/codec.hpp: block compression (zstd, lz4), bounded on both sides.
//
// A Compressor and a Decompressor own their work memory. A Decompressor does not allocate after
// construction, hence the fault handler may use it. A Compressor allocates at the first use of a
// higher level or a larger block, and throws Errc::out_of_memory when it cannot. Threads: one each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vellum/encoding.hpp>

namespace vellum::base {

using Compression = Encoding::Compression;

// What is done to a block before its compression. `words` splits 8-byte words into planes of bytes.
// `fields` does that with the fields of structures (word_planes.hpp). `strides` takes differences
// of words at a distance (word_strides.hpp). The first stored byte of the latter two is the size of
// a structure in words.
enum class Filter : std::uint8_t { none, words, strides, fields };

struct Codec {
  constexpr Codec() noexcept = default;
  constexpr Codec(Compression c, Filter f = Filter::none) noexcept : compression(c), filter(f) {}
  bool operator==(const Codec&) const = default;

  Compression compression = Compression::none;
  Filter filter = Filter::none;
};

// Every codec. The index is its byte on disk.
struct NamedCodec {
  const char* name;
  Codec codec;
};
std::span<const NamedCodec> codecs() noexcept;

std::optional<Codec> codec_from_byte(std::uint8_t byte) noexcept;
// REQUIRES: codec_known(codec).
std::uint8_t codec_byte(Codec codec) noexcept;
bool codec_known(Codec codec) noexcept;
const char* codec_name(Codec codec) noexcept;

// The levels of the others have no meaning.
bool has_levels(Compression compression) noexcept;
inline constexpr int kMinLevel = 1;
inline constexpr int kMaxLevel = 19;  // higher levels need hundreds of megabytes

// The largest raw block that filters take.
inline constexpr std::size_t kMaxFilteredBytes = 128u << 20;

// The largest output of compressing `raw_bytes`, for sizing the buffer.
std::size_t compress_bound(Codec codec, std::size_t raw_bytes) noexcept;
// The same for every codec.
std::size_t max_compress_bound(std::size_t raw_bytes) noexcept;

// The number of zero bytes at the start of a prefix. They keep zstd from reading the prefix as a
// dictionary in its own format.
inline constexpr std::size_t kPrefixZeros = 8;

class Compressor {
 public:
  Compressor();
  ~Compressor();
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;

  // Returns the compressed size, or 0 when the result would not fit `out` (the caller then stores
  // the raw bytes). `level` is kMinLevel to kMaxLevel. `stride_words` is for the filters that have a
  // stride: choose() returns it; 0: search for it. REQUIRES: stride_words <=
  // kMaxStrideWords.
  std::size_t compress(Codec codec, int level, std::span<const std::byte> raw,
                       std::span<std::byte> out, std::size_t stride_words = 0);

  // Compresses with zstd, which may refer to `prefix` as if it were in front of `raw`. REQUIRES: as
  // for Decompressor::decompress_on().
  std::size_t compress_on(std::span<const std::byte> prefix, int level,
                          std::span<const std::byte> raw, std::span<std::byte> out);

  // The compression, with a filter if that makes a sample of the block clearly smaller.
  struct Choice {
    Codec codec;
    std::size_t stride_words;
    bool operator==(const Choice&) const = default;
  };
  Choice choose(Compression compression, std::span<const std::byte> raw);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Decompressor {
 public:
  // Reserves address space to undo the filters of blocks up to this size; larger ones are
  // refused.
  explicit Decompressor(std::size_t max_filtered_bytes = kMaxFilteredBytes);
  ~Decompressor();
  Decompressor(Decompressor&&) noexcept;
  Decompressor& operator=(Decompressor&&) noexcept;

  // Fills exactly raw.size() bytes from `stored`. Returns false when the bytes are not a valid
  // stream of exactly that size.
  bool decompress(Codec codec, std::span<const std::byte> stored,
                  std::span<std::byte> raw) noexcept;
  // Fills `part` with the bytes at `offset_bytes` of a stream of `raw_bytes`. The codec
  // decompresses the whole stream, but the filter is undone only for the part. REQUIRES: the part
  // is inside the stream; both numbers and the part's size are multiples of 4 KiB.
  bool decompress_part(Codec codec, std::span<const std::byte> stored, std::size_t raw_bytes,
                       std::size_t offset_bytes, std::span<std::byte> part) noexcept;
  // Undoes compress_on(). REQUIRES: the prefix begins with kPrefixZeros zero bytes.
  bool decompress_on(std::span<const std::byte> prefix, std::span<const std::byte> stored,
                     std::span<std::byte> raw) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::base
