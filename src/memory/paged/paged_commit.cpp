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
#include "base/memory/zeros.hpp"
#include "format/records/page_diff.hpp"
#include "memory/paged/paged_memory.hpp"
#include "memory/paged/paged_memory_no_read_ahead.hpp"

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
  std::vector<PageNumber> present, spilled;
  present.reserve(pages.size());
  for (const PageNumber page : pages) (is_present(page) ? present : spilled).push_back(page);
  put_back_present(present);
  if (!spill_) return;
  for (const PageNumber page : spilled) spill_->drop(page);
}

// By parts, since a bare page is held twice until its own content is dropped. A failure leaves some
// pages as they were, so nothing may be committed any more.
void PagedMemory::put_back_present(std::span<const PageNumber> pages) {
  try {
    while (!pages.empty()) {
      const std::size_t count = std::min(kTablePages, pages.size());
      const auto next = pages.first(count);
      const std::vector<PageNumber> part(next.begin(), next.end());
      restore_base_copies(part);
      put_back(part);
      pages = pages.subspan(count);
    }
  } catch (...) {
    lose("a rollback could not read the last commit");
    throw;
  }
}

// Of bare pages among these.
void PagedMemory::restore_base_copies(const std::vector<PageNumber>& pages) {
  std::vector<std::byte> content(kPageBytes);
  for (const PageNumber page : pages) {
    if (!is_bare(page)) continue;
    read_committed(page, content.data());
    if (!base::is_zero(content)) {
      const int error = backing_.write(page, content);
      if (error != 0) {
        fail(Errc::out_of_memory, "no memory for the committed copy of a page: {}",
             std::strerror(error));
      }
      backing_.note_base_copies(page, 1);
    }
    bare_.clear(page, 1);
  }
}

bool PagedMemory::take_spilled(PageNumber page, std::byte* buffer, SpillFile::Entry& out) {
  const std::size_t index = chunk_of(page);
  if (!spill_) return false;
  const std::uint32_t was = claim_settled(index);
  const bool present = was == Chunk::kPresent && !is_absent(page);
  const bool there = !present && spill_->holds(page);
  int error = 0;
  if (there) error = spill_->read(page, buffer, out);
  if (there && error == 0) spill_->set_taken(page, true);
  chunks_.settle(index, 1, was);
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
    const std::uint32_t was = claim_settled(index);
    const bool is_there = was == Chunk::kPresent && !is_absent(page);
    if (is_there) present.push_back(page);
    if (durable || is_there) {
      spill_->drop(page);
    } else {
      spill_->set_taken(page, false);
    }
    chunks_.settle(index, 1, was);
  }
}

bool PagedMemory::equals_base_copy(PageNumber page) const noexcept {
  if (is_bare(page)) return false;
  format::PageDiff diff;  // its reads are no race to a sanitizer
  format::diff_page(base_copy_of(page), address_of(page), diff);
  return diff.lines == 0;
}

void PagedMemory::lose(const char* why) noexcept {
  const char* none = nullptr;
  lost_.compare_exchange_strong(none, why);
}

}  // namespace vellum::region
