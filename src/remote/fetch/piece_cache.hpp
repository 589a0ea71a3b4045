// remote/fetch/piece_cache.hpp: copies of pieces on this machine, for all processes of the user.
//
// A copy is named by the hash of its content. It may be deleted or damaged at any time: its user
// checks it. Copies of encrypted objects are sealed, under other names, and opened in memory. One process at a time fetches a piece; others wait and then find the copy. Throws only
// std::bad_alloc: without a cache, pieces are read from the remote.
//
// Threads: all calls from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/crypto/object_keys.hpp"
#include "base/files/file.hpp"
#include "remote/fetch/fetch_lock.hpp"
#include "remote/objects/piece_list.hpp"

namespace vellum::remote {

class PieceCache {
 public:
  // `directory` is created at its first use. Empty, or a limit of 0: no cache.
  // `keys`: those of a remote that is encrypted by objects; otherwise null.
  PieceCache(base::Fs& fs, std::string directory, std::uint64_t limit_bytes,
             std::shared_ptr<const base::ObjectKeys> keys = nullptr);

  bool keeps() const noexcept { return !directory_.empty(); }
  bool opens_in_memory() const noexcept { return keys_ != nullptr; }
  // The copy of a piece; null: none of the right size.
  std::unique_ptr<base::File> open(const PieceName& piece);
  // Stores a copy and opens it; null: it cannot be stored, or would be opened in memory.
  std::unique_ptr<base::File> put(const PieceName& piece, std::span<const std::byte> bytes);
  // Removes a copy that is damaged.
  void drop(const PieceName& piece);

  using FetchLock = remote::FetchLock;
  // The right to fetch the piece. Waits while another process has it, at most as long as a fetch
  // usually takes.
  FetchLock acquire_fetch_lock(const PieceName& piece);

 private:
  std::string name_of(const PieceName& piece) const;
  std::string path_of(const PieceName& piece) const;
  std::unique_ptr<base::File> open_sealed(const PieceName& piece);
  void put_sealed(const PieceName& piece, std::span<const std::byte> bytes);
  void note_written(std::uint64_t bytes);
  bool make_directories();
  void evict_oldest();

  const std::shared_ptr<base::Fs> beneath_;  // refuses links that leave the cache
  base::Fs& fs_;
  const std::string directory_, pieces_, tmp_, locks_;
  const std::uint64_t limit_bytes_;
  const std::shared_ptr<const base::ObjectKeys> keys_;
  std::atomic<std::uint64_t> unaccounted_bytes_;  // written since the last scan of the directory
  std::mutex evicting_;
};

}  // namespace vellum::remote
