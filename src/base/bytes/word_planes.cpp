#include "base/bytes/word_planes.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/processor.h"

#if defined(VELLUM_X86_64)
#include <emmintrin.h>
#endif

namespace vellum::base {
namespace {

constexpr std::size_t kUnitWords = kWordPlanesUnitBytes / kWordBytes;

#if defined(VELLUM_X86_64)

// Interleaves the first 64 of 128 bytes with the last 64. The byte at index i moves to the index
// that is i's seven bits rotated left by one. A byte's index is (word, byte in word) = 4 + 3 bits.
// Four rounds therefore give (byte, word), and three more restore it.
inline void rotate_indices(__m128i (&v)[8]) noexcept {
  __m128i out[8];
  for (std::size_t i = 0; i < 4; ++i) {
    out[2 * i] = _mm_unpacklo_epi8(v[i], v[i + 4]);
    out[2 * i + 1] = _mm_unpackhi_epi8(v[i], v[i + 4]);
  }
  for (int i = 0; i < 8; ++i) v[i] = out[i];
}

void split_units(const std::byte* words, std::byte* planes, std::size_t count) noexcept {
  for (std::size_t word = 0; word < count; word += kUnitWords) {
    const auto* in = reinterpret_cast<const __m128i*>(words + word * kWordBytes);
    __m128i v[8];
    for (int i = 0; i < 8; ++i) v[i] = _mm_loadu_si128(in + i);
    for (int round = 0; round < 4; ++round) rotate_indices(v);
    for (std::size_t plane = 0; plane < 8; ++plane) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(planes + plane * count + word), v[plane]);
    }
  }
}

// Words [from, to) of `count`.
void join_units(const std::byte* planes, std::byte* words, std::size_t count, std::size_t from,
                std::size_t to) noexcept {
  for (std::size_t word = from; word < to; word += kUnitWords) {
    __m128i v[8];
    for (std::size_t plane = 0; plane < 8; ++plane) {
      v[plane] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(planes + plane * count + word));
    }
    for (int round = 0; round < 3; ++round) rotate_indices(v);
    auto* out = reinterpret_cast<__m128i*>(words + (word - from) * kWordBytes);
    for (int i = 0; i < 8; ++i) _mm_storeu_si128(out + i, v[i]);
  }
}

#else

void split_units(const std::byte* words, std::byte* planes, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count * kWordBytes; ++i) {
    planes[i % kWordBytes * count + i / kWordBytes] = words[i];
  }
}

void join_units(const std::byte* planes, std::byte* words, std::size_t count, std::size_t from,
                std::size_t to) noexcept {
  for (std::size_t i = from * kWordBytes; i < to * kWordBytes; ++i) {
    words[i - from * kWordBytes] = planes[i % kWordBytes * count + i / kWordBytes];
  }
}

#endif

constexpr std::size_t whole_units(std::size_t bytes) noexcept {
  return bytes / kWordPlanesUnitBytes * kWordPlanesUnitBytes;
}

// Copies the bytes after the last whole unit.
void copy_rest(std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  assert(in.size() == out.size());
  const std::size_t whole = whole_units(in.size());
  if (whole < in.size()) std::memcpy(out.data() + whole, in.data() + whole, in.size() - whole);
}

[[maybe_unused]] bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

void split_word_planes(std::span<const std::byte> words, std::span<std::byte> planes) noexcept {
  assert(words.size() == planes.size() && !overlap(words, planes));
  split_units(words.data(), planes.data(), whole_units(words.size()) / kWordBytes);
  copy_rest(words, planes);
}

void join_word_planes(std::span<const std::byte> planes, std::span<std::byte> words) noexcept {
  assert(words.size() == planes.size() && !overlap(words, planes));
  const std::size_t count = whole_units(planes.size()) / kWordBytes;
  join_units(planes.data(), words.data(), count, 0, count);
  copy_rest(planes, words);
}

void join_word_planes_part(std::span<const std::byte> planes, std::size_t offset_bytes,
                           std::span<std::byte> words) noexcept {
  assert(planes.size() % kWordPlanesUnitBytes == 0 && offset_bytes % kWordPlanesUnitBytes == 0 &&
         words.size() % kWordPlanesUnitBytes == 0 && offset_bytes + words.size() <= planes.size());
  const std::size_t from = offset_bytes / kWordBytes;
  join_units(planes.data(), words.data(), planes.size() / kWordBytes, from,
             from + words.size() / kWordBytes);
}

namespace {

// Calls move(offset in the fields, offset in the structures) for each word that is a field of a
// whole structure. Returns the offset of the remainder, which is the same in both.
template <typename Move>
std::size_t for_each_field(std::size_t bytes, std::size_t fields_per_structure,
                           Move move) noexcept {
  const std::size_t count = bytes / (fields_per_structure * kWordBytes);
  std::size_t at = 0;
  for (std::size_t field = 0; field < fields_per_structure; ++field) {
    for (std::size_t i = 0; i < count; ++i, at += kWordBytes) {
      move(at, (i * fields_per_structure + field) * kWordBytes);
    }
  }
  return at;
}

}  // namespace

void gather_fields(std::span<const std::byte> structures, std::span<std::byte> fields,
                   std::size_t fields_per_structure) noexcept {
  assert(structures.size() == fields.size() && fields_per_structure >= 1);
  assert(!overlap(structures, fields));
  const std::size_t rest =
      for_each_field(fields.size(), fields_per_structure, [&](std::size_t field, std::size_t from) {
        std::memcpy(fields.data() + field, structures.data() + from, kWordBytes);
      });
  const auto left = structures.subspan(rest);
  std::copy(left.begin(), left.end(), fields.subspan(rest).begin());
}

void scatter_fields(std::span<const std::byte> fields, std::span<std::byte> structures,
                    std::size_t fields_per_structure) noexcept {
  assert(structures.size() == fields.size() && fields_per_structure >= 1);
  assert(!overlap(structures, fields));
  const std::size_t rest =
      for_each_field(fields.size(), fields_per_structure, [&](std::size_t field, std::size_t to) {
        std::memcpy(structures.data() + to, fields.data() + field, kWordBytes);
      });
  const auto left = fields.subspan(rest);
  std::copy(left.begin(), left.end(), structures.subspan(rest).begin());
}

}  // namespace vellum::base
