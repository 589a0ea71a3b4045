// store/branch/background.cpp: how the writer starts, paces and publishes a background checkpoint.

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/fail.hpp"
#include "store/branch/branch_writer_impl.hpp"
#include "store/page_map/overlay.hpp"

namespace vellum::store {
namespace {

// A checkpoint starts when the epoch has this size. The rest of a larger half is for the commits
// during the checkpoint. The next checkpoint covers all of those.
constexpr std::uint32_t kWorthBytes = 1u << 20;

}  // namespace

bool BranchWriter::Impl::checkpoint_due() const noexcept {
  const std::uint32_t half_bytes = journal->half_bytes();
  return half_bytes >= store.writer_policy().checkpoints.least_half_bytes &&
         (journal->used_bytes() >= std::min(half_bytes / 2, kWorthBytes) ||
          epoch_raw_bytes >= max_epoch_raw_bytes(half_bytes) / 2);
}

// Starts a checkpoint of the current epoch. A failure is no error: a commit makes the checkpoint when
// the journal is full.
void BranchWriter::Impl::begin_background() noexcept {
  if (background != nullptr || background_failed || !checkpoint_due()) return;
  try {
    background = std::make_unique<BackgroundCheckpoint>();
    background->version = head;
    background->pieces = epoch.size();
    background->raw_bytes = epoch_raw_bytes;
    background->used_bytes = journal->used_bytes();
    background->began = std::chrono::steady_clock::now();
    pack_io = packs->io();
    std::vector<const PageWrites*> all;
    append_pointers(epoch, all);
    auto task = [this, pieces = std::move(all)] { write_background(pieces); };
    if (store.writer_policy().checkpoints.in_call) {
      task();
    } else {
      thread.start(std::move(task));
    }
  } catch (const std::exception&) {
    background.reset();
    background_failed = true;
  }
}

// Runs on the thread. REQUIRES, until the thread is idle: no other thread uses packs, checkpointed or
// chains, or changes the pieces.
void BranchWriter::Impl::write_background(const std::vector<const PageWrites*>& pieces) noexcept {
  try {
    // Looks nothing up; keeps gc out until the records are written, if they have base pages.
    Dedup none(store);
    // Leaves two processors to the committing threads.
    const bool alone = store.pool().workers() < 3;
    EncodingThreads threads = alone ? EncodingThreads(packs->compressor())
                                    : EncodingThreads(store.pool(), packs->compressor());
    background->staged = staged_commits(background->version.sequence);
    std::vector<const PageWrites*> written;
    if (background->staged.has_value()) {
      background->staged->gc_lock.reset();  // until keep_records()
      continue_from(*background->staged, background->version);
      append_pointers(background->staged->rest, written);
    }
    auto entries =
        write_changes(background->version, background->staged.has_value() ? written : pieces, {},
                      nullptr, none, threads);
    write_map(background->version, std::move(entries), threads);
  } catch (const std::exception& e) {
    background->failure = e.what();
  } catch (...) {
    background->failure = "the background checkpoint was abandoned";  // a simulated power cut
  }
  background->took = std::chrono::steady_clock::now() - background->began;
}

// Called after a commit. Delays it so that a checkpoint that takes as long as the last one finishes
// when three quarters of the space that was free at its start are used.
void BranchWriter::Impl::keep_pace() {
  if (background == nullptr || background_took.count() == 0) return;
  assert(background->used_bytes <= journal->half_bytes());
  const double room = 0.75 * static_cast<double>(journal->half_bytes() - background->used_bytes);
  const double filled = static_cast<double>(journal->used_bytes() - background->used_bytes);
  const auto due = std::chrono::duration_cast<std::chrono::nanoseconds>(
      background_took * std::min(1.0, filled / room));
  const auto elapsed = std::chrono::steady_clock::now() - background->began;
  if (elapsed < due) thread.wait_idle_for(due - elapsed);
}

// Whether the background checkpoint is written and can be published. With `wait`, waits for the
// thread; otherwise false while it runs.
bool BranchWriter::Impl::background_written(bool wait) {
  if (background == nullptr) return false;
  if (wait) {
    thread.wait_idle();
  } else if (!thread.idle()) {
    return false;
  }
  if (background->failure.empty()) return true;
  const std::string failure = std::move(background->failure);
  drop_background();
  background_failed = true;
  if (packs->sync_failed()) {
    poison = failure;
    check_not_poisoned();
  }
  return false;
}

// REQUIRES: the thread is idle.
void BranchWriter::Impl::drop_background() noexcept {
  assert(background != nullptr && thread.idle());
  end_background();
  checkpointed.reset();  // it may be that of the staged commits
  chains.clear();
  if (packs->sync_failed()) return;
  packs->abandon();
  counted_bytes = packs->bytes_appended();
}

// Whether the next epoch has room for the commits since, and for one more. REQUIRES: a background.
bool BranchWriter::Impl::can_carry(std::size_t payload_bytes) const {
  assert(background != nullptr);
  std::size_t bytes = payload_bytes;
  for (const auto& commit : background->commits) bytes += commit.payload().size();
  return journal->carries(background->version, background->commits.size() + 1, bytes);
}

// The thread has released gc's lock. gc may have freed base pages of the background's records. Staged
// commits are pinned, but a gc that runs while they get the branch's name may read neither: it reads
// the branches first, and then the pins.
// False: gc has freed base pages, or it is running. True: gc is kept out until the background is
// published, or it cannot free records of it. REQUIRES: background_written().
bool BranchWriter::Impl::keep_records() {
  assert(background != nullptr);
  if (!packs->has_bases() && !background->staged.has_value()) return true;
  background->gc_lock = GcShared::try_lock(store);
  if (background->gc_lock.has_value() && packs->bases_whole()) return true;
  background->gc_lock.reset();
  return false;
}

// Starts the epoch of the background checkpoint, with `commit` as its last commit if that is not
// null: the commit point of both. REQUIRES: background_written(), keep_records().
void BranchWriter::Impl::publish_background(const format::FrameBuffer* commit) {
  assert(background != nullptr && background->failure.empty() && thread.idle());
  std::vector<format::Payload> commits;
  for (const auto& since : background->commits) commits.push_back(since.payload());
  if (commit != nullptr) commits.push_back(commit->payload());
  try {
    journal->start_epoch(background->version, commits);
  } catch (const std::exception& e) {
    background->gc_lock.reset();
    if (journal->sync_failed()) poison = e.what();
    throw;
  }
  packs->note_committed();
  counted_bytes = packs->bytes_appended();
  format::Version& written = background->version;
  background_failed = false;
  background_took = background->took;
  if (written.runs != head.runs) checkpointed.reset();
  head.runs = std::move(written.runs);
  head.pages_changed = written.pages_changed;
  head.bytes_added = written.bytes_added;
  head.active_pack = written.active_pack;
  head.active_pack_end_bytes = written.active_pack_end_bytes;
  head.next_pack_number = written.next_pack_number;
  assert(background->pieces <= epoch.size() && background->raw_bytes <= epoch_raw_bytes);
  epoch.erase(epoch.begin(),
              std::next(epoch.begin(), static_cast<std::ptrdiff_t>(background->pieces)));
  epoch_raw_bytes -= background->raw_bytes;
  end_background();
}

// Ends the background checkpoint: publishes or drops it. Must precede every other write to the packs.
void BranchWriter::Impl::settle_background() {
  if (!background_written(true)) return;
  if (can_carry(0) && keep_records()) {
    publish_background(nullptr);
  } else {
    drop_background();
  }
}

// The thread's bytes count with the commit that publishes them. Its flushes and its time do not.
void BranchWriter::Impl::end_background() noexcept {
  background.reset();
  IoCost by_thread = packs->io() - pack_io;
  by_thread.bytes_written = 0;
  background_io = background_io + by_thread;
}

}  // namespace vellum::store
