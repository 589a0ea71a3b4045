// The writer's part of a checkpoint in the background (background_checkpoint.hpp): it begins one,
// commits beside it, and publishes it.

#include <algorithm>
#include <utility>

#include "base/fail.hpp"
#include "store/branch/branch_writer_impl.hpp"
#include "store/page_map/overlay.hpp"

namespace vellum::store {
namespace {

// So much of the journal is worth a checkpoint. The rest of a larger half is for the commits made
// while the thread is at work; the next checkpoint takes all of them.
constexpr std::uint32_t kWorthBytes = 1u << 20;

}  // namespace

bool BranchWriter::Impl::checkpoint_due() const noexcept {
  const std::uint32_t half_bytes = journal->half_bytes();
  return half_bytes >= BackgroundCheckpoint::policy().least_half_bytes &&
         (journal->used_bytes() >= std::min(half_bytes / 2, kWorthBytes) ||
          epoch_raw_bytes >= max_epoch_raw_bytes(half_bytes) / 2);
}

// Begins a checkpoint of the epoch as it is. Failing to is no error: the journal gets full, and a
// commit does it.
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
    if (BackgroundCheckpoint::policy().in_call) {
      task();
    } else {
      thread.start(std::move(task));
    }
  } catch (const std::exception&) {
    background.reset();
    background_failed = true;
  }
}

// REQUIRES, until the thread is idle: nobody else uses packs, checkpointed or chains, nor changes
// the pieces.
void BranchWriter::Impl::write_background(const std::vector<const PageWrites*>& pieces) noexcept {
  try {
    Dedup none(store);  // keeps gc out, where it has to, until the records are written
    // Two processors are left to those who commit.
    const bool alone = store.pool().workers() < 3;
    EncodingThreads threads = alone ? EncodingThreads(packs->compressor())
                                    : EncodingThreads(store.pool(), packs->compressor());
    write_checkpoint(background->version, pieces, {}, nullptr, none, threads);
  } catch (const std::exception& e) {
    background->failure = e.what();
  } catch (...) {
    background->failure = "the background was given up";  // a simulated power cut
  }
  background->took = std::chrono::steady_clock::now() - background->began;
}

// Called behind a commit. If the background takes as long as the last one did, it is done when three
// quarters of what was free of the half are full.
void BranchWriter::Impl::keep_pace() {
  if (background == nullptr || background_took.count() == 0) return;
  const double room = 0.75 * static_cast<double>(journal->half_bytes() - background->used_bytes);
  const double filled = static_cast<double>(journal->used_bytes() - background->used_bytes);
  const auto due = std::chrono::duration_cast<std::chrono::nanoseconds>(
      background_took * std::min(1.0, filled / room));
  const auto elapsed = std::chrono::steady_clock::now() - background->began;
  if (elapsed < due) thread.wait_idle_for(due - elapsed);
}

// True: the background's checkpoint can be published. Without `wait`, one that is not yet written
// cannot.
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
  end_background();
  chains.clear();
  if (packs->sync_failed()) return;
  packs->abandon();
  counted_bytes = packs->bytes_appended();
}

// Whether the epoch can begin with the commits since, and one more.
bool BranchWriter::Impl::can_carry(std::size_t payload_bytes) const {
  std::size_t bytes = payload_bytes;
  for (const auto& commit : background->commits) bytes += commit.size();
  return journal->carries(background->version, background->commits.size() + 1, bytes);
}

// The thread has let gc in again, which may have taken what the background's records stand on. False:
// it has, or is at work. Otherwise gc is kept out until the background is published.
bool BranchWriter::Impl::keep_bases() {
  if (!packs->has_bases()) return true;
  background->gc_lock = GcShared::try_lock(store);
  if (background->gc_lock.has_value() && packs->bases_whole()) return true;
  background->gc_lock.reset();
  return false;
}

// Starts the epoch of the background's checkpoint, and with it `commit`, if it is one: the commit
// point of both. REQUIRES: background_written(), keep_bases().
void BranchWriter::Impl::publish_background(std::vector<std::byte> commit) {
  auto& commits = background->commits;
  const bool one_more = !commit.empty();
  if (one_more) commits.push_back(std::move(commit));
  try {
    journal->start_epoch(background->version, commits);
  } catch (const std::exception& e) {
    background->gc_lock.reset();
    if (one_more) commits.pop_back();
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
  epoch.erase(epoch.begin(),
              std::next(epoch.begin(), static_cast<std::ptrdiff_t>(background->pieces)));
  epoch_raw_bytes -= background->raw_bytes;
  end_background();
}

// Ends the background's checkpoint: nothing else may write to the packs before.
void BranchWriter::Impl::settle_background() {
  if (!background_written(true)) return;
  if (can_carry(0) && keep_bases()) {
    publish_background({});
  } else {
    drop_background();
  }
}

// What the thread has written counts with the commit that publishes it, but no time does.
void BranchWriter::Impl::end_background() noexcept {
  background.reset();
  const IoCost& now = packs->io();
  beside.flushes += now.flushes - pack_io.flushes;
  beside.write_ns += now.write_ns - pack_io.write_ns;
  beside.flush_ns += now.flush_ns - pack_io.flush_ns;
}

}  // namespace vellum::store
