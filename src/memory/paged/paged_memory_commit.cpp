// Commits and rollbacks of paged memory.
//
// A commit finds the dirty pages, encodes those that are present against their base copies, and
// takes the others from the spill file. Taken entries stay there until the commit is durable. A
// chunk whose base copies the commit has changed stays in memory until the source is replaced by
// one that reads this commit.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "format/records/page_diff.hpp"
#include "memory/paged/paged_memory.hpp"

namespace vellum::region {

// Pages that are refilled from the spill file during the scan are in the first list; none is
// spilled meanwhile.
void PagedMemory::collect_dirty(std::vector<PageNumber>& out,
                                const std::vector<PageNumber>* known) {
  if (const char* why = state_.lost.load(); why != nullptr) {
    fail(Errc::poisoned, "pages were lost: {}; close the region and open it again", why);
  }
  const ClosedGate no_evictions(state_.evictions);
  std::vector<PageNumber> spilled, found;
  if (state_.spill) state_.spill->append_pages(spilled);
  reclaimer_.begin_scan(known == nullptr);
  try {
    if (known == nullptr) find_dirty(found);
    const std::vector<PageNumber>& written = known != nullptr ? *known : found;
    std::set_union(spilled.begin(), spilled.end(), written.begin(), written.end(),
                   std::back_inserter(out));
    reclaimer_.note_dirty(written);
  } catch (...) {
    // Some pages are armed again, and no later call would find them.
    if (known == nullptr) state_.lose("the search for written pages failed");
    throw;
  }
}

void PagedMemory::discard(const std::vector<PageNumber>& pages) {
  const ReadAheadPause pause(state_, read_ahead_);
  const ClosedGate no_evictions(state_.evictions);
  std::vector<PageNumber> present, spilled;
  present.reserve(pages.size());
  for (const PageNumber page : pages) (is_present(page) ? present : spilled).push_back(page);
  put_back_present(present);
  if (!state_.spill) return;
  for (const PageNumber page : spilled) state_.spill->drop(page);
}

// In slices, since a bare page is held twice until its own content is dropped. After a failure some
// pages are not restored, and no commit may follow.
void PagedMemory::put_back_present(std::span<const PageNumber> pages) {
  try {
    while (!pages.empty()) {
      const std::size_t count = std::min(kTablePages, pages.size());
      const auto next = pages.first(count);
      const std::vector<PageNumber> slice(next.begin(), next.end());
      restore_base_copies(slice);
      put_back(slice);
      pages = pages.subspan(count);
    }
  } catch (...) {
    state_.lose("a rollback could not read the last commit");
    throw;
  }
}

// Of the bare pages among these.
void PagedMemory::restore_base_copies(const std::vector<PageNumber>& pages) {
  std::vector<std::byte> content(kPageBytes);
  for (const PageNumber page : pages) {
    if (!is_bare(page)) continue;
    read_committed(page, content.data());
    if (!base::is_zero(content)) {
      const int error = state_.backing.write(page, content);
      if (error != 0) {
        fail(Errc::out_of_memory, "no memory for the committed copy of a page: {}",
             std::strerror(error));
      }
      state_.backing.note_base_copies(page, 1);
    }
    state_.bare.clear(page, 1);
  }
}

bool PagedMemory::take_spilled(PageNumber page, std::byte* buffer, SpillFile::Entry& out) {
  const std::size_t index = chunk_of(page);
  if (!state_.spill) return false;
  const std::uint32_t was = state_.chunks.claim_settled(index);
  const bool present = was == Chunk::kPresent && !state_.absent.test(page);
  const bool spilled = !present && state_.spill->holds(page);
  int error = 0;
  if (spilled) error = state_.spill->read(page, buffer, out);
  if (spilled && error == 0) state_.spill->set_taken(page, true);
  state_.chunks.settle(index, 1, was);
  if (error != 0) {
    fail(error == EBADMSG ? Errc::corrupted : Errc::io,
         "page {} cannot be read back from the spill file in {}: {}", page,
         options_.spill_directory, std::strerror(error));
  }
  return spilled;
}

bool PagedMemory::wants_source() const noexcept {
  constexpr std::uint64_t kShare = 8;
  return state_.newer_chunks.load() * state_.chunk_bytes() > state_.pager->limit_bytes() / kShare;
}

// Entries are dropped after the source has changed: a fill in between finds both, and an entry
// changes nothing in a page that already has it. Only then may chunks be evicted that were filled
// meanwhile.
void PagedMemory::replace_source(std::shared_ptr<store::PageSource> source,
                                 const std::vector<PageNumber>& taken) {
  source_.replace(std::move(source));
  std::vector<PageNumber> present;
  settle_taken(taken, true, present);
  if (state_.newer_chunks.exchange(0) != 0) forget_newer();
  read_ahead_.start_after_commit();
}

void PagedMemory::forget_newer() noexcept {
  const std::size_t tables = state_.table_count(), chunks = state_.chunks.size();
  const std::size_t table_chunks = kTablePages / chunk_pages();
  for (std::size_t table = state_.chunks.next_touched(0, tables); table < tables;
       table = state_.chunks.next_touched(table + 1, tables)) {
    const std::size_t end = std::min((table + 1) * table_chunks, chunks);
    for (std::size_t index = table * table_chunks; index < end; ++index)
      state_.chunks[index].newer.store(0);
  }
}

void PagedMemory::give_back(const std::vector<PageNumber>& taken,
                            std::vector<PageNumber>& present) {
  settle_taken(taken, false, present);
}

void PagedMemory::settle_taken(const std::vector<PageNumber>& taken, bool durable,
                               std::vector<PageNumber>& present) {
  for (const PageNumber page : taken) {
    const std::size_t index = chunk_of(page);
    const std::uint32_t was = state_.chunks.claim_settled(index);
    const bool in_memory = was == Chunk::kPresent && !state_.absent.test(page);
    if (in_memory) present.push_back(page);
    if (durable || in_memory) {
      state_.spill->drop(page);
    } else {
      state_.spill->set_taken(page, false);
    }
    state_.chunks.settle(index, 1, was);
  }
}

}  // namespace vellum::region
