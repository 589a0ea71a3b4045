#include "store/store_core.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>

#include "base/new_file.hpp"
#include "base/process_memory.hpp"
#include "store/branch_ids.hpp"
#include "store/branch_lock.hpp"
#include "store/image_file.hpp"
#include "store/lease.hpp"
#include "store/snapshot_order.hpp"
#include "store/space_note.hpp"
#include "store/util.hpp"
#include "store/working_set_file.hpp"

namespace vellum::store {

using format::SnapshotRef;

namespace {

constexpr const char* kSuperblockName = "vellum.store";
constexpr const char* kJournalName = "journal";
constexpr std::string_view kRefSuffix = ".ref";
constexpr std::uint64_t kMaxSuperblockBytes = 64u << 10;
// Address space; memory as it is used. Less where there is little memory.
constexpr std::uint64_t kRecordCacheBytes = 80u << 20, kLeastCacheBytes = 4u << 20;
std::size_t record_cache_bytes() {
  const std::uint64_t share = base::memory_of_process() / 16;
  return static_cast<std::size_t>(std::clamp(share, kLeastCacheBytes, kRecordCacheBytes));
}
constexpr const char* kDirectories[] = {"branches", "snapshots", "packs", "tmp"};

std::string without_end_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::uint32_t random_u32() {
  std::random_device device;
  return device();
}

format::Uuid random_uuid() {
  format::Uuid id;
  for (auto& b : id) b = static_cast<std::byte>(random_u32());
  return id;
}

// Makes a directory unless it is there. True: it was made.
bool ensure_directory(base::Fs& fs, const std::string& path) {
  try {
    fs.make_directory(path);
    return true;
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    return false;
  }
}

// What a crash leaves of a store in the making: empty directories, and superblocks in tmp that
// never got their name.
bool is_unfinished_store(base::Fs& fs, const std::string& path) {
  for (const auto& entry : fs.list(path)) {
    const bool ours = std::find(std::begin(kDirectories), std::end(kDirectories), entry.name) !=
                      std::end(kDirectories);
    if (!ours || !entry.is_directory) return false;
    for (const auto& inner : fs.list(path + "/" + entry.name)) {
      if (entry.name != "tmp" || !inner.name.starts_with(kSuperblockName)) return false;
    }
  }
  return true;
}

struct RefHash {
  std::size_t operator()(const format::RecordRef& r) const noexcept {
    return static_cast<std::size_t>(mix64(r.pack) ^ mix64(r.offset_bytes + r.tag));
  }
};

}  // namespace

struct StoreCore::Impl {
  base::Fs& fs;
  std::string path;
  const std::unique_ptr<base::File> superblock_file;  // stays open: its inode is not used again
  format::Superblock superblock;
  std::uint64_t seed;
  PackSet packs;
  RecordCache records;
  BranchIds branch_ids;
  std::atomic<int> gcs_waiting{0};
  std::once_flag pool_once;
  std::unique_ptr<base::ThreadPool> pool;
  std::mutex runs_mutex;
  std::unordered_map<format::RecordRef, std::weak_ptr<const LoadedRun>, RefHash> runs;

  Impl(base::Fs& f, const std::string& p, std::unique_ptr<base::File> file,
       const format::Superblock& sb)
      : fs(f),
        path(p),
        superblock_file(std::move(file)),
        superblock(sb),
        seed(format::checksum_seed(sb.store_id)),
        packs(f, p, sb),
        records(packs, seed, sb, record_cache_bytes()) {}
};

StoreCore::StoreCore() = default;
StoreCore::~StoreCore() = default;

std::shared_ptr<StoreCore> StoreCore::create(base::Fs& fs, const std::string& given_path,
                                             format::Superblock options) {
  const std::string path = without_end_slashes(given_path);
  options.store_id = random_uuid();
  options.created_ns = wall_clock_ns();
  const auto bytes = format::encode_superblock(options);
  format::Superblock checked;
  if (format::decode_superblock(bytes, checked) != format::SuperblockStatus::ok) {
    fail(Errc::invalid_argument, "{}: a store option is outside its range", path);
  }
  if (!ensure_directory(fs, path) && !is_unfinished_store(fs, path)) {
    fail(Errc::already_exists, "{}: exists and is not an empty directory", path);
  }
  for (const char* name : kDirectories) ensure_directory(fs, path + "/" + name);
  fs.sync_directory(path);
  fs.sync_directory(base::parent_of(path));
  // Last: before this the directory is no store.
  base::publish_file(fs, path + "/tmp", path, kSuperblockName, bytes, false);
  return open(fs, path);
}

std::shared_ptr<StoreCore> StoreCore::open(base::Fs& fs, const std::string& given_path) {
  const std::string path = without_end_slashes(given_path);
  if (!fs.exists(path)) fail(Errc::not_found, "{}: no such directory", path);
  const std::string file = path + "/" + kSuperblockName;
  if (!fs.exists(file)) fail(Errc::not_a_store, "{}: not a Vellum store", path);
  auto opened = fs.open(file, base::OpenMode::read_only);
  std::vector<std::byte> bytes(std::min(opened->size_bytes(), kMaxSuperblockBytes));
  opened->pread(bytes, 0);
  format::Superblock superblock;
  switch (format::decode_superblock(bytes, superblock)) {
    case format::SuperblockStatus::ok:
      break;
    case format::SuperblockStatus::not_a_store:
      fail(Errc::not_a_store, "{}: not a Vellum store: {} is something else", path, file);
    case format::SuperblockStatus::newer_format:
      fail_newer(file, bytes);
    case format::SuperblockStatus::damaged:
      fail(Errc::damaged, "{}: the superblock is damaged", file);
  }
  // A link in place of a directory would lead out of the store.
  const auto entries = fs.list(path);
  for (const char* name : kDirectories) {
    const auto at = std::find_if(entries.begin(), entries.end(),
                                 [&](const base::DirEntry& e) { return e.name == name; });
    if (at == entries.end()) fail(Errc::damaged, "{}/{}: missing", path, name);
    if (!at->is_directory) fail(Errc::damaged, "{}/{}: not a directory", path, name);
  }
  std::shared_ptr<StoreCore> store(new StoreCore());
  store->impl_ = std::make_unique<Impl>(fs, path, std::move(opened), superblock);
  return store;
}

base::Fs& StoreCore::fs() const noexcept { return impl_->fs; }
const std::string& StoreCore::path() const noexcept { return impl_->path; }
const format::Superblock& StoreCore::superblock() const noexcept { return impl_->superblock; }
std::uint64_t StoreCore::checksum_seed() const noexcept { return impl_->seed; }
std::string StoreCore::packs_directory() const { return impl_->path + "/packs"; }
std::string StoreCore::snapshots_directory() const { return impl_->path + "/snapshots"; }
std::string StoreCore::branches_directory() const { return impl_->path + "/branches"; }
std::string StoreCore::tmp_directory() const { return impl_->path + "/tmp"; }
std::string StoreCore::journal_path(const std::string& branch) const {
  return branches_directory() + "/" + branch + "/" + kJournalName;
}
std::string StoreCore::superblock_path() const { return impl_->path + "/" + kSuperblockName; }
std::shared_ptr<base::File> StoreCore::open_superblock(base::OpenMode mode) const {
  if (impl_->superblock_file->replaced()) {
    fail(Errc::io,
         "{}: the store that was opened there has been moved, or another one is in its place: open "
         "it again",
         impl_->path);
  }
  return impl_->fs.open(superblock_path(), mode);
}
PackSet& StoreCore::packs() noexcept { return impl_->packs; }
RecordCache& StoreCore::records() noexcept { return impl_->records; }
std::atomic<int>& StoreCore::gcs_waiting() noexcept { return impl_->gcs_waiting; }

base::ThreadPool& StoreCore::pool() noexcept {
  std::call_once(impl_->pool_once, [this] {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    impl_->pool = std::make_unique<base::ThreadPool>(cores - 1);
  });
  return *impl_->pool;
}

std::shared_ptr<const LoadedRun> StoreCore::load_run(const format::RunRef& ref) {
  {
    const std::lock_guard guard(impl_->runs_mutex);
    const auto at = impl_->runs.find(ref.root);
    if (at != impl_->runs.end()) {
      auto run = at->second.lock();
      if (run != nullptr && run->ref == ref) return run;
    }
  }
  auto run = std::make_shared<const LoadedRun>(read_run(*this, ref));
  const std::lock_guard guard(impl_->runs_mutex);
  // Now and then, what nobody uses any more goes.
  if (impl_->runs.size() % 256 == 255) {
    std::erase_if(impl_->runs, [](const auto& line) { return line.second.expired(); });
  }
  impl_->runs[ref.root] = run;
  return run;
}

std::vector<std::string> StoreCore::branch_names() const {
  std::vector<std::string> names;
  for (const auto& entry : impl_->fs.list(branches_directory())) {
    if (!entry.is_directory || format::name_problem(entry.name) != nullptr) continue;
    // A crash while making a branch leaves its directory empty.
    if (impl_->fs.exists(journal_path(entry.name))) names.push_back(entry.name);
  }
  return names;
}

std::vector<std::string> StoreCore::snapshot_names() const {
  std::vector<std::string> names;
  for (const auto& entry : impl_->fs.list(snapshots_directory())) {
    if (!entry.name.ends_with(kRefSuffix)) continue;
    std::string name = entry.name.substr(0, entry.name.size() - kRefSuffix.size());
    if (format::name_problem(name) == nullptr) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());  // the suffix may have ordered them otherwise
  return names;
}

bool StoreCore::has_branch(const std::string& name) const {
  if (format::name_problem(name) != nullptr) return false;
  // Not through a link: the directory could be anywhere then.
  return impl_->fs.exists(journal_path(name)) &&
         impl_->fs.is_directory(branches_directory() + "/" + name);
}

bool StoreCore::has_snapshot(const std::string& name) const {
  return format::name_problem(name) == nullptr &&
         impl_->fs.exists(snapshots_directory() + "/" + name + std::string(kRefSuffix));
}

BranchHead StoreCore::read_branch(const std::string& name) const {
  if (!has_branch(name)) fail(Errc::not_found, "no branch '{}' in {}", name, impl_->path);
  const auto file = impl_->fs.open(journal_path(name), base::OpenMode::read_only);
  BranchHead head{name, read_journal(*file, impl_->superblock.store_id)};
  check_journal(file->path(), name, head.journal.header);
  return head;
}

SnapshotRef StoreCore::read_snapshot(const std::string& name) const {
  const std::string file = snapshots_directory() + "/" + name + std::string(kRefSuffix);
  std::vector<std::byte> bytes;
  try {
    if (format::name_problem(name) == nullptr) {
      bytes = base::read_whole(impl_->fs, file, format::kMaxSnapshotRefBytes);
    }
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
  if (bytes.empty() && !has_snapshot(name)) {
    fail(Errc::not_found, "no snapshot '{}' in {}", name, impl_->path);
  }
  SnapshotRef ref;
  if (const char* problem = format::decode_snapshot_ref(bytes, impl_->superblock.store_id, ref)) {
    fail_header(file, bytes, impl_->seed, problem);
  }
  if (ref.name != name) fail(Errc::damaged, "{}: the ref is snapshot '{}''s", file, ref.name);
  return ref;
}

void StoreCore::require_free_name(const std::string& name) const {
  if (const char* problem = format::name_problem(name)) {
    fail(Errc::invalid_argument, "'{}': {}", name, problem);
  }
  if (has_branch(name)) {
    fail(Errc::already_exists, "a branch '{}' exists in {}", name, impl_->path);
  }
  if (has_snapshot(name)) {
    fail(Errc::already_exists, "a snapshot '{}' exists in {}", name, impl_->path);
  }
}

void StoreCore::check_encoding(const format::Encoding& encoding) const {
  const std::uint32_t most = format::max_block_bytes(superblock());
  if (encoding.block_bytes <= most) return;
  fail(Errc::invalid_argument, "{}: blocks of {} bytes, where the store takes {} at most", path(),
       encoding.block_bytes, most);
}

void StoreCore::check_journal(const std::string& file, const std::string& branch,
                              const format::JournalHeader& header) const {
  if (header.branch != branch) {
    fail(Errc::damaged, "{}: the journal is branch '{}''s", file, header.branch);
  }
  if (header.encoding.has_value() &&
      header.encoding->block_bytes > format::max_block_bytes(superblock())) {
    fail(Errc::damaged, "{}: the branch's blocks would be larger than the store's", file);
  }
}

std::uint64_t StoreCore::create_branch(const std::string& name, std::uint64_t region_bytes,
                                       std::uint64_t base_address,
                                       const std::optional<format::Encoding>& encoding) {
  if (region_bytes % format::kPageBytes != 0 || region_bytes > format::kMaxRegionBytes) {
    fail(Errc::invalid_argument, "branch '{}': a region of {} bytes", name, region_bytes);
  }
  format::Version version;
  version.time_ns = wall_clock_ns();
  version.region_bytes = region_bytes;
  version.base_address = base_address;
  const NameLock claim = claim_name(*this, name);
  return publish_branch(name, version, "", encoding);
}

void StoreCore::create_branch_at(const std::string& name, const format::Version& version,
                                 const std::string& parent_snapshot,
                                 const std::optional<format::Encoding>& encoding,
                                 std::uint32_t journal_half_bytes) {
  const NameLock claim = claim_name(*this, name);
  publish_branch(name, version, parent_snapshot, encoding, journal_half_bytes);
}

void StoreCore::create_branch_at(const NameLock& claim, const format::Version& version,
                                 const std::string& parent_snapshot,
                                 const std::optional<format::Encoding>& encoding) {
  publish_branch(claim.name(), version, parent_snapshot, encoding);
}

// One commit, and that goes to packs: nothing is to be journaled.
void StoreCore::create_branch_aside(const std::string& name, const format::Version& version,
                                    const std::string& parent_snapshot,
                                    const std::optional<format::Encoding>& encoding) {
  publish_branch(name, version, parent_snapshot, encoding, format::kMinJournalHalfBytes);
}

std::uint64_t StoreCore::publish_branch(const std::string& name, const format::Version& version,
                                        const std::string& parent_snapshot,
                                        const std::optional<format::Encoding>& encoding,
                                        std::uint32_t journal_half_bytes) {
  if (encoding.has_value()) check_encoding(*encoding);
  format::Version base = version;
  const auto taken = impl_->branch_ids.taken(*this, packs().list());
  do {
    base.branch_id = random_u32();
  } while (taken.contains(base.branch_id));
  base.parent = parent_snapshot;
  base.pages_changed = 0;
  base.bytes_added = 0;
  base.active_pack = 0;
  base.active_pack_end_bytes = 0;
  base.next_pack_number = 1;

  format::JournalHeader header;
  header.store_id = superblock().store_id;
  header.branch_id = base.branch_id;
  header.created_ns = wall_clock_ns();
  header.half_bytes =
      journal_half_bytes != 0 ? journal_half_bytes : superblock().journal_half_bytes;
  header.branch = name;
  header.encoding = encoding;
  // The directory first, then all of the journal in one step: that one makes the branch.
  const std::string directory = branches_directory() + "/" + name;
  ensure_directory(fs(), directory);
  fs().sync_directory(branches_directory());
  try {
    base::publish_file(fs(), tmp_directory(), directory, kJournalName,
                       new_journal_bytes(header, base), false);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    fail(Errc::already_exists, "a branch '{}' exists in {}", name, impl_->path);
  }
  return base.branch_id;
}

void StoreCore::create_snapshot(const std::string& name, const SnapshotRef& like) {
  create_snapshot(claim_name(*this, name), like);
}

void StoreCore::create_snapshot(const NameLock& claim, const SnapshotRef& like) {
  const std::string& name = claim.name();
  SnapshotRef ref = like;
  ref.name = name;
  ref.order = claim_snapshot_order(*this);
  const auto bytes = format::encode_snapshot_ref(ref, superblock().store_id);
  try {
    base::publish_file(fs(), tmp_directory(), snapshots_directory(), name + std::string(kRefSuffix),
                       bytes, false);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    fail(Errc::already_exists, "a snapshot '{}' exists in {}", name, impl_->path);
  }
}

void StoreCore::create_snapshot(const std::string& name, const std::string& branch,
                                const format::Version& version, const std::string& message) {
  create_snapshot(claim_name(*this, name), branch, version, message);
}

void StoreCore::create_snapshot(const NameLock& claim, const std::string& branch,
                                const format::Version& version, const std::string& message) {
  SnapshotRef ref;
  ref.branch = branch;
  ref.created_ns = wall_clock_ns();
  ref.version = version;
  if (!message.empty()) ref.version.message = message;
  create_snapshot(claim, ref);
}

namespace {

// As make_writable() leaves it between its two steps.
bool is_untouched(const BranchHead& branch, const SnapshotRef& ref) {
  const format::Version& base = branch.journal.base;
  return branch.journal.commits.empty() && base.sequence == ref.version.sequence &&
         base.region_bytes == ref.version.region_bytes &&
         base.file_bytes == ref.version.file_bytes && base.runs == ref.version.runs;
}

}  // namespace

// Names are held, since gc must not see a moment at which neither is there.
void StoreCore::make_writable(const std::string& name) {
  if (!has_snapshot(name) && !has_branch(name)) {
    fail(Errc::not_found, "no snapshot or branch '{}' in {}", name, impl_->path);
  }
  const NameLock lock = lock_name(*this, name);
  const Lease names = hold_names(*this);
  if (!has_snapshot(name)) return;
  const SnapshotRef ref = read_snapshot(name);
  // Both are there when this was cut off before.
  if (!has_branch(name)) publish_branch(name, ref.version, ref.version.parent, std::nullopt);
  remove_ref(name);
}

void StoreCore::settle_name(const std::string& name) {
  if (!has_snapshot(name)) return;
  const NameLock lock = lock_name(*this, name);
  if (!has_snapshot(name) || !has_branch(name)) return;
  if (!is_untouched(read_branch(name), read_snapshot(name))) {
    fail(Errc::damaged,
         "{}: a branch and a snapshot are both named '{}', and differ: remove one of them",
         impl_->path, name);
  }
  remove_ref(name);
}

void StoreCore::remove_snapshot(const std::string& name) {
  if (!has_snapshot(name)) fail(Errc::not_found, "no snapshot '{}' in {}", name, impl_->path);
  const NameLock lock = lock_name(*this, name);
  if (!has_snapshot(name)) fail(Errc::not_found, "no snapshot '{}' in {}", name, impl_->path);
  remove_ref(name);
}

void StoreCore::remove_ref(const std::string& name) {
  fs().unlink(snapshots_directory() + "/" + name + std::string(kRefSuffix));
  fs().sync_directory(snapshots_directory());
  remove_working_set(*this, name);
  remove_space_note(*this);
}

void StoreCore::remove_branch(const std::string& name) {
  if (!has_branch(name)) fail(Errc::not_found, "no branch '{}' in {}", name, impl_->path);
  const NameLock lock = lock_name(*this, name);
  const auto journal = try_lock_branch(*this, name);
  if (journal == nullptr) fail(Errc::busy, "branch '{}' of {} has a writer", name, impl_->path);
  drop_branch(name, *journal);
}

void StoreCore::remove_new_branch(const std::string& name, std::uint64_t branch_id) {
  if (!has_branch(name)) return;
  const NameLock lock = lock_name(*this, name);
  const auto journal = try_lock_branch(*this, name);
  if (journal == nullptr) return;
  const JournalState state = read_journal(*journal, superblock().store_id);
  if (state.header.branch_id == branch_id && state.head_sequence() == 0) {
    drop_branch(name, *journal);
  }
}

// Without its journal the branch is gone; the empty directory is only tidied up.
void StoreCore::drop_branch(const std::string& name, const base::File& journal) {
  const std::string directory = branches_directory() + "/" + name;
  fs().unlink(journal.path());
  fs().sync_directory(directory);
  impl_->branch_ids.forget(name);
  remove_working_set(*this, name);
  ImageFile::remove(*this, name);
  fs().remove_directory(directory);
  fs().sync_directory(branches_directory());
  remove_space_note(*this);
}

ResolvedVersion resolve_snapshot(const StoreCore& store, const std::string& name) {
  SnapshotRef ref = store.read_snapshot(name);
  ResolvedVersion out;
  out.label = "snapshot '" + name + "'";
  out.version = std::move(ref.version);
  out.created_ns = ref.created_ns;
  out.order = ref.order;
  out.branch = std::move(ref.branch);
  return out;
}

ResolvedVersion resolve_version(const StoreCore& store, const std::string& name) {
  if (store.has_snapshot(name)) return resolve_snapshot(store, name);
  if (!store.has_branch(name)) {
    fail(Errc::not_found, "no snapshot or branch '{}' in {}", name, store.path());
  }
  BranchHead head = store.read_branch(name);
  ResolvedVersion out;
  out.label = "branch '" + name + "'";
  out.is_branch = true;
  out.version = std::move(head.journal.base);
  out.commits = std::move(head.journal.commits);
  out.created_ns = head.journal.header.created_ns;
  out.encoding = head.journal.header.encoding;
  out.branch = name;
  return out;
}

}  // namespace vellum::store
