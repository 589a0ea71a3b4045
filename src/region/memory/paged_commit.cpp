// What a commit or a rollback takes from memory and brings back.
//
// A commit finds the dirty pages, encodes those that are present beside their base copies, and
// takes the others from the spill file. What it has taken stays there until the commit is durable.
// A chunk whose base copies the commit has changed stays in memory until the source is replaced by
// one that reads this commit.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "format/page_diff.hpp"
#include "region/memory/paged_memory.hpp"
#include "region/memory/paged_memory_no_read_ahead.hpp"

namespace vellum::region {

// Pages that leave the spill file while the scan runs were in the first list; none enters it
// meanwhile.
void PagedMemory::collect_dirty(std::vector<PageNumber>& out,
                                const std::vector<PageNumber>* known) {
  if (const char* why = lost_.load(); why != nullptr) {
    fail(Errc::poisoned, "pages were lost: {}; close the region and open it again", why);
  }
  const ClosedGate no_evictions(evictions_);
  std::vector<PageNumber> spilled, found;
  if (spill_) spill_->append_pages(spilled);
  found_by_others_.store(known != nullptr, std::memory_order_relaxed);
  if (known == nullptr) {
    find_dirty(found);
    known = &found;
  }
  std::set_union(spilled.begin(), spilled.end(), known->begin(), known->end(),
                 std::back_inserter(out));
  note_found_written(*known);
}

void PagedMemory::discard(const std::vector<PageNumber>& pages) {
  const NoReadAhead still(*this);
  const ClosedGate no_evictions(evictions_);
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

bool PagedMemory::take_spilled(PageNumber page, std::byte* buffer, SpillFile::Entry& out) {
  const std::size_t index = chunk_of(page);
  if (!spill_) return false;
  while (!chunks_.claim(index, Chunk::kMissing)) {
    if (is_present(page)) return false;
    chunks_.wait_while_claimed(index);
  }
  const bool there = spill_->holds(page);
  int error = 0;
  if (there) error = spill_->read(page, buffer, out);
  if (there && error == 0) spill_->set_taken(page, true);
  chunks_.settle(index, 1, Chunk::kMissing);
  if (error != 0) {
    fail(error == EBADMSG ? Errc::corrupted : Errc::io,
         "page {} cannot be read back from the spill file in {}: {}", page,
         options_.spill_directory, std::strerror(error));
  }
  return there;
}

void PagedMemory::note_newer(PageNumber page) noexcept {
  Chunk& chunk = chunks_[chunk_of(page)];
  if (chunk.newer.load(std::memory_order_relaxed) == 0 && chunk.newer.exchange(1) == 0) {
    newer_chunks_.fetch_add(1);
  }
}

bool PagedMemory::wants_source() const noexcept {
  constexpr std::uint64_t kShare = 8;
  return newer_chunks_.load() * chunk_bytes() > pager_->limit_bytes() / kShare;
}

// Entries go after the source has changed: a page-in in between finds both, and an entry changes
// nothing in a page that already has it. Only then may chunks be evicted that have come in since.
void PagedMemory::replace_source(std::shared_ptr<store::PageSource> source,
                                 const std::vector<PageNumber>& taken) {
  source_.replace(std::move(source));
  std::vector<PageNumber> present;
  settle_taken(taken, true, present);
  if (newer_chunks_.exchange(0) != 0) {
    const std::size_t tables = (size_bytes() + kTableBytes - 1) / kTableBytes;
    const std::size_t table_chunks = kTablePages / chunk_pages();
    for (std::size_t table = chunks_.next_touched(0, tables); table < tables;
         table = chunks_.next_touched(table + 1, tables)) {
      for (std::size_t i = 0; i < table_chunks; ++i) {
        chunks_[table * table_chunks + i].newer.store(0);
      }
    }
  }
  if (most_ahead() == 0 || read_ahead_.load() != nullptr) return;
  const std::lock_guard lock(wanted_mutex_);
  join_read_ahead();  // now there is something to read
}

void PagedMemory::give_back(const std::vector<PageNumber>& taken,
                            std::vector<PageNumber>& present) {
  settle_taken(taken, false, present);
}

void PagedMemory::settle_taken(const std::vector<PageNumber>& taken, bool durable,
                               std::vector<PageNumber>& present) {
  for (const PageNumber page : taken) {
    const std::size_t index = chunk_of(page);
    std::uint32_t was = Chunk::kMissing;
    while (!chunks_.claim(index, was)) {
      chunks_.wait_while_claimed(index);
      was = chunks_.is_present(index) ? Chunk::kPresent : Chunk::kMissing;
    }
    if (was == Chunk::kPresent) present.push_back(page);
    if (durable || was == Chunk::kPresent) {
      spill_->drop(page);
    } else {
      spill_->set_taken(page, false);
    }
    chunks_.settle(index, 1, was);
  }
}

bool PagedMemory::equals_base_copy(PageNumber page) const noexcept {
  format::PageDiff diff;  // its reads are no race to a sanitizer
  format::diff_page(base_copy_of(page), address_of(page), diff);
  return diff.lines == 0;
}

void PagedMemory::lose(const char* why) noexcept {
  const char* none = nullptr;
  lost_.compare_exchange_strong(none, why);
}

}  // namespace vellum::region
