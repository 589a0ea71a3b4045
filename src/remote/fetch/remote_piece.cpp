#include "remote/fetch/remote_piece.hpp"

#include <sched.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "base/fail.hpp"
#include "base/threads/futex.hpp"

namespace vellum::remote {
namespace {

constexpr std::chrono::nanoseconds kPageInTime = std::chrono::milliseconds(5);

std::int64_t now_ns() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

// A pack's records in a piece. A read may extend past the end of a record, where the bytes differ
// from the pack's: the readers of records check them.
class RemotePiece::PackView final : public base::ReadOnlyFile {
 public:
  PackView(RemotePiece& piece, std::uint64_t pack, bool proven)
      : piece_(piece), pack_(pack), proven_(proven) {}

  std::uint64_t pack() const noexcept { return pack_; }
  bool proven() const noexcept { return proven_; }

  const std::string& path() const noexcept override { return piece_.path(); }
  std::uint64_t size_bytes() const override { return format::kMaxPackOffsetBytes; }
  void pread(std::span<std::byte> out, std::uint64_t offset_bytes) const override {
    const int problem = try_pread(out, offset_bytes);
    if (problem == 0) return;
    fail(problem == ENODATA ? Errc::corrupted : Errc::io,
         "{}: the record at byte {} of pack {:016x} cannot be read", path(), offset_bytes, pack_);
  }
  int try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept override {
    if (const auto problem = read_part(out, offset_bytes)) return *problem;
    FetchFailure failure;
    if (!piece_.await(proven_, failure)) return failure.os_errno == 0 ? EIO : failure.os_errno;
    const auto* record = piece_.index()->at_place(pack_, offset_bytes);
    if (record == nullptr) return ENODATA;
    return piece_.read(proven_, out,
                       record->at_bytes + (offset_bytes - record->place.offset_bytes));
  }
  bool pin_byte(std::uint64_t) override { return true; }
  bool byte_locked(std::uint64_t) const override { return false; }
  void unpin_byte(std::uint64_t) override {}
  std::vector<std::uint64_t> pinned_bytes() const override { return {}; }
  bool replaced() const override { return false; }
  std::uint64_t allocated_bytes() const override { return 0; }

 private:
  std::optional<int> read_part(std::span<std::byte> out,
                               std::uint64_t offset_bytes) const noexcept {
    if (proven_ || piece_.parts_.load() == nullptr) return std::nullopt;
    const auto* record = piece_.index()->at_place(pack_, offset_bytes);
    if (record == nullptr) return std::nullopt;
    return piece_.read_part(out, record->at_bytes + (offset_bytes - record->place.offset_bytes));
  }

  RemotePiece& piece_;
  const std::uint64_t pack_;
  const bool proven_;
};

RemotePiece::RemotePiece(PieceSource& source, const PieceName& name, std::string path,
                         std::vector<PackSpan> spans)
    : source_(source), name_(name), path_(std::move(path)) {
  for (const PackSpan& span : spans) {
    for (const bool proven : {false, true}) {
      packs_.push_back(std::make_unique<PackView>(*this, span.pack, proven));
    }
  }
}

RemotePiece::~RemotePiece() {
  delete index_.load();
  delete parts_.load();
}

const base::File* RemotePiece::in_pack(std::uint64_t pack, bool proven) const noexcept {
  for (const auto& of_pack : packs_) {
    if (of_pack->pack() == pack && of_pack->proven() == proven) return of_pack.get();
  }
  return nullptr;
}

bool RemotePiece::is_ready() const noexcept { return state_.load() == kReady; }

bool RemotePiece::request() noexcept {
  for (const PieceState from : {kAbsent, kFailed}) {
    std::uint32_t expected = from;
    if (state_.compare_exchange_strong(expected, kWanted)) return true;
  }
  return false;
}

// A page-in calls await() several times; it waits only once.
bool RemotePiece::timed_out_recently() const noexcept {
  return now_ns() - kPageInTime.count() < timed_out_ns_.load();
}

bool RemotePiece::await(bool proven, FetchFailure& failure) noexcept {
  if (is_usable(state_.load(), proven)) return true;
  if (!source_.is_of_this_process()) {
    failure = {"the store was opened before a fork: open it again in this process", EINVAL};
    return false;
  }
  using Clock = std::chrono::steady_clock;
  const auto until =
      Clock::now() + (timed_out_recently() ? Clock::duration::zero() : source_.timeout());
  waiters_.fetch_add(1);
  if (proven) proof_wanted_.store(true);
  bool has_waited = false, is_usable_now = false;
  for (;;) {
    std::uint32_t state = state_.load();
    is_usable_now = is_usable(state, proven);
    if (is_usable_now || (state == kFailed && has_waited)) break;
    if (state != kWanted && state != kRetiring) {
      has_waited = true;
      if (state_.compare_exchange_strong(state, kWanted)) source_.enqueue(*this);
      continue;
    }
    has_waited = true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) break;
    base::futex_wait(state_, state, left);
  }
  waiters_.fetch_sub(1);
  if (is_usable_now) return true;
  const bool has_failed = state_.load() == kFailed;
  failure.reason = has_failed ? reason_.load() : "the remote has not answered in time";
  failure.os_errno = has_failed ? os_errno_.load() : ETIMEDOUT;
  if (failure.os_errno != 0) timed_out_ns_.store(now_ns());
  return false;
}

int RemotePiece::read(bool proven, std::span<std::byte> out, std::uint64_t at_bytes) noexcept {
  for (;;) {
    readers_.fetch_add(1);
    if (is_usable(state_.load(), proven)) {
      const int problem = file_->try_pread(out, at_bytes);
      last_use_.store(static_cast<std::uint64_t>(now_ns()), std::memory_order_relaxed);
      const bool is_first = is_ahead_.load(std::memory_order_relaxed) && is_ahead_.exchange(false);
      readers_.fetch_sub(1);
      if (is_first) source_.note_read_ahead_used(*this);
      return problem;
    }
    readers_.fetch_sub(1);
    FetchFailure failure;
    if (!await(proven, failure)) return failure.os_errno == 0 ? EIO : failure.os_errno;
  }
}

std::optional<int> RemotePiece::read_part(std::span<std::byte> out,
                                          std::uint64_t at_bytes) noexcept {
  std::optional<int> problem;
  readers_.fetch_add(1);
  if (const PieceParts* const parts = parts_.load()) problem = parts->read(out, at_bytes);
  readers_.fetch_sub(1);
  return problem;
}

bool RemotePiece::has_part_with(const IndexedRecord& record) noexcept {
  readers_.fetch_add(1);
  const PieceParts* const parts = parts_.load();
  const bool has = parts != nullptr && parts->has(record.at_bytes, record.size_bytes);
  readers_.fetch_sub(1);
  return has;
}

bool RemotePiece::is_requested() const noexcept {
  const std::uint32_t state = state_.load();
  return state == kWanted || state == kReady;
}

void RemotePiece::set_index(std::unique_ptr<const PieceIndex> index) noexcept {
  const PieceIndex* none = nullptr;
  if (index_.compare_exchange_strong(none, index.get())) {
    static_cast<void>(index.release());
  }
}

bool RemotePiece::take_parts(std::unique_ptr<const PieceParts> parts) noexcept {
  assert(index() != nullptr);
  const PieceParts* none = nullptr;
  if (!parts_.compare_exchange_strong(none, parts.get())) return false;
  static_cast<void>(parts.release());
  return true;
}

void RemotePiece::drop_parts() noexcept {
  const std::unique_ptr<const PieceParts> parts(parts_.exchange(nullptr));
  wait_for_readers();
}

// Reads are short, and a later reader finds the state changed.
void RemotePiece::wait_for_readers() const noexcept {
  while (readers_.load() != 0) sched_yield();
}

void RemotePiece::set_state(PieceState state) noexcept {
  state_.store(state);
  base::futex_wake(state_, INT32_MAX);
}

void RemotePiece::close_file() noexcept {
  assert(state_.load() == kWanted || state_.load() == kRetiring);
  wait_for_readers();
  file_ = nullptr;
  is_proven_.store(false);
}

void RemotePiece::fetched(std::unique_ptr<base::File> file, std::unique_ptr<const PieceIndex> index,
                          bool is_proven, bool is_ahead) noexcept {
  assert(state_.load() == kWanted || state_.load() == kAbsent);  // kAbsent: the roots of a list
  assert(file != nullptr);
  file_ = std::move(file);
  set_index(std::move(index));
  is_proven_.store(is_proven);
  is_ahead_.store(is_ahead);
  last_use_.store(static_cast<std::uint64_t>(now_ns()));
  set_state(kReady);
}

void RemotePiece::failed(const FetchFailure& failure) noexcept {
  assert(state_.load() == kWanted);
  assert(failure.reason != nullptr);
  reason_.store(failure.reason);
  os_errno_.store(failure.os_errno);
  set_state(kFailed);
}

bool RemotePiece::retire() noexcept {
  std::uint32_t expected = kReady;
  if (!state_.compare_exchange_strong(expected, kRetiring)) return false;
  close_file();
  set_state(kAbsent);
  return true;
}

}  // namespace vellum::remote
