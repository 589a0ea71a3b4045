// Eviction: chunks leave memory; clean pages are forgotten, dirty pages go to the spill file.
//
// An eviction
// 1. claims a chunk: a thread that touches a page that is not there waits;
// 2. freezes it: nobody can change what is there;
// 3. compares private pages with their base copies;
// 4. lets everything go, or puts everything back as it was.
// Meanwhile the region's threads go on, except those that touch this chunk.
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "format/page_diff.hpp"
#include "region/kernel/racing_page.hpp"
#include "region/memory/memory.hpp"
#include "region/memory/memory_no_read_ahead.hpp"
#include "region/memory/memory_scratch.hpp"

namespace vellum::region {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

std::size_t count_bits(std::uint64_t bits) noexcept {
  return static_cast<std::size_t>(__builtin_popcountll(bits));
}

}  // namespace

int RegionMemory::place_private(PageNumber, const std::byte*) noexcept { return EOPNOTSUPP; }
void RegionMemory::note_placed(PageNumber, std::uint64_t) noexcept {}
int RegionMemory::find_own(PageNumber, std::size_t, std::uint64_t&) noexcept { return EOPNOTSUPP; }
int RegionMemory::freeze(Frozen&) noexcept { return EOPNOTSUPP; }
int RegionMemory::thaw(const Frozen&, std::uint64_t) noexcept { return EOPNOTSUPP; }
int RegionMemory::forget(const Frozen&) noexcept { return EOPNOTSUPP; }
std::int64_t RegionMemory::count_own(PageNumber, std::size_t) noexcept { return -1; }

// Stops evictions while the dirty set is taken: a page must not leave behind the scan's back.
class RegionMemory::NoEvictions {
 public:
  explicit NoEvictions(RegionMemory& memory) noexcept : memory_(memory) {
    memory_.evictions_stopped_.fetch_add(1);
    while (memory_.evicting_.load() != 0) sched_yield();
  }
  ~NoEvictions() { memory_.evictions_stopped_.fetch_sub(1); }
  NoEvictions(const NoEvictions&) = delete;
  NoEvictions& operator=(const NoEvictions&) = delete;

 private:
  RegionMemory& memory_;
};

// Pages that leave the spill file while the scan runs were in the first list; none enters it
// meanwhile.
void RegionMemory::collect_dirty(std::vector<PageNumber>& out,
                                 const std::vector<PageNumber>* known) {
  if (const char* why = lost_.load(); why != nullptr) {
    fail(Errc::poisoned, "pages were lost: {}; close the region and open it again", why);
  }
  const NoEvictions guard(*this);
  std::vector<PageNumber> spilled, found;
  if (spill_) spill_->append_pages(spilled);
  if (known == nullptr) {
    find_dirty(found);
  } else {
    found = *known;
    find_unfinished(found);
  }
  std::set_union(spilled.begin(), spilled.end(), found.begin(), found.end(),
                 std::back_inserter(out));
}

void RegionMemory::discard(const std::vector<PageNumber>& pages) {
  const NoReadAhead still(*this);
  const NoEvictions guard(*this);
  std::vector<PageNumber> present;
  present.reserve(pages.size());
  for (const PageNumber page : pages) {
    if (is_present(page)) {
      present.push_back(page);
    } else if (spill_) {
      spill_->drop(page);
    }
  }
  put_back(present);
}

std::size_t RegionMemory::make_room(std::size_t pages) noexcept {
  const std::size_t chunks = chunks_of(size_bytes());
  const std::size_t word_chunks = 64 * kTablePages / chunk_pages();  // of touched_word()
  std::size_t freed = evict_first(pages);
  for (std::size_t visited = 0; visited < 4 * chunks && freed < pages;) {
    const std::size_t index = hand_.fetch_add(1, std::memory_order_relaxed) % chunks;
    if (index % word_chunks == 0 && touched_word(index * chunk_bytes() / kTableBytes).load() == 0) {
      const std::size_t skip = std::min(word_chunks, chunks - index) - 1;
      hand_.fetch_add(skip, std::memory_order_relaxed);
      visited += skip + 1;
      continue;
    }
    ++visited;
    Chunk& c = chunk(index);
    if (c.state.load(std::memory_order_relaxed) != kPresent) continue;
    const std::uint8_t heat = c.heat.load(std::memory_order_relaxed);
    if (heat != 0) {
      c.heat.store(heat - 1, std::memory_order_relaxed);
      continue;
    }
    freed += evict(index);
  }
  if (freed < pages) pager_->doubt();
  return freed;
}

std::size_t RegionMemory::evict(std::size_t index, Changed what) noexcept {
  if (chunk(index).holds.load() != 0) return 0;
  std::size_t freed = 0;
  evicting_.fetch_add(1);  // pairs with NoEvictions
  if (evictions_stopped_.load() == 0 && claim(index, kPresent)) {
    if (chunk(index).holds.load() == 0) {  // pairs with hold()
      freed = evict_claimed(index, what);
    } else {
      settle(index, 1, kPresent);
    }
  }
  evicting_.fetch_sub(1);
  return freed;
}

std::size_t RegionMemory::evict_claimed(std::size_t index, Changed what) noexcept {
  const PageNumber first = index * chunk_pages(), end = size_bytes() / kPageBytes;
  const std::size_t count = first < end ? std::min<std::size_t>(chunk_pages(), end - first) : 0;
  // Base copies that are newer than the source must stay; private copies that equal them need not.
  const bool newer = chunk(index).newer.load() != 0;
  if (newer) what = Changed::all_stay;
  const std::uint64_t base_copies = backing_.base_copies_in(first, count);
  std::uint64_t own = 0;
  bool worth = count != 0 && find_own(first, count, own) == 0 &&
               (own != 0 || (!newer && (base_copies != 0 || zeros_take_memory())));
  const bool spill = what == Changed::spilled;
  if (own != 0 && spill && now_ns() < spill_retry_ns_.load()) worth = false;
  if (!worth) {
    settle(index, 1, kPresent);
    return 0;
  }
  const bool unused = working_set_ && is_unused(index);
  Scratch& scratch = lock_scratch(index);
  Frozen frozen;
  frozen.first = first;
  frozen.count = count;
  frozen.base_copies = base_copies;
  frozen.old = scratch.old;
  frozen.place = scratch.place;
  std::size_t freed = 0;
  bool gone = false;
  if (freeze(frozen) == 0) {
    std::uint64_t changed = 0;
    gone = spill_changed(frozen, scratch.batch, changed, what) && forget(frozen) == 0;
    const std::uint64_t dropped = gone ? frozen.own : frozen.own & ~changed;
    const bool told = options_.writable && zeros_take_memory();  // zeros counted when they came in
    const std::size_t zeros = gone && told ? count - count_bits(base_copies) : 0;
    freed = count_bits(dropped) + (gone ? count_bits(base_copies) : 0) + zeros;
    add_private(-static_cast<std::int64_t>(count_bits(dropped) + zeros));
    if (!gone) {
      if (thaw(frozen, changed) != 0) lose("no memory to put pages back");
      for (std::uint64_t rest = spill ? changed : 0; rest != 0; rest &= rest - 1) {
        if (spill_) spill_->drop(first + static_cast<std::size_t>(__builtin_ctzll(rest)));
      }
    }
  }
  scratch.lock.unlock();
  if (gone) {
    if (unused) working_set_->forget(index);
    const std::uint32_t number = evictions_.fetch_add(1) + 1;
    chunk(index).evicted_at.store(number == 0 ? 1 : number);
    present_chunks_.fetch_sub(1, std::memory_order_relaxed);
  }
  settle(index, 1, gone ? kMissing : kPresent);
  return freed;
}

// Finds the private pages that differ from the last commit and treats them as `what` says. False:
// the chunk has to stay.
bool RegionMemory::spill_changed(const Frozen& frozen, std::byte* room, std::uint64_t& changed,
                                 Changed what) noexcept {
  SpillFile::Batch batch(room);
  for (std::uint64_t rest = frozen.own; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctzll(rest));
    const bool base_copy = (frozen.base_copies >> i & 1) != 0;
    const std::byte* const now = frozen.pages + i * kPageBytes;
    format::PageDiff diff;
    format::diff_page(base_copy ? frozen.old + i * kPageBytes : nullptr, now, diff);
    if (diff.lines == 0) continue;
    changed |= 1ULL << i;
    if (what == Changed::spilled && spill_) batch.add(frozen.first + i, diff, now);
  }
  if (what == Changed::all_stay) return false;
  if (changed == 0) return true;
  if (what == Changed::stay) return false;
  const int error = spill_ ? spill_->put(batch) : ENOSPC;
  if (error == 0) return true;
  // A retry at each eviction would cost more than it gains.
  if (spill_retry_ns_.exchange(now_ns() + kNsPerSecond) == 0 && spill_) {
    char text[512];
    const int n = std::snprintf(text, sizeof text,
                                "vellum: the spill file in %s cannot take pages (%s): they stay in "
                                "memory, whatever the limit\n",
                                options_.spill_directory.c_str(), strerrordesc_np(error));
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, text, std::min(static_cast<std::size_t>(n), sizeof text - 1));
  }
  return false;
}

void RegionMemory::lose(const char* why) noexcept {
  const char* none = nullptr;
  lost_.compare_exchange_strong(none, why);
}

bool RegionMemory::take_spilled(PageNumber page, std::byte* buffer, SpillFile::Entry& out) {
  const std::size_t index = chunk_of(page);
  if (!spill_) return false;
  while (!claim(index, kMissing)) {
    if (is_present(page)) return false;
    wait_while_claimed(index);
  }
  const bool there = spill_->holds(page);
  int error = 0;
  if (there) error = spill_->read(page, buffer, out);
  if (there && error == 0) spill_->set_taken(page, true);
  settle(index, 1, kMissing);
  if (error != 0) {
    fail(error == EBADMSG ? Errc::corrupted : Errc::io,
         "page {} cannot be read back from the spill file in {}: {}", page,
         options_.spill_directory, std::strerror(error));
  }
  return there;
}

void RegionMemory::note_newer(PageNumber page) noexcept {
  if (kernel_pages_) return;
  Chunk& c = chunk(chunk_of(page));
  if (c.newer.load(std::memory_order_relaxed) == 0 && c.newer.exchange(1) == 0) {
    newer_chunks_.fetch_add(1);
  }
}

void RegionMemory::read_committed(PageNumber page, std::byte* out) const {
  if (const auto& source = source_.shared(); source != nullptr) {
    source->read(page, 1, out);
  } else {
    std::memset(out, 0, kPageBytes);
  }
}

void RegionMemory::make_private(PageNumber page) noexcept {
  rewrite_racing_page(base_ + page * kPageBytes);
}

bool RegionMemory::wants_source() const noexcept {
  constexpr std::uint64_t kShare = 8;
  return newer_chunks_.load() * chunk_bytes() > pager_->limit_bytes() / kShare;
}

// Entries go after the source has changed: a page-in in between finds both, and an entry changes
// nothing in a page that already has it. Only then may chunks be evicted that have come in since.
void RegionMemory::replace_source(std::shared_ptr<store::PageSource> source,
                                  const std::vector<PageNumber>& taken) {
  source_.replace(std::move(source));
  std::vector<PageNumber> present;
  settle_taken(taken, true, present);
  if (newer_chunks_.exchange(0) != 0) {
    const std::size_t tables = (size_bytes() + kTableBytes - 1) / kTableBytes;
    for (std::size_t table = 0; table < tables; ++table) {
      if ((touched_word(table).load() >> (table % 64) & 1) == 0) continue;
      const std::size_t table_chunks = kTablePages / chunk_pages();
      for (std::size_t i = 0; i < table_chunks; ++i) chunk(table * table_chunks + i).newer.store(0);
    }
  }
  if (most_ahead() == 0 || read_ahead_.load() != nullptr) return;
  const std::lock_guard lock(wanted_mutex_);
  join_read_ahead();  // now there is something to read
}

void RegionMemory::give_back(const std::vector<PageNumber>& taken,
                             std::vector<PageNumber>& present) {
  settle_taken(taken, false, present);
}

void RegionMemory::settle_taken(const std::vector<PageNumber>& taken, bool durable,
                                std::vector<PageNumber>& present) {
  for (const PageNumber page : taken) {
    const std::size_t index = chunk_of(page);
    std::uint32_t was = kMissing;
    while (!claim(index, was)) {
      wait_while_claimed(index);
      was = chunk(index).state.load() == kPresent ? kPresent : kMissing;
    }
    if (was == kPresent) present.push_back(page);
    if (durable || was == kPresent) {
      spill_->drop(page);
    } else {
      spill_->set_taken(page, false);
    }
    settle(index, 1, was);
  }
}

void RegionMemory::stay_within_limit() noexcept {
  if (kernel_pages_) return;
  if (const std::size_t lacking = pager_->lacking(0); lacking != 0) make_room(lacking);
}

MemoryUse RegionMemory::use() noexcept {
  measure();
  MemoryUse use;
  use.limit_bytes = pager_->limit_bytes();
  const std::int64_t pages = backing_.base_copy_pages() + private_pages_.load();
  use.resident_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(pages, 0)) * kPageBytes;
  use.evicted_bytes = std::uint64_t{evictions_.load()} * chunk_bytes();
  if (spill_) {
    use.spilled_pages = spill_->pages();
    use.spill_file_bytes = spill_->file_bytes();
    use.spill_written_bytes = spill_->put_bytes();
  }
  return use;
}

void RegionMemory::measure() noexcept {
  if (kernel_pages_) return;
  const std::lock_guard lock(measuring_);
  // Read once: rollback() may shorten the region meanwhile.
  const PageNumber end = size_bytes() / kPageBytes;
  const std::size_t tables = (end + kTablePages - 1) / kTablePages;
  std::int64_t pages = backing_.file_pages() - backing_.base_copy_pages();
  for (std::size_t table = 0; table < tables;) {
    if ((touched_word(table).load() >> (table % 64) & 1) == 0) {
      ++table;
      continue;
    }
    std::size_t stop = table + 1;
    while (stop < tables && (touched_word(stop).load() >> (stop % 64) & 1) != 0) ++stop;
    const PageNumber first = table * kTablePages;
    const PageNumber last = std::min<PageNumber>(stop * kTablePages, end);
    const std::int64_t own = options_.writable ? count_own(first, last - first) : 0;
    if (own < 0) return;
    pages += own;
    table = stop;
  }
  add_private(pages - private_pages_.load());
}

std::int64_t RegionMemory::untold_pages() const noexcept {
  return zeros_take_memory() ? backing_.file_pages() - backing_.base_copy_pages() : 0;
}

void RegionMemory::tidy() noexcept {
  if (!spill_ || now_ns() < tidied_ns_ + kNsPerSecond / 2) return;
  tidied_ns_ = now_ns();
  try {
    for (const PageNumber page : spill_->pages_to_move()) move_spilled(page);
  } catch (const std::exception&) {  // no memory for a list of pages: another time
    return;
  }
  spill_->tidy();
}

void RegionMemory::move_spilled(PageNumber page) noexcept {
  const std::size_t index = chunk_of(page);
  if (!claim(index, kMissing)) return;
  Scratch& scratch = lock_scratch(index);
  if (spill_->holds(page)) spill_->move(page, scratch.record);
  scratch.lock.unlock();
  settle(index, 1, kMissing);
}

}  // namespace vellum::region
