#include "remote/fetch/fetcher.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "base/bytes/sha256.hpp"
#include "base/fail.hpp"
#include "base/files/read_only_file.hpp"
#include "base/threads/fork_count.hpp"
#include "base/threads/futex.hpp"
#include "base/threads/start_thread.hpp"
#include "remote/fetch/bytes_file.hpp"

namespace vellum::remote {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxFetcherThreads = 16;  // each holds a piece in memory while it fetches
constexpr std::size_t kMaxAhead = 4;            // pieces of 4 MiB
constexpr std::size_t kMaxOpen = 256;
constexpr std::size_t kMaxInMemory = 16;  // without a cache
constexpr std::size_t kMaxReasons = 256;
constexpr auto kFirstRetryPause = 50ms, kMaxRetryPause = 2000ms;

}  // namespace

Fetcher::Fetcher(const Remote& remote, PieceCache& cache, std::chrono::milliseconds timeout)
    : remote_(remote), cache_(cache), timeout_(timeout), owner_(base::fork_count()) {
  const std::size_t count = std::min(kMaxFetcherThreads, remote.objects().connections());
  assert(count > 0);
  threads_.reserve(count);
  try {
    while (threads_.size() < count)
      threads_.push_back(base::start_thread("fetches pieces", [this] { run(); }));
  } catch (const Error&) {  // the system grants no more threads: fewer do the work
    if (threads_.empty()) throw;
  }
}

void Fetcher::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopping_changed_.notify_all();
  work_.fetch_add(1);
  base::futex_wake(work_, INT32_MAX);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool Fetcher::is_of_this_process() const noexcept { return base::fork_count() == owner_; }

void Fetcher::enqueue(RemotePiece& piece) noexcept {
  assert(is_of_this_process());
  piece.next_in_queue = queue_.load();
  while (!queue_.compare_exchange_weak(piece.next_in_queue, &piece)) {
  }
  work_.fetch_add(1);
  base::futex_wake(work_, 1);
}

void Fetcher::note_read_ahead_used(RemotePiece& piece) noexcept {
  used_read_ahead_.store(&piece);
  work_.fetch_add(1);
  base::futex_wake(work_, 1);
}

void Fetcher::fetch_ahead(std::span<RemotePiece* const> pieces) {
  {
    const std::lock_guard lock(mutex_);
    for (RemotePiece* piece : pieces) {
      if (piece->request()) ahead_.push_back(piece);
    }
  }
  work_.fetch_add(1);
  base::futex_wake(work_, INT32_MAX);
}

void Fetcher::fetch_early(std::span<RemotePiece* const> pieces) {
  if (!is_of_this_process()) return;
  if (!cache_.keeps()) pieces = pieces.first(std::min(pieces.size(), kMaxInMemory));
  {
    const std::lock_guard lock(mutex_);
    std::deque<RemotePiece*> early;
    for (RemotePiece* piece : pieces) {
      piece->note_wanted_soon();
      if (piece->request()) early.push_back(piece);
    }
    ahead_.insert(ahead_.begin(), early.begin(), early.end());
  }
  work_.fetch_add(1);
  base::futex_wake(work_, INT32_MAX);
}

void Fetcher::run() {
  for (;;) {
    const std::uint32_t seen = work_.load();
    if (RemotePiece* const piece = take()) {
      serve(*piece);
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    base::futex_wait(work_, seen);
  }
}

// The next piece to fetch; null: none.
RemotePiece* Fetcher::take() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return nullptr;
  const auto first_fresh = waiting_.size();
  for (RemotePiece* piece = queue_.exchange(nullptr); piece != nullptr;
       piece = piece->next_in_queue) {
    waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(first_fresh), piece);
  }
  if (RemotePiece* const used = used_read_ahead_.exchange(nullptr)) note_order(*used, true);
  if (!waiting_.empty()) {
    RemotePiece* const piece = waiting_.front();
    waiting_.pop_front();
    note_order(*piece, false);
    return piece;
  }
  if (ahead_.empty()) return nullptr;
  auto at = std::find_if(ahead_.begin(), ahead_.end(),
                         [](const RemotePiece* piece) { return piece->is_waited_for(); });
  if (at == ahead_.end()) at = ahead_.begin();
  RemotePiece* const piece = *at;
  ahead_.erase(at);
  return piece;
}

// The window doubles each time that the piece is the expected one. REQUIRES: mutex_ is held.
void Fetcher::note_order(RemotePiece& piece, bool was_ahead) {
  const bool is_expected = was_ahead || &piece == expected_;
  window_ = is_expected ? std::clamp<std::size_t>(2 * window_, 1, kMaxAhead) : 0;
  RemotePiece* next = piece.following.load();
  expected_ = next;
  bool has_more = false;
  for (std::size_t i = 0; i < window_ && next != nullptr; ++i, next = next->following.load()) {
    if (!next->request()) continue;
    ahead_.push_back(next);
    has_more = true;
  }
  if (!has_more) return;
  work_.fetch_add(1);
  base::futex_wake(work_, INT32_MAX);
}

void Fetcher::serve(RemotePiece& piece) {
  const auto until = std::chrono::steady_clock::now() + timeout_;
  piece.close_file();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_pieces_, [&](const OpenPiece& open) { return open.piece == &piece; });
  }
  for (std::chrono::milliseconds time = kFirstRetryPause;;
       time = std::min(2 * time, kMaxRetryPause)) {
    try {
      if (!open_copy(piece)) fetch(piece);
      return;
    } catch (const RefusedRequest& e) {
      return piece.failed(failure_of(piece, e));
    } catch (const Error& e) {
      const bool may_pass = e.code() == Errc::io || e.code() == Errc::out_of_memory;
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      const bool again = may_pass && left.count() > 0 && piece.is_waited_for();
      if (!again || !pause(std::min(time, left))) return piece.failed(failure_of(piece, e));
    } catch (const std::exception&) {  // std::bad_alloc
      return piece.failed({"no memory for the piece", ENOMEM});
    }
  }
}

// False: stop() was called.
bool Fetcher::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !stopping_changed_.wait_for(lock, time, [&] { return stopping_; });
}

bool Fetcher::open_copy(RemotePiece& piece) {
  const PieceName& name = piece.name();
  auto file = cache_.open(name);
  if (file == nullptr) return false;
  const bool must_be_proven = piece.must_be_proven();
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(must_be_proven ? name.size_bytes : name.index_bytes));
  std::vector<PieceRecord> records;
  const bool is_sound =
      file->try_pread(bytes, 0) == 0 &&
      (!must_be_proven || base::sha256(bytes) == name.content.hash) &&
      decode_piece_index(std::span(bytes).first(static_cast<std::size_t>(name.index_bytes)),
                         remote_.file_seal(), records) == nullptr &&
      name.index_bytes + records_bytes(records) == name.size_bytes;
  if (!is_sound) {
    cache_.drop(name);
    return false;
  }
  deliver(piece, std::move(file), std::make_unique<PieceIndex>(records, name.index_bytes),
          must_be_proven, cache_.opens_in_memory());
  return true;
}

// Another process may fetch it while this one waits for the lock.
void Fetcher::fetch(RemotePiece& piece) {
  const PieceName& name = piece.name();
  const PieceCache::FetchLock lock = cache_.acquire_fetch_lock(name);
  if (open_copy(piece)) return;
  FetchedPiece got = remote_.piece(name);
  auto index = std::make_unique<PieceIndex>(got.records, name.index_bytes);
  auto file = cache_.put(name, got.bytes);
  const bool in_memory = file == nullptr;
  if (in_memory) file = std::make_unique<BytesFile>(piece.path(), std::move(got.bytes));
  deliver(piece, std::move(file), std::move(index), true, in_memory);
}

void Fetcher::deliver(RemotePiece& piece, std::unique_ptr<base::File> file,
                      std::unique_ptr<const PieceIndex> index, bool is_proven, bool in_memory) {
  {
    const std::lock_guard lock(mutex_);
    open_pieces_.push_back({&piece, in_memory});
  }
  const bool is_ahead = !piece.take_wanted_soon() && !piece.is_waited_for();
  piece.fetched(std::move(file), std::move(index), is_proven, is_ahead);
  close_oldest();
}

// Closes the least recently read piece if too many are open.
void Fetcher::close_oldest() {
  const std::lock_guard lock(mutex_);
  const auto close_one_of = [&](bool in_memory, std::size_t most) {
    const auto count = std::count_if(open_pieces_.begin(), open_pieces_.end(),
                                     [&](const OpenPiece& h) { return h.in_memory == in_memory; });
    if (static_cast<std::size_t>(count) <= most) return;
    const auto oldest = std::min_element(
        open_pieces_.begin(), open_pieces_.end(), [&](const OpenPiece& a, const OpenPiece& b) {
          return std::pair(a.in_memory != in_memory, a.piece->last_use()) <
                 std::pair(b.in_memory != in_memory, b.piece->last_use());
        });
    if (oldest->piece->retire()) open_pieces_.erase(oldest);
  };
  close_one_of(true, kMaxInMemory);
  close_one_of(false, std::min(kMaxOpen, base::descriptor_share()));
}

RemotePiece::FetchFailure Fetcher::failure_of(const RemotePiece& piece, const Error& error) {
  if (error.code() == Errc::not_found) return {"the object is missing at the remote", 0};
  const int os_errno = error.code() == Errc::corrupted       ? 0
                       : error.code() == Errc::out_of_memory ? ENOMEM
                                                             : ETIMEDOUT;
  std::string text = error.what();
  const std::string place = piece.path() + ": ";
  if (text.starts_with(place)) text.erase(0, place.size());
  const std::lock_guard lock(mutex_);
  if (reasons_.size() >= kMaxReasons) return {"the object cannot be read", os_errno};
  return {reasons_.insert(text).first->c_str(), os_errno};
}

}  // namespace vellum::remote
