#include "soak/content_lib.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace vellum::test {
namespace {

std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ULL;
  return x ^ (x >> 29);
}

bool covers(PartRange range, std::uint64_t index) noexcept {
  return index >= range.first && index - range.first < range.count;
}

// The seed decides whether a page compresses to little, to a third, or not at all.
std::uint64_t whole_word(std::uint32_t whole, std::uint64_t index) noexcept {
  if (whole == 0) return 0;
  switch (whole % 4) {
    case 0:
      return mix(whole);
    case 1:
      return mix((std::uint64_t{whole} << 10) + index);
    default:
      return mix((std::uint64_t{whole} << 10) + index) >> 42;
  }
}

[[noreturn]] void fail(const std::string& where, std::uint64_t page, std::uint64_t word,
                       std::uint64_t got, std::uint64_t expected) {
  throw std::runtime_error(
      fmt::format("{}: page {}, word {} is {:#x}, not {:#x}", where, page, word, got, expected));
}

}  // namespace

PartRange part_range(std::uint32_t part) noexcept {
  if (part == 0) return {0, 0};
  const std::uint64_t bits = mix(part);
  const std::uint64_t count = bits % 4 == 0 ? 1 + (bits >> 32) % 64 : 1;
  return {(bits >> 8) % (kWordsPerPage - count + 1), count};
}

std::uint64_t expected_word(PageSeeds seeds, std::uint64_t index) noexcept {
  if (covers(part_range(seeds.part), index)) return mix((std::uint64_t{seeds.part} << 20) + index);
  return whole_word(seeds.whole, index);
}

void store_page(std::uint64_t* page, PageSeeds before, PageSeeds after) noexcept {
  if (before.whole != after.whole) {
    for (std::uint64_t i = 0; i < kWordsPerPage; ++i) page[i] = expected_word(after, i);
    return;
  }
  for (const PartRange range : {part_range(before.part), part_range(after.part)}) {
    for (std::uint64_t i = range.first; i < range.first + range.count; ++i) {
      page[i] = expected_word(after, i);
    }
  }
}

std::optional<std::uint64_t> first_wrong_word(const std::uint64_t* page, PageSeeds seeds) noexcept {
  for (std::uint64_t i = 0; i < kWordsPerPage; ++i) {
    if (page[i] != expected_word(seeds, i)) return i;
  }
  return std::nullopt;
}

void check_page(const Content& content, const void* region, std::uint64_t page,
                const std::string& where) {
  const auto* const words = static_cast<const std::uint64_t*>(region) + page * kWordsPerPage;
  if (page >= content.pages.size()) {
    const std::uint64_t expected = content.counters[page - content.pages.size()];
    if (words[0] != expected) fail(where, page, 0, words[0], expected);
    return;
  }
  const PageSeeds seeds = content.pages[page];
  if (const auto wrong = first_wrong_word(words, seeds)) {
    fail(where, page, *wrong, words[*wrong], expected_word(seeds, *wrong));
  }
}

void check_all(const Content& content, const void* region, const std::string& where) {
  for (std::uint64_t page = 0; page < content.page_count(); ++page) {
    check_page(content, region, page, where);
  }
}

}  // namespace vellum::test
