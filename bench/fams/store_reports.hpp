// bench/fams/store_reports.hpp: the receivers of reports of stores.
#pragma once

#include <vellum/cards.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fams {

// The tracker finds stores without reports.
struct ReportsNothing {
  static void stores(const void*, std::size_t) {}
};

// Marks by hand, before the store; the order does not matter: one thread stores and commits.
struct ReportsToVellum {
  static void stores(const void* address, std::size_t bytes) { vellum_mark(address, bytes); }
};

inline constexpr std::uint64_t kPageBytes = 4096;
extern std::vector<std::uint64_t> touched_pages;  // numbers, of address 0 on

struct ReportsPages {
  static void stores(const void* address, std::size_t bytes) {
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    for (std::uint64_t page = start / kPageBytes; page <= (start + bytes - 1) / kPageBytes;
         ++page) {
      if (touched_pages.empty() || touched_pages.back() != page) touched_pages.push_back(page);
    }
  }
};

}  // namespace fams
