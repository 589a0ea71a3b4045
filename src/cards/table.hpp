// cards/table.hpp: the card table: a byte for each 64 bytes of the window, a byte for each of its
// pages, and for each tracked range a queue of the pages that have a marked card.
//
// It lies at fixed addresses (include/vellum/cards.h), which are reserved on first use and cost
// nothing until they are touched. All copies of this code in a process (a static library and a
// shared one) share it: whoever comes second finds it there.
//
// Marking sets the card's byte, then the page's; who finds that clear puts the page into the queue
// of its range. So a page is in its queue at most once between two takes, a queue with a slot for
// each page never overflows, and taking costs as much as there are pages with marks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vellum::cards {

inline constexpr std::size_t kCardBytes = 64;
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::uint64_t kWindowBegin = 0x200000000000;  // 32 TiB
inline constexpr std::uint64_t kWindowEnd = 0x300000000000;
inline constexpr std::uint64_t kTableBegin = 0x340000000000;  // cards
inline constexpr std::uint64_t kPageTableBegin = 0x344000000000;
inline constexpr std::uint64_t kDirectoryBegin = 0x345000000000;
// A range begins at a multiple of 4 GiB, and nothing else lies in the granules that it touches.
inline constexpr unsigned kGranuleShift = 32;
inline constexpr std::uint64_t kGranules = (kWindowEnd - kWindowBegin) >> kGranuleShift;

// Of one range. A slot holds a page's number in the range, and 1; 0: free, or not yet written.
struct Queue {
  std::uint64_t begin_address = 0;
  std::atomic<std::uint32_t>* slots = nullptr;
  std::uint64_t slot_mask = 0;
  alignas(64) std::atomic<std::uint64_t> head{0};  // markers append here
  alignas(64) std::uint64_t tail = 0;              // only take() is here
};

// What lies at kDirectoryBegin.
struct Directory {
  std::atomic<std::uint64_t> layout;  // kLayout, from whoever mapped it
  std::atomic<Queue*> granules[kGranules];
};
inline constexpr std::uint64_t kLayout = 0x56454c4c43310000 + sizeof(Queue);

inline std::atomic<std::uint8_t>& card_byte(std::uint64_t address) noexcept {
  return *reinterpret_cast<std::atomic<std::uint8_t>*>(kTableBegin +
                                                       (address - kWindowBegin) / kCardBytes);
}
inline std::atomic<std::uint8_t>& page_byte(std::uint64_t address) noexcept {
  return *reinterpret_cast<std::atomic<std::uint8_t>*>(kPageTableBegin +
                                                       (address - kWindowBegin) / kPageBytes);
}
inline std::atomic<Queue*>& granule(std::uint64_t address) noexcept {
  return reinterpret_cast<Directory*>(kDirectoryBegin)
      ->granules[(address - kWindowBegin) >> kGranuleShift];
}
inline bool in_window(std::uint64_t address) noexcept {
  return address >= kWindowBegin && address < kWindowEnd;
}

// Reserves the table, once a process. Throws Errc::unsupported with the reason where it cannot lie
// where it must: other code's memory is there (ThreadSanitizer's, for one), or address space is
// limited.
void reserve_table();

}  // namespace vellum::cards
