#include "region/gc_pacing.hpp"

#include <cassert>

namespace vellum::region {

namespace {

constexpr std::uint64_t kFreeLagBytes = 12u << 20;  // gaps between commits may make up for it

}  // namespace

GcPacing::Commit::Commit(GcPacing& turns) noexcept : pacing_(&turns) {
  const std::lock_guard lock(pacing_->mutex_);
  ++pacing_->commits_;
}

GcPacing::Commit::~Commit() {
  if (pacing_ == nullptr) return;
  {
    const std::lock_guard lock(pacing_->mutex_);
    assert(pacing_->commits_ > 0);
    --pacing_->commits_;
  }
  pacing_->changed_.notify_all();
}

GcPacing::Collection::Collection(GcPacing& turns) noexcept : pacing_(turns) {
  const std::lock_guard lock(pacing_.mutex_);
  pacing_.collecting_ = true;
  pacing_.stepping_ = false;
  pacing_.written_bytes_ = pacing_.freed_bytes_ = 0;
}

GcPacing::Collection::~Collection() {
  {
    const std::lock_guard lock(pacing_.mutex_);
    pacing_.collecting_ = pacing_.stepping_ = false;
  }
  pacing_.changed_.notify_all();
}

void GcPacing::Collection::next_step(std::uint64_t freed_bytes) noexcept {
  std::unique_lock lock(pacing_.mutex_);
  pacing_.stepping_ = true;
  pacing_.freed_bytes_ = freed_bytes;
  pacing_.changed_.notify_all();
  pacing_.changed_.wait_for(lock, pacing_.longest_of_step_, [&] { return pacing_.commits_ == 0; });
}

bool GcPacing::keep_in_step(std::uint64_t written_bytes, std::uint64_t most_lag_bytes) noexcept {
  std::unique_lock lock(mutex_);
  if (!collecting_) return false;
  written_bytes_ += written_bytes;
  changed_.wait_for(lock, longest_of_commit_,
                    [&] { return !stepping_ || lag_bytes() <= kFreeLagBytes; });
  if (!collecting_ || lag_bytes() < most_lag_bytes) return false;
  written_bytes_ = freed_bytes_;
  return true;
}

}  // namespace vellum::region
