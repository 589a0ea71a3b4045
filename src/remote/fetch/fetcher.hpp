// remote/fetch/fetcher.hpp: the threads that bring pieces of a remote here.
//
// Pieces that somebody waits for go first. Where pieces are read in order, those that follow are
// fetched ahead. During an outage a thread tries again for as long as somebody waits, up to the
// longest wait.
//
// Threads: all calls from any thread; enqueue() and note_read_ahead_used() also in the fault handler.
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
  // `remote` and `cache` outlive it.
  Fetcher(const Remote& remote, PieceCache& cache, std::chrono::milliseconds timeout);
  ~Fetcher() override { stop(); }

  // Ends the threads. No piece comes any more.
  void stop() noexcept;
  bool is_of_this_process() const noexcept override;

  void enqueue(RemotePiece& piece) noexcept override;
  void note_read_ahead_used(RemotePiece& piece) noexcept override;
  std::chrono::milliseconds timeout() const noexcept override { return timeout_; }

  // Fetches pieces that nobody waits for yet.
  void fetch_ahead(std::span<RemotePiece* const> pieces);
  // Fetches pieces that somebody waits for soon. They are no steps of reading in order. Without a
  // cache, so many as memory has room for.
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
  const std::uint32_t owner_;  // the process (base::fork_count()): a fork has none of the threads
  std::atomic<RemotePiece*> queue_{nullptr};  // wanted, the last one first
  std::atomic<RemotePiece*> used_read_ahead_{nullptr};
  std::atomic<std::uint32_t> work_{0};  // changes when there is something to do

  std::mutex mutex_;  // guards what follows
  std::condition_variable stopping_changed_;
  bool stopping_ = false;
  std::deque<RemotePiece*> waiting_, ahead_;
  RemotePiece* expected_ = nullptr;  // the piece that comes next where they are read in order
  std::size_t window_ = 0;           // how many pieces are fetched ahead
  std::vector<OpenPiece> open_pieces_;
  std::set<std::string> reasons_;  // texts of failures, which pieces refer to
  std::vector<std::thread> threads_;
};

}  // namespace vellum::remote
