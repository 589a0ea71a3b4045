#include "store/packs/record/pack_store.hpp"

#include <algorithm>
#include <cassert>
#include <mutex>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/memory/process_memory.hpp"
#include "base/threads/thread_pool.hpp"
#include "format/records/record.hpp"

namespace vellum::store {

namespace {

// Address space, which takes memory only when used. Measurements: docs/decisions/encoding.md.
constexpr std::uint64_t kMaxCacheBytes = 512u << 20, kUsualCacheBytes = 160u << 20,
                        kMinCacheBytes = 4u << 20;
// Less than usual if memory or address space is scarce, more if regions may use much memory.
std::size_t record_cache_bytes() {
  const std::uint64_t usual = std::min(base::memory_of_process() / 16, kUsualCacheBytes);
  const std::uint64_t share = std::max(base::memory_for_regions() / 16, usual);
  const std::uint64_t room = std::min(share, base::space_left() / 8);
  return static_cast<std::size_t>(std::clamp(room, kMinCacheBytes, kMaxCacheBytes));
}

}  // namespace

struct PackStore::Impl {
  const std::shared_ptr<base::Fs> beneath;  // does not follow links in the store
  base::Fs& fs;
  std::string path;
  const std::unique_ptr<base::File> superblock_file;  // open, so that its inode is not reused
  format::Superblock superblock;
  std::uint64_t seed;
  const std::shared_ptr<const base::StoreKeys> keys;
  PackSet packs;
  RecordCache records;
  RunCache runs;
  std::atomic<int> gcs_waiting{0};
  std::once_flag pool_once;
  std::unique_ptr<base::ThreadPool> pool;

  Impl(base::Fs& f, const std::string& p, std::unique_ptr<base::File> file,
       const format::Superblock& sb, std::shared_ptr<const base::StoreKeys> k,
       std::shared_ptr<RemotePacks> remote)
      : beneath(base::beneath(f, p)),
        fs(*beneath),
        path(p),
        superblock_file(std::move(file)),
        superblock(sb),
        seed(format::checksum_seed(sb.store_id)),
        keys(std::move(k)),
        packs(fs, p, sb, keys.get(), std::move(remote)),
        records(packs, {seed, keys.get()}, sb, record_cache_bytes()) {}
};

PackStore::PackStore(base::Fs& fs, const std::string& path, std::unique_ptr<base::File> file,
                     const format::Superblock& superblock,
                     std::shared_ptr<const base::StoreKeys> keys,
                     std::shared_ptr<RemotePacks> remote)
    : impl_(std::make_unique<Impl>(fs, path, std::move(file), superblock, std::move(keys),
                                   std::move(remote))) {
  assert(superblock.encrypted == is_encrypted());
  assert(!impl_->path.empty());
  assert(impl_->superblock_file != nullptr);
}
PackStore::~PackStore() = default;

base::Fs& PackStore::fs() const noexcept { return impl_->fs; }
const std::string& PackStore::path() const noexcept { return impl_->path; }
const format::Superblock& PackStore::superblock() const noexcept { return impl_->superblock; }
std::uint64_t PackStore::checksum_seed() const noexcept { return impl_->seed; }
const base::StoreKeys* PackStore::keys() const noexcept { return impl_->keys.get(); }
format::StoreSeal PackStore::store_seal() const noexcept {
  return {superblock().store_id, impl_->keys};
}
void PackStore::require_plain(const char* what) const {
  if (!is_encrypted()) return;
  fail(Errc::unsupported,
       "{}: the store is encrypted, and {} would not be: `vellum export` the versions that "
       "`vellum verify` finds intact, and import them into a new encrypted store, or `vellum "
       "clone` a remote of the store",
       path(), what);
}
std::string PackStore::packs_directory() const { return impl_->path + "/packs"; }
std::string PackStore::snapshots_directory() const { return impl_->path + "/snapshots"; }
std::string PackStore::branches_directory() const { return impl_->path + "/branches"; }
std::string PackStore::tmp_directory() const { return impl_->path + "/tmp"; }
std::string PackStore::branch_directory(const std::string& branch) const {
  assert(!branch.empty());
  return branches_directory() + "/" + branch;
}
std::string PackStore::journal_path(const std::string& branch) const {
  return branch_directory(branch) + "/" + kJournalName;
}
std::string PackStore::superblock_path() const { return impl_->path + "/" + kSuperblockName; }
std::shared_ptr<base::File> PackStore::open_superblock(base::OpenMode mode) const {
  if (impl_->superblock_file->replaced()) {
    fail(Errc::io,
         "{}: the store that was opened there has been moved, or another one is in its place: open "
         "it again",
         impl_->path);
  }
  return impl_->fs.open(superblock_path(), mode);
}
PackSet& PackStore::packs() noexcept { return impl_->packs; }
RecordCache& PackStore::records() noexcept { return impl_->records; }
RunCache& PackStore::runs() noexcept { return impl_->runs; }
std::atomic<int>& PackStore::gcs_waiting() noexcept { return impl_->gcs_waiting; }

base::ThreadPool& PackStore::pool() noexcept {
  std::call_once(impl_->pool_once, [this] {
    impl_->pool = std::make_unique<base::ThreadPool>(base::processors() - 1);
  });
  return *impl_->pool;
}

}  // namespace vellum::store
