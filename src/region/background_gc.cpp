#include "region/background_gc.hpp"

#include <sched.h>

#include <algorithm>
#include <cassert>
#include <cstdio>

#include "base/bytes/mix64.hpp"
#include "base/threads/signals_blocked.hpp"
#include "store/catalog/space_note.hpp"
#include "store/gc/gc.hpp"

namespace vellum::region {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kShortPatience = 200ms;       // for locks, in the background
constexpr auto kLongestWait = 1s;            // of a commit or of close() for the thread
constexpr std::uint64_t kAfterAnError = 16;  // times as many bytes until the next check

// The scheduling of only the calling thread (sched(7), Linux). A gc must not read and count with
// inherited real-time scheduling.
class Scheduling {
 public:
  Scheduling() : policy_(::sched_getscheduler(0)) {
    ::sched_getparam(0, &param_);
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_OTHER, &none);
  }
  // For steps: a commit may wait for the file that a step has locked, and thus for this thread.
  void as_commits() noexcept {
    if (policy_ != SCHED_OTHER) ::sched_setscheduler(0, policy_, &param_);
    policy_ = SCHED_OTHER;
  }

 private:
  int policy_;
  sched_param param_{};
};

}  // namespace

BackgroundGc::BackgroundGc(std::shared_ptr<store::StoreDirectory> core, const format::Version& head)
    : core_(std::move(core)),
      policy_(core_->writer_policy().gc),
      position_bytes_(head.next_pack_number * core_->superblock().pack_bytes +
                      head.active_pack_end_bytes +
                      base::mix64(head.branch_id) % policy_.step_bytes),
      looked_at_bytes_(position_bytes_),
      step_bytes_(policy_.step_bytes),
      ahead_bytes_(policy_.ahead_bytes),
      deadline_(Clock::time_point::max()) {
  assert(core_ != nullptr && policy_.step_bytes != 0);
}

BackgroundGc::~BackgroundGc() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void BackgroundGc::note_written(std::uint64_t bytes) noexcept {
  assert(!stop_);
  position_bytes_ += bytes;
  if (!wait_idle(0ms)) {
    if (!pacing_.keep_in_step(bytes, ahead_bytes_) || !wait_idle(kLongestWait)) return;
  }
  if (position_bytes_ - looked_at_bytes_ >= step_bytes_) start();
}

void BackgroundGc::start() noexcept {
  looked_at_bytes_ = position_bytes_;
  if (policy_.in_call) return look();
  if (thread_.joinable()) thread_.join();
  {
    const std::lock_guard lock(mutex_);
    assert(!busy_);
    busy_ = true;
  }
  try {
    const base::SignalsBlocked blocked;
    thread_ = std::thread([this] {
      Scheduling scheduling;
      look([&] { scheduling.as_commits(); });
      const std::lock_guard lock(mutex_);
      busy_ = false;
      idle_.notify_all();
    });
  } catch (const std::exception&) {  // no thread available: the next step tries again
    const std::lock_guard lock(mutex_);
    busy_ = false;
  }
}

bool BackgroundGc::wait_idle(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, longest, [&] { return !busy_; });
}

void BackgroundGc::look(const std::function<void()>& at_steps) noexcept {
  try {
    const store::GcOutlook outlook = store::gc_outlook(*core_, policy_.slack_bytes);
    step_bytes_ = std::max(policy_.step_bytes, outlook.due_at_bytes / 8);
    ahead_bytes_ = std::max(policy_.ahead_bytes, outlook.due_at_bytes / 2);
    if (outlook.is_due()) collect(kShortPatience, at_steps);
  } catch (const Stopped&) {
  } catch (const Error& e) {
    if (e.code() == Errc::busy) return;
    step_bytes_ = kAfterAnError * step_bytes_;
    report(e.what());
  } catch (const std::exception& e) {
    step_bytes_ = kAfterAnError * step_bytes_;
    report(e.what());
  }
}

bool BackgroundGc::collect(std::chrono::milliseconds patience,
                           const std::function<void()>& at_steps) {
  store::GcPace pace;
  pace.patience = patience;
  pace.flush_census = false;
  pace.between_steps = [this] { stop_if_asked(); };
  GcPacing::Collection collection(pacing_);
  pace.before_change = [&](std::uint64_t freed_bytes) {
    stop_if_asked();
    if (at_steps) at_steps();
    collection.next_step(freed_bytes);
  };
  return store::collect_garbage(*core_, false, nullptr, 0, pace).freed_bytes != 0;
}

void BackgroundGc::stop_if_asked() const {
  if (stop_ || Clock::now() > deadline_.load()) throw Stopped{};
}

// A gc in progress may have started before the disk was full: another one follows.
bool BackgroundGc::make_room() noexcept {
  try {
    const bool one_at_work = !wait_idle(0ms);
    wait_idle(store::kGcPatience);
    return collect(store::kGcPatience) || one_at_work;
  } catch (...) {
    return false;  // the caller has an error to report
  }
}

void BackgroundGc::finish() noexcept {
  deadline_ = Clock::now() + kLongestWait;
  wait_idle(kLongestWait);
  const bool at_a_step = looked_at_bytes_ / step_bytes_ != position_bytes_ / step_bytes_;
  if (at_a_step && wait_idle(0ms)) look();
}

void BackgroundGc::report(const char* problem) noexcept {
  if (reported_) return;
  reported_ = true;
  std::fprintf(stderr, "vellum: background garbage collection failed: %s\n", problem);
}

}  // namespace vellum::region
