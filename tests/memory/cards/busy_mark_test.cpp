// Concurrent marks: threads that share cards, signal handlers that interrupt them, and marks from
// before the range existed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/time.h>
#include <vellum/cards.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>
#include <vellum/error.hpp>

#include "memory/cards/tracked_range.hpp"
#include "support/child.hpp"

namespace vellum::cards {
namespace {

using test::require;
using test::run_program;

using BusyMarkNoTsan = ::testing::Test;

void open_up(const TrackedRange& range) {
  require(mprotect(range.data(), range.capacity_bytes(), PROT_READ | PROT_WRITE) == 0, "opened");
}

// Marks as compiled code does.
void store_and_mark(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_relaxed);
  if (__atomic_load_n(vellum_card_of(reinterpret_cast<std::uint64_t>(word)), __ATOMIC_RELAXED) == 0)
    vellum_mark_card(word);
}

void copy_taken(const TrackedRange& range, const std::vector<MarkedPage>& pages,
                std::vector<std::uint64_t>& copy) {
  for (const MarkedPage& page : pages)
    for (std::size_t i = 0; i < kPageBytes / 8; ++i) {
      if ((page.cards >> (i / 8) & 1) == 0) continue;
      const std::size_t at = page.page * kPageBytes / 8 + i;
      auto& word = reinterpret_cast<std::uint64_t*>(range.data())[at];
      copy[at] = std::atomic_ref(word).load(std::memory_order_relaxed);
    }
}

// More threads than processors, so that some are preempted between setting a card and queueing its
// page. Another thread's card must not hide a store from the take() that follows it.
TEST_F(BusyMarkNoTsan, EachThreadFindsItsOwnStoresInItsOwnTakes) {
  constexpr std::size_t kThreads = 6, kPages = 4, kWordsOfPage = kPageBytes / 8;
  constexpr std::uint64_t kRounds = 10'000;
  TrackedRange range(kPages * kPageBytes);
  open_up(range);
  std::vector<std::uint64_t> copy(kPages * kWordsOfPage);
  std::mutex taking;
  std::atomic<std::uint64_t> lost{0};
  const auto writer = [&](std::size_t self) {
    std::vector<MarkedPage> pages;
    for (std::uint64_t value = 1; value <= kRounds; ++value) {
      for (std::size_t i = 0; i < kPages; ++i)
        store_and_mark(reinterpret_cast<std::uint64_t*>(range.data()) + i * kWordsOfPage + self,
                       value);
      const std::lock_guard lock(taking);
      pages.clear();
      range.take(pages);
      copy_taken(range, pages, copy);
      for (std::size_t i = 0; i < kPages; ++i) lost += copy[i * kWordsOfPage + self] != value;
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(writer, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0U, lost.load());
}

constexpr std::size_t kSignalPages = 16, kSignalWords = kSignalPages * kPageBytes / 8;
std::uint64_t* signal_words = nullptr;
volatile std::uint64_t signals = 0;
constexpr std::uint64_t kSignals = 5'000;

// The handler writes every odd word, on the main program's pages but on different cards.
void store_in_handler(int) {
  signals = signals + 1;
  for (std::size_t i = 0; i < 16; ++i)
    store_and_mark(signal_words + (signals * 37 + i * 171) % (kSignalWords / 16) * 16 + 8, signals);
}

const test::ChildProgram kMarkInHandler("mark-in-handler", [](const auto&) {
  require(__libc_single_threaded != 0, "one thread");
  TrackedRange range(kSignalPages * kPageBytes);
  open_up(range);
  signal_words = reinterpret_cast<std::uint64_t*>(range.data());
  std::vector<std::uint64_t> copy(kSignalWords);
  std::vector<MarkedPage> pages;
  const auto take = [&] {
    pages.clear();
    range.take(pages);
    copy_taken(range, pages, copy);
  };
  struct sigaction action{};
  action.sa_handler = store_in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 30}, {0, 30}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (std::uint64_t value = 1; signals < kSignals; ++value) {
    for (std::size_t i = 0; i < kSignalWords; i += 64)
      store_and_mark(signal_words + (i + value * 16) % kSignalWords, value);
    take();
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  take();
  require(std::memcmp(copy.data(), signal_words, kSignalWords * 8) == 0, "no store is lost");
  require(range.clean(), "everything was taken");
});

// With one thread, marking and taking use no locked instruction, and a signal may interrupt them
// between any two instructions. A new process: a child of a process with threads counts as having
// some, too.
TEST_F(BusyMarkNoTsan, MarksOfASignalHandlerAreKeptWithOneThread) {
  EXPECT_CHILD_EXIT(run_program("mark-in-handler", {}), 0);
}

// Marks at addresses without a range do not count for a later range there.
TEST_F(BusyMarkNoTsan, EarlierMarksDoNotHideThoseOfALaterRange) {
  constexpr std::uint64_t kPlace = kWindowBegin + (123ULL << kGranuleShift);
  constexpr std::uint64_t kBytes = (4ULL << 30) + 3 * kPageBytes;
  auto* const place = reinterpret_cast<std::byte*>(kPlace);
  reserve_table();
  vellum_mark(place, 2 * kPageBytes);
  vellum_mark(place + kBytes - 1, 1);
  TrackedRange range(kBytes, kPlace);
  EXPECT_TRUE(range.clean());
  EXPECT_EQ(0, *vellum_card_of(kPlace));
  vellum_mark_card(place);
  vellum_mark_card(place + kPageBytes + 64);
  vellum_mark_card(place + kBytes - 1);
  std::vector<MarkedPage> pages;
  range.take(pages);
  ASSERT_EQ(3U, pages.size());
  EXPECT_EQ(1U, pages[0].cards);
  EXPECT_EQ(2U, pages[1].cards);
  EXPECT_EQ(1ULL << 63, pages[2].cards);
}

bool is_unmapped(std::uint64_t address) {
  unsigned char present = 0;
  return mincore(reinterpret_cast<void*>(address), kPageBytes, &present) != 0;
}

// In a new process: this one has the table.
const test::ChildProgram kTableInTheWay("table-in-the-way", [](const auto&) {
  const auto cards = reinterpret_cast<std::uint64_t>(vellum_card_of(kWindowBegin));
  for (const std::uint64_t taken : std::array{VELLUM_PAGE_TABLE, VELLUM_DIRECTORY}) {
    void* const at = reinterpret_cast<void*>(taken);
    require(mmap(at, kPageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                 0) == at,
            "the place was free");
    bool refused = false;
    try {
      reserve_table();
    } catch (const Error& error) {
      refused = error.code() == Errc::unsupported;
    }
    require(refused, "the table is refused");
    require(is_unmapped(cards), "nothing is left of it");
    require(!is_unmapped(taken), "the mapping there stays");
    munmap(at, kPageBytes);
    require(is_unmapped(VELLUM_PAGE_TABLE), "nothing is left of its second part");
  }
  reserve_table();
});

TEST_F(BusyMarkNoTsan, ATableWithoutItsAddressesIsRefusedWhole) {
  EXPECT_CHILD_EXIT(run_program("table-in-the-way", {}), 0);
}

}  // namespace
}  // namespace vellum::cards
