// remote/fetch/remote_piece.hpp: a piece of a remote, as the fault handler reads it.
//
// A reader that finds the piece absent puts it into the fetcher's queue and waits on a futex. A
// fetcher thread fetches it and opens its copy, and may close the copy when it has no readers.
//
//   absent ---request()---> wanted ---fetched()---> ready ---retire()---> retiring ---> absent
//                            |  ^                    |
//                    failed()|  |request()           |await() with `proven`
//                            v  |                    v
//                           failed                 wanted
//
// Threads: read(), read_part(), has_part_with(), await() and the files of in_pack() from any
// thread, also in the fault handler; the rest is for the fetcher.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/read_only_file.hpp"
#include "remote/fetch/piece_index.hpp"
#include "remote/fetch/piece_parts.hpp"
#include "remote/objects/piece_list.hpp"

namespace vellum::remote {

class RemotePiece;

// The interface of the fetcher to pieces.
class PieceSource {
 public:
  virtual ~PieceSource() = default;
  // Whether this process has its threads: a forked child has none.
  virtual bool is_of_this_process() const noexcept = 0;
  // Puts the piece into the queue. Called in the fault handler, once for each transition to
  // kWanted.
  virtual void enqueue(RemotePiece& piece) noexcept = 0;
  // A piece that was read ahead has its first reader. Called in the fault handler.
  virtual void note_read_ahead_used(RemotePiece& piece) noexcept = 0;
  virtual std::chrono::milliseconds timeout() const noexcept = 0;
};

class RemotePiece {
 public:
  // `path` is for messages.
  RemotePiece(PieceSource& source, const PieceName& name, std::string path,
              std::vector<PackSpan> spans);
  ~RemotePiece();
  RemotePiece(const RemotePiece&) = delete;
  RemotePiece& operator=(const RemotePiece&) = delete;

  const PieceName& name() const noexcept { return name_; }
  const std::string& path() const noexcept { return path_; }

  struct FetchFailure {
    const char* reason = nullptr;  // static text
    int os_errno = 0;              // 0: the piece is missing or damaged
  };
  // Null until the piece is fetched for the first time, or set_index() is called. Then permanent.
  const PieceIndex* index() const noexcept { return index_.load(); }
  // Waits until the piece is ready. False: `failure` has the reason. With `proven`, the hash of the
  // whole piece must be checked, and not only its index.
  bool await(bool proven, FetchFailure& failure) noexcept;
  // Waits for the piece and reads from it. 0, or an errno.
  int read(bool proven, std::span<std::byte> out, std::uint64_t at_bytes) noexcept;
  // Whether parts of the piece are present that have the record.
  bool has_part_with(const IndexedRecord& record) noexcept;
  // Reads from a part. Nullopt: no part has the first byte.
  std::optional<int> read_part(std::span<std::byte> out, std::uint64_t at_bytes) noexcept;
  // The records of a pack as a file: its offsets are those of the pack's own file. Null: the piece
  // has no records of that pack.
  const base::File* in_pack(std::uint64_t pack, bool proven) const noexcept;

  // For EarlyParts, which fetches parts concurrently with the fetcher.
  bool is_requested() const noexcept;  // or ready
  void set_index(std::unique_ptr<const PieceIndex> index) noexcept;
  // Keeps parts until drop_parts(). False: it has others. REQUIRES: index() is not null.
  bool take_parts(std::unique_ptr<const PieceParts> parts) noexcept;
  void drop_parts() noexcept;

  // For the fetcher.
  bool request() noexcept;  // false: it is requested or ready
  bool is_waited_for() const noexcept { return waiters_.load() != 0; }
  // A reader will wait for it soon: treat it as if a reader waited now.
  void note_wanted_soon() noexcept { is_wanted_soon_.store(true); }
  bool take_wanted_soon() noexcept { return is_wanted_soon_.exchange(false); }
  bool must_be_proven() const noexcept { return proof_wanted_.load(); }
  bool is_ready() const noexcept;
  std::uint64_t last_use() const noexcept { return last_use_.load(std::memory_order_relaxed); }
  // REQUIRES, of these three: its state is kWanted, and the caller has removed it from the queue.
  void close_file() noexcept;
  void fetched(std::unique_ptr<base::File> file, std::unique_ptr<const PieceIndex> index,
               bool is_proven, bool is_ahead) noexcept;
  void failed(const FetchFailure& failure) noexcept;
  // Closes the file if the piece is ready. False: it is in another state.
  bool retire() noexcept;

  // The next piece in the list of a version; for read-ahead.
  std::atomic<RemotePiece*> following{nullptr};
  RemotePiece* next_in_queue = nullptr;  // of the fetcher

 private:
  class PackView;
  enum PieceState : std::uint32_t { kAbsent, kWanted, kReady, kRetiring, kFailed };

  bool is_usable(std::uint32_t state, bool proven) const noexcept {
    return state == kReady && (!proven || is_proven_.load());
  }
  bool timed_out_recently() const noexcept;
  void wait_for_readers() const noexcept;
  void set_state(PieceState state) noexcept;

  PieceSource& source_;
  const PieceName name_;
  const std::string path_;
  std::vector<std::unique_ptr<PackView>> packs_;  // two for each pack
  std::atomic<std::uint32_t> state_{kAbsent};
  std::atomic<std::uint32_t> readers_{0}, waiters_{0};
  std::atomic<bool> is_proven_{false}, proof_wanted_{false}, is_ahead_{false},
      is_wanted_soon_{false};
  std::atomic<std::uint64_t> last_use_{0};
  std::atomic<const PieceIndex*> index_{nullptr};
  std::atomic<const PieceParts*> parts_{nullptr};
  std::atomic<const char*> reason_{nullptr};
  std::atomic<int> os_errno_{0};
  std::atomic<std::int64_t> timed_out_ns_{INT64_MIN};  // of the last wait without success
  std::unique_ptr<base::File> file_;                   // while it is ready
};

}  // namespace vellum::remote
