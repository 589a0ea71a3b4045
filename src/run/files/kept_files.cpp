// Files that the program has closed, and that are live a little longer: a program that opens a
// file, appends to it and closes it again and again makes one commit instead of many.
//
// Until then a kept file needs nothing: its bytes are in the file, where other processes read them
// and a kill leaves them. It does need the branch, so another process that opens the file for
// writing has to wait, and asks for the branch (store/stream/image_tail.hpp).
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vellum/error.hpp>

#include "base/threads/start_thread.hpp"
#include "run/files/file_states.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kDelay(100);  // from the last close(2) to the commit
constexpr std::chrono::milliseconds kAskedEvery(10);
constexpr std::size_t kMaxKept = 8;

}  // namespace

// `others`, which may contain the file itself, are in the order of their first change. If one of
// them has changes that only a commit can keep, all are committed.
bool FileStates::keep(OpenFile& open, const LiveFiles& others) {
  if (open.live->written_since() == 0 || (!open.kept && kept_ == kMaxKept)) return false;
  for (const auto& other : others)
    if (!other->is_kept() && !other->keep()) return false;
  if (!open.live->keep() || !start_settling()) return false;
  settle_at_ = Clock::now() + kDelay;
  if (!open.kept) ++kept_;
  open.kept = true;
  open.live->note_closed(true);
  return true;
}

void FileStates::note_used(OpenFile& open) noexcept {
  if (!open.kept) return;
  --kept_;
  open.kept = false;
  if (open.live != nullptr) open.live->note_closed(false);
}

// The file counts as kept until its region is closed: fork(2) waits for that (settle()), before the
// handlers of pthread_atfork(3) take locks that closing needs.
void FileStates::remove(std::size_t number) {
  const bool was_kept = files_[number].kept;
  files_.remove(number);
  if (was_kept) --kept_;
}

void FileStates::close_kept() {
  for (std::size_t i = 0; any_kept() && i < files_.end(); ++i) {
    if (!files_.has(i) || !files_[i].kept) continue;
    OpenFile& open = files_[i];
    if (open.is_own() && open.live->written_since() != 0) continue;
    remove(i);
  }
}

// Another process has given the name to another file. A LiveFile of the branch would be awaited
// (open_live()).
void FileStates::release_kept(const std::string& branch) {
  for (std::size_t i = 0; any_kept() && i < files_.end(); ++i)
    if (files_.has(i) && files_[i].kept && files_[i].target.branch == branch) release(i);
}

// Files that were first changed after all kept ones are in no hurry: the program may be in the
// middle of a transaction.
void FileStates::settle() {
  if (!any_kept()) return;
  const int before = errno;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < files_.end(); ++i)
    if (files_.has(i) && files_[i].kept && files_[i].is_own())
      last = std::max(last, files_[i].live->written_since());
  for (const auto& live : files_.written())
    if (live->written_since() <= last) live->commit();
  close_kept();
  errno = before;
}

// After a fork(2) that settle() did not precede. This process does not have the file open, and may
// open it like any other.
bool FileStates::is_parents_kept(const OpenFile& open) noexcept {
  return open.live != nullptr && open.live->inherited() && open.descriptors == 0 &&
         open.mappings.empty();
}

void FileStates::forget_kept() noexcept {
  settling_ = false;
  for (std::size_t i = 0; i < files_.end(); ++i)
    if (files_.has(i)) note_used(files_[i]);
}

bool FileStates::is_asked_for() {
  for (std::size_t i = 0; i < files_.end(); ++i)
    if (files_.has(i) && files_[i].kept && files_[i].is_own() && files_[i].live->is_asked_for())
      return true;
  return false;
}

bool FileStates::start_settling() {
  if (settling_) return true;
  const ReentrancyGuard inside;
  try {
    base::start_thread("commits closed files", [this] { settle_later(); }).detach();
  } catch (const Error&) {
    return false;
  }
  return settling_ = true;
}

// A thread of its own, which ends when nothing is kept. After a failed commit, the end of the
// process and each flush try again.
void FileStates::settle_later() {
  const ReentrancyGuard inside;
  std::unique_lock lock(mutex_);
  while (any_kept() && Clock::now() < settle_at_ && !is_asked_for()) {
    lock.unlock();
    std::this_thread::sleep_for(kAskedEvery);
    lock.lock();
  }
  settle();
  settling_ = false;
}

}  // namespace vellum::preload
