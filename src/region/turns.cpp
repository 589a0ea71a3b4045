#include "region/turns.hpp"

namespace vellum::region {

namespace {

constexpr std::uint64_t kFreeLagBytes = 12u << 20;  // gaps between commits may make up for it

}  // namespace

Turns::Commit::Commit(Turns& turns) noexcept : turns_(&turns) {
  const std::lock_guard lock(turns_->mutex_);
  ++turns_->commits_;
}

Turns::Commit::~Commit() {
  if (turns_ == nullptr) return;
  {
    const std::lock_guard lock(turns_->mutex_);
    --turns_->commits_;
  }
  turns_->changed_.notify_all();
}

Turns::Collection::Collection(Turns& turns) noexcept : turns_(turns) {
  const std::lock_guard lock(turns_.mutex_);
  turns_.collecting_ = true;
  turns_.stepping_ = false;
  turns_.written_bytes_ = turns_.freed_bytes_ = 0;
}

Turns::Collection::~Collection() {
  {
    const std::lock_guard lock(turns_.mutex_);
    turns_.collecting_ = turns_.stepping_ = false;
  }
  turns_.changed_.notify_all();
}

void Turns::Collection::next_step(std::uint64_t freed_bytes) noexcept {
  std::unique_lock lock(turns_.mutex_);
  turns_.stepping_ = true;
  turns_.freed_bytes_ = freed_bytes;
  turns_.changed_.notify_all();
  turns_.changed_.wait_for(lock, turns_.longest_of_step_, [&] { return turns_.commits_ == 0; });
}

bool Turns::keep_in_step(std::uint64_t written_bytes, std::uint64_t most_lag_bytes) noexcept {
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
