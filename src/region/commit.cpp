// region/commit.cpp: a commit, from the dirty pages to the new source of the memory.
//
// commit_once() is the whole commit: begin_commit() finds and encodes the dirty pages, end_commit()
// writes them and updates the memory. store/branch/commit.cpp has the commit point.
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <future>
#include <utility>
#include <vellum/region.hpp>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "memory/kernel/fault_router.hpp"
#include "region/commit_report.hpp"
#include "region/region_impl.hpp"
#include "store/branch/checkpoint/checkpoint.hpp"

namespace vellum {

using format::PageNumber;
using region::kPageBytes;
using Clock = std::chrono::steady_clock;

namespace {

std::chrono::nanoseconds time_since(Clock::time_point start) { return Clock::now() - start; }

// The base copies as of the current commit. REQUIRES: the encoder has updated them.
class EncodedBaseCopies final : public store::CommittedPages {
 public:
  explicit EncodedBaseCopies(region::RegionMemory& memory) noexcept : memory_(memory) {}

  // The hold prevents an eviction of the base copy during the copy.
  bool copy_page(PageNumber page, std::byte* out) const override {
    memory_.hold(page, 1);
    const std::byte* const base_copy =
        memory_.is_present(page) ? memory_.base_copy_of(page) : nullptr;
    if (base_copy != nullptr && out != nullptr) std::memcpy(out, base_copy, kPageBytes);
    memory_.release(page, 1);
    return base_copy != nullptr;
  }

 private:
  region::RegionMemory& memory_;
};

// The memory is in a commit while this object lives.
class Committing {
 public:
  explicit Committing(region::RegionMemory& memory) noexcept : memory_(memory) {
    memory_.begin_committing();
  }
  ~Committing() { memory_.end_committing(); }
  Committing(const Committing&) = delete;
  Committing& operator=(const Committing&) = delete;

 private:
  region::RegionMemory& memory_;
};

}  // namespace

// A commit in progress.
struct Region::Impl::CommitInProgress {
  std::string message;
  std::optional<store::NameLock> snapshot;         // its name, if the commit is to be one
  const std::vector<PageNumber>* known = nullptr;  // the pages stored to; null: unknown
  std::vector<PageNumber> dirty;
  CommitReport report;
  Clock::time_point start = Clock::now();
  std::chrono::nanoseconds waiting_time{0};  // from the call to the start of the background task
  // The commit is written even if no page has changed.
  bool even_if_unchanged = false;
  bool anything = false;
  // Null: the pages are only captured, or none are dirty.
  std::unique_ptr<store::BranchWriter::Commit> writes;
  std::optional<region::GcPacing::Commit> turn;  // while it writes, the collector waits
  std::unique_ptr<Committing> committing;

  bool is_snapshot() const noexcept { return snapshot.has_value(); }
};

// The pages that are found are write-protected again, and no later search finds them. They are
// therefore pending from the moment at which they are found.
std::vector<PageNumber> Region::Impl::take_dirty(const std::vector<PageNumber>* known) {
  assert(std::ranges::is_sorted(pending));
  // An earlier commit has taken the marks of some stores to pending pages.
  const bool marks_say_all = cards && pending.empty();
  const auto before = static_cast<std::ptrdiff_t>(pending.size());
  const auto merge_found = [&] {
    assert(std::is_sorted(pending.begin() + before, pending.end()));
    if (before == 0) return;
    std::sort(pending.begin(), pending.end());  // allocates nothing, unlike a merge
    pending.erase(std::unique(pending.begin(), pending.end()), pending.end());
  };
  try {
    if (cards) {
      cards->collect(*memory, pending);
    } else {
      memory->collect_dirty(pending, known);
    }
  } catch (...) {
    merge_found();
    throw;
  }
  merge_found();
  encoder->use_marks(marks_say_all ? cards->marks() : std::span<const cards::MarkedPage>());
  return std::exchange(pending, {});
}

void Region::Impl::require_base_copies() const {
  if (!base_copies_lost) return;
  fail(Errc::poisoned,
       "region '{}': a commit failed, and the last one could not be read back from the store to "
       "undo it: close the region and open it again",
       name);
}

// A failed commit has overwritten these base copies: loads the last commit's content from the store.
void Region::Impl::reload_base_copies(std::span<const PageNumber> pages) {
  const auto last = writer->open_head();
  std::vector<std::byte> content(kPageBytes);
  for (const PageNumber page : pages) {
    last->read(page, 1, content.data());
    memory->hold(page, 1);
    memory->make_private(page);
    std::memcpy(memory->backing().base_copy(page), content.data(), kPageBytes);
    memory->release(page, 1);
  }
}

// The commit is durable. From now on, evicted pages are loaded from this commit. If it cannot be
// opened, they are loaded from the old source and the spill file. No error here undoes the commit.
void Region::Impl::accept_commit() noexcept {
  try {
    const auto now_taken = encoder->accept();
    taken.insert(taken.end(), now_taken.begin(), now_taken.end());
    if (taken.empty() && !memory->wants_source()) return;
    auto head = writer->open_head();
    std::sort(taken.begin(), taken.end());
    taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
    memory->replace_source(std::move(head), taken);
    taken.clear();
  } catch (const std::exception&) {
    return;
  }
}

void Region::Impl::undo_commit(std::vector<PageNumber> dirty) {
  commit_failed = true;
  try {
    encoder->undo([this](std::span<const PageNumber> pages) { reload_base_copies(pages); });
  } catch (...) {
    base_copies_lost = true;
  }
  if (auto* const file = memory->file_behind()) file->abandon_commit(dirty);
  if (cards) cards->put_back();
  pending = std::move(dirty);
}

// Finds the dirty pages and encodes them. With `capture`, only captures them: later stores of the
// program do not change the commit. With spilled pages, encodes all nevertheless, since capturing
// would load them into memory.
void Region::Impl::begin_commit(CommitInProgress& c, bool capture) {
  if (memory->needs_handlers()) region::look_at_handlers();
  require_base_copies();
  writer->require_in_place();
  c.report.sequence = sequence;
  assert(c.committing == nullptr && c.writes == nullptr);
  c.committing = std::make_unique<Committing>(*memory);
  c.dirty = take_dirty(c.known);
  try {
    follow_stores_past_file_end(c.dirty);
  } catch (...) {
    pending = std::move(c.dirty);
    throw;
  }
  c.even_if_unchanged = c.is_snapshot() || memory->size_bytes() != committed_bytes ||
                        file_bytes() != committed_file_bytes || !committed_before;
  const auto scanned = Clock::now();
  c.report.scan_time = scanned - c.start;
  c.report.pages_dirty = c.dirty.size();
  c.anything = !c.dirty.empty() || c.even_if_unchanged;
  if (!c.anything) return;
  try {
    if (!capture || memory->has_spilled()) c.writes = writer->begin(c.dirty.size());
    if (auto* const file = memory->file_behind()) file->prepare_commit(c.dirty);
    c.report.pages_changed =
        c.writes ? encoder->encode(c.dirty, *c.writes) : encoder->capture(c.dirty);
  } catch (...) {
    c.writes.reset();
    undo_commit(std::move(c.dirty));
    throw;
  }
  c.report.encode_time = time_since(scanned);
}

store::CommitCost Region::Impl::write_commit(CommitInProgress& c) {
  try {
    const auto start = Clock::now();
    if (!c.writes) {
      c.writes = writer->begin(c.dirty.size());
      encoder->pack(*c.writes);
      c.report.encode_time += time_since(start);
    }
    store::CommitCost cost;
    if (c.report.pages_changed != 0 || c.even_if_unchanged) {
      const format::CommitInfo info{.time_ns = base::wall_clock_ns(),
                                    .region_bytes = memory->size_bytes(),
                                    .base_address = remembered_address,
                                    .message = c.message,
                                    .file_bytes = file_bytes()};
      const EncodedBaseCopies committed(*memory);
      cost = c.is_snapshot() ? c.writes->finish_as(*c.snapshot, info, &committed)
                             : c.writes->finish(info, false, &committed);
    }
    c.writes.reset();
    accept_commit();
    memory->note_commit_end();
    if (auto* const file = memory->file_behind()) file->finish_commit(c.dirty);
    return cost;
  } catch (...) {
    c.writes.reset();
    undo_commit(std::move(c.dirty));
    throw;
  }
}

void Region::Impl::end_commit(CommitInProgress& c) {
  assert(c.committing != nullptr);
  CommitReport& report = c.report;
  if (c.anything) {
    const auto cost = write_commit(c);
    if (cost.sequence != 0) {
      assert(cost.sequence == sequence + 1);
      sequence = report.sequence = cost.sequence;
      committed_bytes = memory->size_bytes();
      committed_file_bytes = file_bytes();
      committed_before = true;
      commit_failed = false;
    }
    region::set_cost(report, cost);
  } else if (commit_failed) {
    writer->begin();  // throws after a failed flush: the content of the medium is then unknown
  }
  report.total_time = time_since(c.start) - c.waiting_time;
  // The remaining time: the base copies were updated during encoding.
  const auto stages = report.scan_time + report.encode_time + report.write_time + report.flush_time;
  report.publish_time = report.total_time - std::min(stages, report.total_time);
  counters->note_commit(report, memory->size_bytes(), writer->backlog_bytes());
  c.committing.reset();
  c.turn.reset();
  if (space != nullptr && report.bytes_written != 0) space->note_written(report.bytes_written);
}

void Region::Impl::take_turn(CommitInProgress& c) {
  if (space != nullptr) c.turn.emplace(space->pacing());
}

bool Region::Impl::makes_room_after(const Error& error) {
  return error.code() == Errc::no_space && space != nullptr && space->make_room();
}

// A failed commit changes nothing, so it is repeated if gc can free space.
CommitReport Region::Impl::commit(std::optional<store::NameLock> snapshot,
                                  const std::string& message,
                                  const std::vector<PageNumber>* known) {
  const std::uint64_t before = sequence;
  try {
    return commit_once(snapshot, message, known);
  } catch (const Error& e) {
    if (sequence != before || !makes_room_after(e)) throw;
  }
  return commit_once(snapshot, message, known);
}

CommitReport Region::Impl::commit_once(const std::optional<store::NameLock>& snapshot,
                                       const std::string& message,
                                       const std::vector<PageNumber>* known) {
  CommitInProgress c;
  c.known = known;
  c.snapshot = snapshot;
  c.message = message;
  take_turn(c);
  begin_commit(c, false);
  end_commit(c);
  return c.report;
}

// Allocates everything before it begins: after that, nothing may fail for lack of memory.
std::future<CommitReport> Region::Impl::commit_async(std::optional<store::NameLock> snapshot,
                                                     const std::string& message) {
  const auto c = std::make_shared<CommitInProgress>();
  c->snapshot = std::move(snapshot);
  c->message = message;
  const auto end = std::make_shared<std::packaged_task<CommitReport()>>([this, c] {
    c->waiting_time = time_since(c->start) - c->report.pause_time;
    // The caller's future may keep `c` for long, so the name is released here.
    CommitInProgress ending = std::move(*c);
    try {
      take_turn(ending);
      end_commit(ending);
    } catch (const Error& e) {
      ending.turn.reset();
      // Frees space for the next commit. This one cannot be repeated: its content is not in memory.
      makes_room_after(e);
      throw;
    }
    return ending.report;
  });
  auto future = end->get_future();
  begin_commit(*c, true);
  c->report.pause_time = time_since(c->start);
  try {
    background->start([end] { (*end)(); });
  } catch (const std::exception&) {
    (*end)();  // no thread is available
  }
  return future;
}

}  // namespace vellum
