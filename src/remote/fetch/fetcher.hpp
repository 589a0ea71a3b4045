// remote/fetch/fetcher.hpp: the threads that fetch pieces of a remote.
//
// Pieces with waiting readers are fetched first. If pieces are read in order, the next ones are
// read ahead. During an outage a thread retries as long as a reader waits, up to the timeout.
//
// Threads: all calls from any thread; enqueue() and note_read_ahead_used() also in the fault
// handler.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "remote/fetch/piece_cache.hpp"
#include "remote/fetch/remote_piece.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {

class Fetcher final : public PieceSource {
 public:
  // REQUIRES: `remote` and `cache` outlive it.
  Fetcher(const Remote& remote, PieceCache& cache, std::chrono::milliseconds timeout);
  ~Fetcher() override { stop(); }

  // Ends the threads. No piece is fetched afterwards.
  void stop() noexcept;
  bool is_of_this_process() const noexcept override;

  void enqueue(RemotePiece& piece) noexcept override;
  void note_read_ahead_used(RemotePiece& piece) noexcept override;
  std::chrono::milliseconds timeout() const noexcept override { return timeout_; }

  // Fetches pieces for which no reader waits yet.
  void fetch_ahead(std::span<RemotePiece* const> pieces);
  // Fetches pieces that will be read soon. They do not count as reading in order. Without a cache,
  // fetches at most as many as memory may hold.
  void fetch_early(std::span<RemotePiece* const> pieces);

 private:
  struct OpenPiece {
    RemotePiece* piece;
    bool in_memory;
  };
  void run();
  RemotePiece* take();
  void note_order(RemotePiece& piece, bool was_ahead);
  void serve(RemotePiece& piece);
  bool open_copy(RemotePiece& piece);
  void fetch(RemotePiece& piece);
  void deliver(RemotePiece& piece, std::unique_ptr<base::File> file,
               std::unique_ptr<const PieceIndex> index, bool is_proven, bool in_memory);
  void close_oldest();
  bool pause(std::chrono::milliseconds time);
  RemotePiece::FetchFailure failure_of(const RemotePiece& piece, const Error& error);

  const Remote& remote_;
  PieceCache& cache_;
  const std::chrono::milliseconds timeout_;
  const std::uint32_t
      owner_;  // the process (base::fork_count()): a forked child has none of the threads
  std::atomic<RemotePiece*> queue_{
      nullptr};  // a lock-free stack of requested pieces, the last one first
  std::atomic<RemotePiece*> used_read_ahead_{nullptr};
  std::atomic<std::uint32_t> work_{0};  // a futex; changes when there is work

  std::mutex mutex_;  // guards the members below
  std::condition_variable stopping_changed_;
  bool stopping_ = false;
  std::deque<RemotePiece*> waiting_, ahead_;
  RemotePiece* expected_ = nullptr;  // the next piece if they are read in order
  std::size_t window_ = 0;           // the number of pieces to read ahead
  std::vector<OpenPiece> open_pieces_;
  std::set<std::string> reasons_;  // the texts of failures, to which pieces point
  std::vector<std::thread> threads_;
};

}  // namespace vellum::remote
