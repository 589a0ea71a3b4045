// store/packs/record/pack_store.hpp: an open store without its names: directory, packs, caches.
// It reads and writes records. StoreDirectory (store/catalog/store_directory.hpp) adds the names.
//
// Threads: all calls from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/files/file.hpp"
#include "base/threads/thread_pool.hpp"
#include "format/wire/seal.hpp"
#include "format/wire/superblock.hpp"
#include "store/packs/pack_set.hpp"
#include "store/packs/record/record_cache.hpp"
#include "store/packs/record/run_cache.hpp"

namespace vellum::store {

inline constexpr const char* kSuperblockName = "vellum.store";
inline constexpr const char* kJournalName = "journal";

class PackStore {
 public:
  // REQUIRES: `path` is a store's directory, `file` its superblock with the content `superblock`.
  // `remote`: see PackSet.
  // `keys`: null for a plain store.
  PackStore(base::Fs& fs, const std::string& path, std::unique_ptr<base::File> file,
            const format::Superblock& superblock, std::shared_ptr<const base::StoreKeys> keys,
            std::shared_ptr<RemotePacks> remote);
  ~PackStore();

  base::Fs& fs() const noexcept;
  const std::string& path() const noexcept;
  const format::Superblock& superblock() const noexcept;
  std::uint64_t checksum_seed() const noexcept;
  const base::StoreKeys* keys() const noexcept;  // null: a plain store
  bool is_encrypted() const noexcept { return keys() != nullptr; }
  // Throws Errc::unsupported if the store is encrypted. For features that do not encrypt yet.
  void require_plain(const char* what) const;
  // For the content of packs, and of all other files but journals' frames.
  format::RecordSeal record_seal() const noexcept { return {checksum_seed(), keys()}; }
  format::FileSeal file_seal() const noexcept { return {superblock().store_id, keys()}; }
  // For both, also after this object is destroyed.
  format::StoreSeal store_seal() const noexcept;
  std::string packs_directory() const;
  std::string snapshots_directory() const;
  std::string branches_directory() const;
  std::string tmp_directory() const;
  std::string branch_directory(const std::string& branch) const;
  std::string journal_path(const std::string& branch) const;
  std::string superblock_path() const;
  // Opens the superblock for its locks. Errc::io if the opened store is no longer at its path: it
  // was moved, or another store is there.
  std::shared_ptr<base::File> open_superblock(base::OpenMode mode) const;
  PackSet& packs() noexcept;
  RecordCache& records() noexcept;
  RunCache& runs() noexcept;
  base::ThreadPool& pool() noexcept;  // for encoding; created at first use
  // The number of gcs of this handle that wait for their lock (store/catalog/lock/version_pin.hpp).
  std::atomic<int>& gcs_waiting() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
