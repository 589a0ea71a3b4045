// base/codec.cpp: see codec.hpp.
#include "base/codec.hpp"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>
#include <vellum/error.hpp>

#include "base/reserve.hpp"
#include "base/word_planes.hpp"

namespace vellum::base {
namespace {

struct FreeCCtx {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct FreeDCtx {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

constexpr int kMinLevel = 1;
constexpr int kMaxLevel = 19;  // above it zstd wants hundreds of megabytes

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
  std::byte nowhere{};  // lz4 takes no null pointer, even for nothing
  char* out = raw.empty() ? chars(std::span(&nowhere, 1)) : chars(raw);
  const int got =
      LZ4_decompress_safe(chars(stored), out, lz4_size(stored.size()), lz4_size(raw.size()));
  return got >= 0 && static_cast<std::size_t>(got) == raw.size();
}

// Exactly one current frame that declares exactly the size wanted. zstd itself would also take a
// chain of frames, skippable ones, and the formats of its first versions, whose decoders allocate.
bool is_single_frame_of(std::span<const std::byte> stored, std::size_t raw_size) noexcept {
  constexpr std::array magic{std::byte{0x28}, std::byte{0xB5}, std::byte{0x2F}, std::byte{0xFD}};
  return stored.size() > magic.size() && std::equal(magic.begin(), magic.end(), stored.begin()) &&
         ZSTD_getFrameContentSize(stored.data(), stored.size()) == raw_size &&
         ZSTD_findFrameCompressedSize(stored.data(), stored.size()) == stored.size();
}

}  // namespace

bool codec_known(std::uint8_t value) noexcept {
  return value <= static_cast<std::uint8_t>(Codec::zstd_words);
}

bool codec_plain(Codec codec) noexcept { return codec <= Codec::zstd; }

const char* codec_name(Codec codec) noexcept {
  switch (codec) {
    case Codec::none:
      return "none";
    case Codec::lz4:
      return "lz4";
    case Codec::zstd:
      return "zstd";
    case Codec::lz4_words:
      return "lz4_words";
    case Codec::zstd_words:
      return "zstd_words";
  }
  return "unknown";
}

std::size_t compress_bound(Codec codec, std::size_t raw_bytes) noexcept {
  switch (codec) {
    case Codec::none:
      return raw_bytes;
    case Codec::lz4:
    case Codec::lz4_words:
      return raw_bytes + raw_bytes / 255 + 16;  // LZ4_COMPRESSBOUND, for sizes beyond int too
    case Codec::zstd:
    case Codec::zstd_words:
      return ZSTD_compressBound(raw_bytes);
  }
  return raw_bytes;
}

struct Compressor::Impl {
  Impl() : zstd(ZSTD_createCCtx()), lz4(std::make_unique<std::byte[]>(lz4_state_bytes())) {
    if (zstd == nullptr) throw Error(Errc::out_of_memory, "no memory for a zstd compressor");
  }

  std::span<const std::byte> split(std::span<const std::byte> raw);
  std::size_t compress_lz4(std::span<const std::byte> raw, std::span<std::byte> out) noexcept;
  std::size_t compress_zstd(int level, std::span<const std::byte> raw, std::span<std::byte> out);

  static std::size_t lz4_state_bytes() noexcept {
    return static_cast<std::size_t>(LZ4_sizeofState());
  }

  std::unique_ptr<ZSTD_CCtx, FreeCCtx> zstd;
  std::unique_ptr<std::byte[]> lz4;
  std::vector<std::byte> planes;
};

std::span<const std::byte> Compressor::Impl::split(std::span<const std::byte> raw) {
  if (planes.size() < raw.size()) planes.resize(raw.size());
  const std::span<std::byte> out(planes.data(), raw.size());
  split_word_planes(raw, out);
  return out;
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
  // zstd's stable interface has no error numbers, but an output of this size can fail for no other
  // reason than memory.
  if (out.size() >= ZSTD_compressBound(raw.size())) {
    throw Error(Errc::out_of_memory, std::string("zstd: ") + ZSTD_getErrorName(got));
  }
  return 0;
}

Compressor::Compressor() : impl_(std::make_unique<Impl>()) {}
Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;

std::size_t Compressor::compress(Codec codec, int level, std::span<const std::byte> raw,
                                 std::span<std::byte> out) {
  switch (codec) {
    case Codec::none:
      return copy_raw(raw, out);
    case Codec::lz4:
      return impl_->compress_lz4(raw, out);
    case Codec::zstd:
      return impl_->compress_zstd(level, raw, out);
    case Codec::lz4_words:
      return raw.size() > kMaxWordsBytes ? 0 : impl_->compress_lz4(impl_->split(raw), out);
    case Codec::zstd_words:
      return raw.size() > kMaxWordsBytes ? 0 : impl_->compress_zstd(level, impl_->split(raw), out);
  }
  throw Error(Errc::invalid_argument, "no such codec");
}

// The codec itself is the judge, at its fastest level: lz4 finds splitting useful where zstd's own
// entropy coding does the same and better (measured on heaps of graphs: 20 % more bytes).
Codec Compressor::choose(Codec plain, std::span<const std::byte> raw) {
  constexpr std::size_t kPieceBytes = 2048, kPieces = 4;
  if (plain == Codec::none || raw.size() < kPieceBytes * kPieces || raw.size() > kMaxWordsBytes) {
    return plain;
  }
  std::array<std::byte, kPieceBytes * kPieces> sample;
  const std::size_t stride =
      (raw.size() - kPieceBytes) / (kPieces - 1) / kWordPlanesUnitBytes * kWordPlanesUnitBytes;
  for (std::size_t i = 0; i < kPieces; ++i) {
    std::memcpy(sample.data() + i * kPieceBytes, raw.data() + i * stride, kPieceBytes);
  }
  std::array<std::byte, kPieceBytes * kPieces + 256> out;  // above both bounds: always fits
  const std::size_t whole = compress(plain, kMinLevel, sample, out);
  const std::size_t split = compress(plain, kMinLevel, impl_->split(sample), out);
  if (split * 100 >= whole * 97) return plain;
  return plain == Codec::lz4 ? Codec::lz4_words : Codec::zstd_words;
}

struct Decompressor::Impl {
  Impl() : zstd(ZSTD_createDCtx()), planes(kMaxWordsBytes) {
    if (zstd == nullptr) throw Error(Errc::out_of_memory, "no memory for a zstd decompressor");
  }

  bool decompress_zstd(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept {
    return is_single_frame_of(stored, raw.size()) &&
           ZSTD_decompressDCtx(zstd.get(), raw.data(), raw.size(), stored.data(), stored.size()) ==
               raw.size();
  }

  template <class Decompress>
  bool join_planes(std::span<std::byte> words, Decompress decompress) noexcept {
    if (words.size() > planes.size()) return false;
    const auto split = planes.bytes().first(words.size());
    if (!decompress(split)) return false;
    join_word_planes(split, words);
    return true;
  }

  std::unique_ptr<ZSTD_DCtx, FreeDCtx> zstd;
  Reservation planes;  // address space only, until a block needs it
};

Decompressor::Decompressor() : impl_(std::make_unique<Impl>()) {}
Decompressor::~Decompressor() = default;
Decompressor::Decompressor(Decompressor&&) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&&) noexcept = default;

bool Decompressor::decompress(Codec codec, std::span<const std::byte> stored,
                              std::span<std::byte> raw) noexcept {
  switch (codec) {
    case Codec::none:
      return decompress_none(stored, raw);
    case Codec::lz4:
      return decompress_lz4(stored, raw);
    case Codec::zstd:
      return impl_->decompress_zstd(stored, raw);
    case Codec::lz4_words:
      return impl_->join_planes(raw, [&](auto planes) { return decompress_lz4(stored, planes); });
    case Codec::zstd_words:
      return impl_->join_planes(
          raw, [&](auto planes) { return impl_->decompress_zstd(stored, planes); });
  }
  return false;
}

}  // namespace vellum::base
