// memory/statistics/layout.hpp: the shared page with the counters of a process's regions.
//
// It is a memfd: other processes of the user find it by its name in /proc/PID/fd, and it ends with
// its process. Readers do not trust its content: any process may have created it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vellum::region::statistics {

inline constexpr char kFileName[] = "vellum-statistics";
inline constexpr std::uint64_t kMagic = 0x3174617473'6c6576;  // "velstat1"
inline constexpr std::size_t kSlots = 64;                     // later regions are not counted
inline constexpr std::size_t kStripes = 8;  // by chunk, so threads seldom share one

using Counter = std::atomic<std::uint64_t>;

enum class FaultKind : std::uint8_t {
  read,     // of a chunk that is not in memory
  write,    // the same, by a store
  present,  // of a page of a chunk that is in memory: it is opened, or mapped
};
inline constexpr std::size_t kFaultKinds = 3;

struct alignas(64) Stripe {
  std::array<Counter, kFaultKinds> faults;
  Counter chunks_in, chunks_out;  // filled by faults and ahead of them; evicted
  // Pages that a store has opened, and that a commit has closed again, where the region counts
  // them (Slot::counts_dirty). Otherwise the kernel reports dirty pages.
  Counter pages_opened, pages_closed;
};

// One region. Counters only grow; the other values are current, or of the last commit.
struct alignas(64) Slot {
  enum State : std::uint32_t { free = 0, claimed = 1, in_use = 2 };
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> serial;  // one more for each region that takes the slot
  std::uint32_t writable;
  std::uint32_t engine;           // vellum::Engine
  std::array<char, 256> version;  // the branch or snapshot; ends with a zero, like `store`
  std::array<char, 1024> store;   // its directory; a longer path is cut
  std::uint32_t counts_dirty;

  alignas(64) Counter resident_pages;  // now, like the two that follow
  Counter spilled_pages, spill_written_bytes;
  alignas(64) Counter address;  // of the region in its process
  Counter region_bytes;         // at the last commit or change of size
  Counter backlog_bytes;        // at the last commit
  Counter commits, pages_dirty, pages_changed, bytes_written;
  Counter commit_ns, flush_ns;
  std::array<Stripe, kStripes> stripes;
};

struct Page {
  std::uint64_t magic;
  std::uint32_t process;  // its number in its own namespace
  std::uint32_t slot_bytes;
  std::uint32_t slots;
  std::array<Slot, kSlots> slot;
};

static_assert(Counter::is_always_lock_free && sizeof(Slot) == 2048);

}  // namespace vellum::region::statistics
