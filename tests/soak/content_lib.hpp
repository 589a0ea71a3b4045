// The content that a region or a version must have, in a few bytes for each page: the seeds that
// its words follow from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vellum::test {

inline constexpr std::uint64_t kWordsPerPage = 512;

// A page was stored as a whole, and then perhaps a few of its words again. 0, 0: zeros.
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

// Makes the page what `after` says, where it is what `before` says; stores to no other words than
// those that differ, and at most to those.
void store_page(std::uint64_t* page, PageSeeds before, PageSeeds after) noexcept;

// The index of the first word that is wrong.
std::optional<std::uint64_t> first_wrong_word(const std::uint64_t* page, PageSeeds seeds) noexcept;

struct Content {
  std::vector<PageSeeds> pages;
  std::vector<std::uint64_t> counters;  // the first word of each page after those

  std::uint64_t page_count() const { return pages.size() + counters.size(); }
};

// Throws std::runtime_error that says `where`, the page and the word. `page` may be a counter's.
void check_page(const Content& content, const void* region, std::uint64_t page,
                const std::string& where);
void check_all(const Content& content, const void* region, const std::string& where);

}  // namespace vellum::test
