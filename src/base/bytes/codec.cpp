// base/bytes/codec.cpp: see codec.hpp.
#include "base/bytes/codec.hpp"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <string>
#include <vector>
#include <vellum/error.hpp>

#include "base/bytes/word_planes.hpp"
#include "base/bytes/word_strides.hpp"
#include "base/fail.hpp"
#include "base/memory/reserve.hpp"
#include "base/memory/zeros.hpp"

namespace vellum::base {
namespace {

struct FreeCCtx {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct FreeDCtx {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

// For differences. Level 1 handles the longest repetitions badly (262,144 bytes of one word: 10,325
// bytes; at level 3 42) and is no faster on other data.
constexpr int kStridesLevel = 3;

std::size_t copy_raw(std::span<const std::byte> raw, std::span<std::byte> out) noexcept {
  if (raw.size() > out.size()) return 0;
  if (!raw.empty()) std::memcpy(out.data(), raw.data(), raw.size());
  return raw.size();
}

const char* chars(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(std::span<std::byte> bytes) noexcept { return reinterpret_cast<char*>(bytes.data()); }

// lz4 counts in int.
int lz4_size(std::size_t bytes) noexcept {
  return static_cast<int>(std::min<std::size_t>(bytes, LZ4_MAX_INPUT_SIZE));
}

bool decompress_none(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept {
  return stored.size() == raw.size() && copy_raw(stored, raw) == raw.size();
}

bool decompress_lz4(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept {
  if (stored.empty() || stored.size() > LZ4_MAX_INPUT_SIZE || raw.size() > LZ4_MAX_INPUT_SIZE) {
    return false;
  }
  std::byte nowhere{};  // lz4 accepts no null pointer, even for zero bytes
  char* out = raw.empty() ? chars(std::span(&nowhere, 1)) : chars(raw);
  const int got =
      LZ4_decompress_safe(chars(stored), out, lz4_size(stored.size()), lz4_size(raw.size()));
  return got >= 0 && static_cast<std::size_t>(got) == raw.size();
}

// Whether these bytes are exactly one current frame that declares exactly this size. zstd also
// accepts frame chains, skippable frames, and the formats of its first versions, whose decoders
// allocate.
bool is_single_frame_of(std::span<const std::byte> stored, std::size_t raw_size) noexcept {
  constexpr std::array magic{std::byte{0x28}, std::byte{0xB5}, std::byte{0x2F}, std::byte{0xFD}};
  return stored.size() > magic.size() && std::equal(magic.begin(), magic.end(), stored.begin()) &&
         ZSTD_getFrameContentSize(stored.data(), stored.size()) == raw_size &&
         ZSTD_findFrameCompressedSize(stored.data(), stored.size()) == stored.size();
}

// The index of a codec is its byte on disk: append only. A compression has a row without a filter,
// and one for each filter that it supports.
constexpr NamedCodec kCodecs[] = {
    {"none", Compression::none},
    {"lz4", Compression::lz4},
    {"zstd", Compression::zstd},
    {"lz4_words", {Compression::lz4, Filter::words}},
    {"zstd_words", {Compression::zstd, Filter::words}},
    {"lz4_strides", {Compression::lz4, Filter::strides}},
    {"zstd_strides", {Compression::zstd, Filter::strides}},
    {"lz4_fields", {Compression::lz4, Filter::fields}},
    {"zstd_fields", {Compression::zstd, Filter::fields}},
};

constexpr int kUnlisted = -1;

// The codec's index in kCodecs.
constexpr int index_of(Codec codec) noexcept {
  for (std::size_t i = 0; i < std::size(kCodecs); ++i) {
    if (kCodecs[i].codec == codec) return static_cast<int>(i);
  }
  return kUnlisted;
}

constexpr bool all_differ() noexcept {
  for (std::size_t i = 0; i < std::size(kCodecs); ++i) {
    if (index_of(kCodecs[i].codec) != static_cast<int>(i)) return false;
  }
  return std::size(kCodecs) < 256;
}
static_assert(all_differ());

// With these filters the first stored byte is the stride.
bool has_stride(Filter filter) noexcept {
  return filter == Filter::strides || filter == Filter::fields;
}

constexpr std::size_t kPartBytes = 2048, kParts = 4;
constexpr std::size_t kSampleBytes = kPartBytes * kParts;

// Parts spread over a block, as a sample of it. Each starts with a whole structure. REQUIRES: the
// block has at least kSampleBytes.
struct Sample {
  Sample(std::span<const std::byte> block, std::size_t stride_words) noexcept {
    assert(block.size() >= kSampleBytes && stride_words >= 1 && stride_words <= kMaxStrideWords);
    const std::size_t structure = stride_words * kWordBytes;
    const std::size_t part = kPartBytes / structure * structure;
    const std::size_t step = (block.size() - kPartBytes) / (kParts - 1) / structure * structure;
    for (std::size_t i = 0; i < kParts; ++i) {
      std::memcpy(room.data() + i * part, block.data() + i * step, part);
    }
    bytes = std::span(room).first(part * kParts);
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  std::array<std::byte, kSampleBytes> room;
  std::span<const std::byte> bytes;
};

// 0: the filter would not help.
std::size_t stride_for(Filter filter, std::span<const std::byte> words) noexcept {
  if (filter == Filter::strides) return regular_stride(words);
  return filter == Filter::fields ? similar_stride(words) : 1;
}

}  // namespace

std::span<const NamedCodec> codecs() noexcept { return kCodecs; }

std::optional<Codec> codec_from_byte(std::uint8_t byte) noexcept {
  if (byte >= std::size(kCodecs)) return std::nullopt;
  return kCodecs[byte].codec;
}

std::uint8_t codec_byte(Codec codec) noexcept {
  assert(codec_known(codec));
  return static_cast<std::uint8_t>(index_of(codec));
}

bool codec_known(Codec codec) noexcept { return index_of(codec) != kUnlisted; }

const char* codec_name(Codec codec) noexcept {
  const int index = index_of(codec);
  return index == kUnlisted ? "unknown" : kCodecs[index].name;
}

bool has_levels(Compression compression) noexcept { return compression == Compression::zstd; }

std::size_t compress_bound(Codec codec, std::size_t raw_bytes) noexcept {
  const std::size_t stride_bytes = has_stride(codec.filter) ? 1 : 0;
  switch (codec.compression) {
    case Compression::none:
      break;
    case Compression::lz4:  // LZ4_COMPRESSBOUND, for sizes beyond int too
      return stride_bytes + raw_bytes + raw_bytes / 255 + 16;
    case Compression::zstd:
      return stride_bytes + ZSTD_compressBound(raw_bytes);
  }
  return raw_bytes;
}

std::size_t max_compress_bound(std::size_t raw_bytes) noexcept {
  std::size_t most = 0;
  for (const auto& [name, codec] : kCodecs) most = std::max(most, compress_bound(codec, raw_bytes));
  return most;
}

struct Compressor::Impl {
  Impl() : zstd(ZSTD_createCCtx()), lz4(std::make_unique<std::byte[]>(lz4_state_bytes())) {
    if (zstd == nullptr) fail(Errc::out_of_memory, "no memory for a zstd compressor");
  }

  std::span<const std::byte> filter(Filter filter, std::size_t stride_words,
                                    std::span<const std::byte> raw);
  std::size_t compress(Codec codec, int level, std::size_t stride_words,
                       std::span<const std::byte> raw, std::span<std::byte> out);
  std::size_t compress_plain(Compression compression, int level, std::span<const std::byte> raw,
                             std::span<std::byte> out);
  std::size_t compress_lz4(std::span<const std::byte> raw, std::span<std::byte> out) noexcept;
  std::size_t compress_zstd(int level, std::span<const std::byte> raw, std::span<std::byte> out);

  static std::size_t lz4_state_bytes() noexcept {
    return static_cast<std::size_t>(LZ4_sizeofState());
  }

  std::unique_ptr<ZSTD_CCtx, FreeCCtx> zstd;
  std::unique_ptr<std::byte[]> lz4;
  std::vector<std::byte> filtered, fields;
};

std::span<const std::byte> Compressor::Impl::filter(Filter filter, std::size_t stride_words,
                                                    std::span<const std::byte> raw) {
  if (filter == Filter::none) return raw;
  assert(raw.size() <= kMaxFilteredBytes && stride_words >= 1 && stride_words <= kMaxStrideWords);
  if (filtered.size() < raw.size()) filtered.resize(raw.size());
  const std::span<std::byte> out(filtered.data(), raw.size());
  if (filter == Filter::strides) {
    take_differences(raw, out, stride_words);
    return out;
  }
  if (filter == Filter::fields) {
    if (fields.size() < raw.size()) fields.resize(raw.size());
    const std::span<std::byte> gathered(fields.data(), raw.size());
    gather_fields(raw, gathered, stride_words);
    raw = gathered;
  }
  split_word_planes(raw, out);
  return out;
}

std::size_t Compressor::Impl::compress(Codec codec, int level, std::size_t stride_words,
                                       std::span<const std::byte> raw, std::span<std::byte> out) {
  if (codec.filter == Filter::strides) level = std::max(level, kStridesLevel);
  const auto bytes = filter(codec.filter, stride_words, raw);
  if (!has_stride(codec.filter)) return compress_plain(codec.compression, level, bytes, out);
  if (out.empty()) return 0;
  out[0] = static_cast<std::byte>(stride_words);
  const std::size_t size = compress_plain(codec.compression, level, bytes, out.subspan(1));
  assert(size < out.size());
  return size == 0 ? 0 : size + 1;
}

std::size_t Compressor::Impl::compress_plain(Compression compression, int level,
                                             std::span<const std::byte> raw,
                                             std::span<std::byte> out) {
  switch (compression) {
    case Compression::none:
      return copy_raw(raw, out);
    case Compression::lz4:
      return compress_lz4(raw, out);
    case Compression::zstd:
      return compress_zstd(level, raw, out);
  }
  return 0;
}

std::size_t Compressor::Impl::compress_lz4(std::span<const std::byte> raw,
                                           std::span<std::byte> out) noexcept {
  if (raw.size() > LZ4_MAX_INPUT_SIZE || out.empty()) return 0;
  const int got = LZ4_compress_fast_extState(lz4.get(), chars(raw), chars(out),
                                             lz4_size(raw.size()), lz4_size(out.size()), 1);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

std::size_t Compressor::Impl::compress_zstd(int level, std::span<const std::byte> raw,
                                            std::span<std::byte> out) {
  const std::size_t got = ZSTD_compressCCtx(zstd.get(), out.data(), out.size(), raw.data(),
                                            raw.size(), std::clamp(level, kMinLevel, kMaxLevel));
  if (!ZSTD_isError(got)) return got;
  // zstd's stable interface has no error numbers. With an output of this size the only possible
  // reason is a lack of memory.
  if (out.size() >= ZSTD_compressBound(raw.size())) {
    fail(Errc::out_of_memory, "zstd: {}", ZSTD_getErrorName(got));
  }
  return 0;
}

Compressor::Compressor() : impl_(std::make_unique<Impl>()) {}
Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;

std::size_t Compressor::compress(Codec codec, int level, std::span<const std::byte> raw,
                                 std::span<std::byte> out, std::size_t stride_words) {
  if (!codec_known(codec)) fail(Errc::invalid_argument, "no such codec");
  if (codec.filter != Filter::none && raw.size() > kMaxFilteredBytes) return 0;
  if (stride_words == 0 && has_stride(codec.filter)) {
    stride_words = raw.size() < kSampleBytes ? stride_for(codec.filter, raw)
                                             : stride_for(codec.filter, Sample(raw, 1).bytes);
  }
  return impl_->compress(codec, level, std::max<std::size_t>(stride_words, 1), raw, out);
}

std::size_t Compressor::compress_on(std::span<const std::byte> prefix, int level,
                                    std::span<const std::byte> raw, std::span<std::byte> out) {
  assert(prefix.size() >= kPrefixZeros && is_zero(prefix.first(kPrefixZeros)));
  const std::size_t got = ZSTD_compress_usingDict(
      impl_->zstd.get(), out.data(), out.size(), raw.data(), raw.size(), prefix.data(),
      prefix.size(), std::clamp(level, kMinLevel, kMaxLevel));
  if (!ZSTD_isError(got)) return got;
  if (out.size() >= ZSTD_compressBound(raw.size())) {
    fail(Errc::out_of_memory, "zstd: {}", ZSTD_getErrorName(got));
  }
  return 0;
}

// Tries the codec itself, at its fastest level: lz4 gains from splitting where zstd's own entropy
// coding does the same and better (measured on heaps of graphs: 20 % more bytes).
Compressor::Choice Compressor::choose(Compression compression, std::span<const std::byte> raw) {
  Choice best{compression, 1};
  if (compression == Compression::none || raw.size() < kSampleBytes ||
      raw.size() > kMaxFilteredBytes) {
    return best;
  }
  const Sample sample(raw, 1);
  // Sizes per thousand bytes of the sample.
  std::array<std::byte, kSampleBytes + 256> out;  // larger than all bounds: always fits
  const auto trial = [&](Codec codec, std::size_t stride_words) {
    const Sample aligned(raw, stride_words);
    return impl_->compress(codec, kMinLevel, stride_words, aligned.bytes, out) * 1000 /
           aligned.bytes.size();
  };
  std::size_t least = trial(compression, 1) * 99 / 100;
  const auto consider = [&](Filter filter, std::size_t stride_words) {
    const Codec codec{compression, filter};
    if (!codec_known(codec)) return;
    const std::size_t size = trial(codec, stride_words);
    if (size >= least) return;
    least = size;
    best = {codec, stride_words};
  };
  const std::size_t fields = stride_for(Filter::fields, sample.bytes);
  consider(fields == 1 ? Filter::words : Filter::fields, fields);
  const std::size_t stride = stride_for(Filter::strides, sample.bytes);
  if (stride != 0) consider(Filter::strides, stride);
  return best;
}

struct Decompressor::Impl {
  explicit Impl(std::size_t max_filtered_bytes)
      : zstd(ZSTD_createDCtx()),
        planes(max_filtered_bytes),
        fields(max_filtered_bytes),
        whole(max_filtered_bytes) {
    if (zstd == nullptr) fail(Errc::out_of_memory, "no memory for a zstd decompressor");
  }

  bool decompress_plain(Compression compression, std::span<const std::byte> stored,
                        std::span<std::byte> raw) noexcept {
    switch (compression) {
      case Compression::none:
        return decompress_none(stored, raw);
      case Compression::lz4:
        return decompress_lz4(stored, raw);
      case Compression::zstd:
        return decompress_zstd(stored, raw);
    }
    return false;
  }

  bool decompress_zstd(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept {
    return is_single_frame_of(stored, raw.size()) &&
           ZSTD_decompressDCtx(zstd.get(), raw.data(), raw.size(), stored.data(), stored.size()) ==
               raw.size();
  }

  // Decompresses to the filtered form, then undoes the filter.
  bool decompress_filtered(Codec codec, std::size_t stride_words, std::span<const std::byte> stored,
                           std::span<std::byte> raw) noexcept {
    assert(stride_words >= 1 && stride_words <= kMaxStrideWords && raw.size() <= planes.size());
    if (codec.filter == Filter::strides) {
      if (!decompress_plain(codec.compression, stored, raw)) return false;
      sum_differences(raw, stride_words);
      return true;
    }
    const auto split = planes.bytes().first(raw.size());
    if (!decompress_plain(codec.compression, stored, split)) return false;
    if (codec.filter == Filter::words) {
      join_word_planes(split, raw);
    } else {
      const auto gathered = fields.bytes().first(raw.size());
      join_word_planes(split, gathered);
      scatter_fields(gathered, raw, stride_words);
    }
    return true;
  }

  std::unique_ptr<ZSTD_DCtx, FreeDCtx> zstd;
  Reservation planes, fields, whole;  // only address space until a block needs it
};

Decompressor::Decompressor(std::size_t max_filtered_bytes)
    : impl_(std::make_unique<Impl>(max_filtered_bytes)) {}
Decompressor::~Decompressor() = default;
Decompressor::Decompressor(Decompressor&&) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&&) noexcept = default;

bool Decompressor::decompress(Codec codec, std::span<const std::byte> stored,
                              std::span<std::byte> raw) noexcept {
  if (codec.filter == Filter::none) return impl_->decompress_plain(codec.compression, stored, raw);
  if (!codec_known(codec)) return false;
  if (raw.size() > impl_->planes.size()) return false;
  std::size_t stride = 1;
  if (has_stride(codec.filter)) {
    if (stored.empty()) return false;
    stride = std::to_integer<std::size_t>(stored[0]);
    if (stride < 1 || stride > kMaxStrideWords) return false;
    stored = stored.subspan(1);
  }
  return impl_->decompress_filtered(codec, stride, stored, raw);
}

bool Decompressor::decompress_part(Codec codec, std::span<const std::byte> stored,
                                   std::size_t raw_bytes, std::size_t offset_bytes,
                                   std::span<std::byte> part) noexcept {
  [[maybe_unused]] constexpr std::size_t kAlign = 4096;
  assert(raw_bytes % kAlign == 0 && offset_bytes % kAlign == 0 && part.size() % kAlign == 0);
  assert(offset_bytes <= raw_bytes && part.size() <= raw_bytes - offset_bytes);
  if (codec == Compression::none) {
    if (stored.size() != raw_bytes) return false;
    std::memcpy(part.data(), stored.data() + offset_bytes, part.size());
    return true;
  }
  if (raw_bytes > impl_->planes.size()) return false;
  if (codec.filter == Filter::words) {
    const auto split = impl_->planes.bytes().first(raw_bytes);
    if (!impl_->decompress_plain(codec.compression, stored, split)) return false;
    join_word_planes_part(split, offset_bytes, part);
    return true;
  }
  const auto raw = impl_->whole.bytes().first(raw_bytes);
  if (!decompress(codec, stored, raw)) return false;
  std::memcpy(part.data(), raw.data() + offset_bytes, part.size());
  return true;
}

bool Decompressor::decompress_on(std::span<const std::byte> prefix,
                                 std::span<const std::byte> stored,
                                 std::span<std::byte> raw) noexcept {
  assert(prefix.size() >= kPrefixZeros && is_zero(prefix.first(kPrefixZeros)));
  return is_single_frame_of(stored, raw.size()) &&
         ZSTD_decompress_usingDict(impl_->zstd.get(), raw.data(), raw.size(), stored.data(),
                                   stored.size(), prefix.data(), prefix.size()) == raw.size();
}

}  // namespace vellum::base
