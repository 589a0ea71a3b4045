// store/page_map/shown_pages.hpp: the entries of a version's runs that newer ones do not hide.
//
// Costs one step per entry and two bits per page. A merge of the runs would copy and sort them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "format/wire/types.hpp"

namespace vellum::store {

// A set of page numbers: one bit per page of each stretch that has members.
class PageSet {
 public:
  // Adds these pages. Returns how many of them were not in the set.
  std::uint64_t add(format::PageNumber first, std::uint64_t count);
  bool contains(format::PageNumber page) const;

 private:
  static constexpr std::uint64_t kStretchPages = 1u << 15;
  struct Stretch {
    std::unique_ptr<std::uint64_t[]> words;  // null: all pages or none
    std::uint64_t pages = 0;                 // in the set
  };
  static std::uint64_t add(Stretch& stretch, std::uint64_t first, std::uint64_t count);

  std::unordered_map<std::uint64_t, Stretch> stretches_;
};

class ShownPages {
 public:
  // Adds an entry. Returns whether any of its pages shows. REQUIRES: the newest run's entries are added
  // first, each run's in their order.
  bool take(format::PageNumber page, std::uint32_t count, format::PageKind kind);
  // Visits the parts of the entry that show, counted from its first page, and adds the entry.
  void take_parts(format::PageNumber page, std::uint32_t count, format::PageKind kind,
                  const std::function<void(std::uint32_t from, std::uint32_t count)>& visit);
  // Pages whose newest entry is not zero.
  std::uint64_t nonzero_pages() const noexcept { return nonzero_; }

 private:
  PageSet hidden_;     // by a base or zero: no older entry shows
  PageSet mentioned_;  // by any entry
  std::uint64_t nonzero_ = 0;
};

}  // namespace vellum::store
