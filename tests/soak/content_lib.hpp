// The expected content of a region or a version, in a few bytes for each page: the seeds of its
// words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vellum::test {

inline constexpr std::uint64_t kWordsPerPage = 512;

// A page that was stored whole; then a few of its words may have been stored again. 0, 0: zeros.
struct PageSeeds {
  std::uint32_t whole = 0, part = 0;
};

// The words that `part` covers.
struct PartRange {
  std::uint64_t first, count;
};
PartRange part_range(std::uint32_t part) noexcept;

// REQUIRES: index < kWordsPerPage.
std::uint64_t expected_word(PageSeeds seeds, std::uint64_t index) noexcept;

// Changes the page from `before` to `after`; stores at most to the words that differ.
void store_page(std::uint64_t* page, PageSeeds before, PageSeeds after) noexcept;

// The index of the first wrong word.
std::optional<std::uint64_t> first_wrong_word(const std::uint64_t* page, PageSeeds seeds) noexcept;

struct Content {
  std::vector<PageSeeds> pages;
  std::vector<std::uint64_t> counters;  // the first word of each page after those

  std::uint64_t page_count() const { return pages.size() + counters.size(); }
};

// Throws std::runtime_error with `where`, the page and the word. `page` may be a counter's.
void check_page(const Content& content, const void* region, std::uint64_t page,
                const std::string& where);
void check_all(const Content& content, const void* region, const std::string& where);

}  // namespace vellum::test
