// remote/fetch/remote_piece.hpp: a piece of a remote, as the fault handler reads it.
//
// A reader that finds the piece absent asks the fetcher for it and sleeps on a futex. The fetcher's
// threads bring it here, as an open file, and may close that again when nobody reads it.
//
//   absent ---request()---> wanted ---fetched()---> ready ---retire()---> retiring ---> absent
//                         |  ^                    |
//                 failed()|  |request()               |request(proof)
//                         v  |                    v
//                        failed                 wanted
//
// Threads: try_read(), await() and the files of in_pack() from any thread, also in the fault
// handler; the rest is for the fetcher.
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

// Who brings pieces here.
class PieceSource {
 public:
  virtual ~PieceSource() = default;
  // Whether this process has its threads: a fork of the one that made it has none.
  virtual bool is_of_this_process() const noexcept = 0;
  // Puts the piece into the line. Called in the fault handler, once for each time that the piece
  // becomes wanted.
  virtual void enqueue(RemotePiece& piece) noexcept = 0;
  // A piece that was fetched ahead has found its first reader.
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
  // Null while nobody has told them and the piece has not been here yet.
  const PieceIndex* index() const noexcept { return index_.load(); }
  // Waits until the piece is here. False: `failure` says why it does not come. With `proven`, it
  // must have the hash of its name, not only a start that is sound.
  bool await(bool proven, FetchFailure& failure) noexcept;
  // Reads from the piece; waits for it. 0, or an errno.
  int read(bool proven, std::span<std::byte> out, std::uint64_t at_bytes) noexcept;
  // Whether a part of the piece is here that has the record of its contents.
  bool has_part_with(const IndexedRecord& record) noexcept;
  // Reads from a part. Nothing: no part has the first byte.
  std::optional<int> read_part(std::span<std::byte> out, std::uint64_t at_bytes) noexcept;
  // The records of a pack as a file: its offsets are those of the pack's own file. Null: the piece
  // has none of that pack.
  const base::File* in_pack(std::uint64_t pack, bool proven) const noexcept;

  // For who fetches parts, beside the fetcher.
  bool is_requested() const noexcept;  // or here
  void set_index(std::unique_ptr<const PieceIndex> index) noexcept;
  // Keeps parts, which must be dropped; they do until then. False: it has others.
  // REQUIRES: the contents are known.
  bool take_parts(std::unique_ptr<const PieceParts> parts) noexcept;
  void drop_parts() noexcept;

  // For the fetcher.
  bool request() noexcept;  // false: it is asked for, or here
  bool is_waited_for() const noexcept { return waiters_.load() != 0; }
  // Somebody waits for it soon, as if it were waited for now.
  void note_wanted_soon() noexcept { is_wanted_soon_.store(true); }
  bool take_wanted_soon() noexcept { return is_wanted_soon_.exchange(false); }
  bool must_be_proven() const noexcept { return proof_wanted_.load(); }
  bool is_ready() const noexcept;
  std::uint64_t last_use() const noexcept { return last_use_.load(std::memory_order_relaxed); }
  // REQUIRES, of these three: it is wanted, and the caller has taken it out of the line.
  void close_file() noexcept;
  void fetched(std::unique_ptr<base::File> file, std::unique_ptr<const PieceIndex> index,
               bool is_proven, bool is_ahead) noexcept;
  void failed(const FetchFailure& failure) noexcept;
  // Closes the file, unless it is wanted. False: it is not here, or not any more.
  bool retire() noexcept;

  // Its neighbours in the list of a version; for fetching ahead.
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
  std::atomic<std::int64_t> timed_out_ns_{INT64_MIN};  // when a wait was last in vain
  std::unique_ptr<base::File> file_;                   // while it is ready
};

}  // namespace vellum::remote
