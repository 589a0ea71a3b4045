// The names of a store: creation, reading and removal of branches and snapshots.
#include <algorithm>
#include <cassert>
#include <random>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "store/catalog/commit_name.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/snapshots/newest_snapshots.hpp"
#include "store/catalog/snapshots/snapshot_note.hpp"
#include "store/catalog/snapshots/snapshot_order.hpp"
#include "store/catalog/space_note.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/journal/journal_writer.hpp"
#include "store/journal/read_journal.hpp"

namespace vellum::store {

using format::SnapshotRef;

namespace {

std::uint32_t random_u32() {
  std::random_device device;
  return device();
}

}  // namespace

std::vector<std::string> StoreDirectory::branch_names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs().list(branches_directory())) {
    if (!entry.is_directory || format::name_problem(entry.name) != nullptr) continue;
    // A crash during the creation of a branch leaves its directory empty.
    if (fs().exists(journal_path(entry.name))) names.push_back(entry.name);
  }
  return names;
}

BranchHead StoreDirectory::read_branch(const std::string& name) const {
  if (!has_branch(*this, name)) fail(Errc::not_found, "no branch '{}' in {}", name, path());
  const auto file = fs().open(journal_path(name), base::OpenMode::read_only);
  BranchHead head{name, read_journal(*file, file_seal())};
  check_journal(file->path(), name, head.journal.header);
  if (auto ahead = snapshot_ahead(*this, name, head.journal)) {
    head.journal.base = std::move(*ahead);
    head.journal.commits.clear();
  }
  return head;
}

void StoreDirectory::require_free_name(const std::string& name) const {
  if (const char* problem = format::name_problem(name)) {
    fail(Errc::invalid_argument, "'{}': {}", name, problem);
  }
  if (has_branch(*this, name)) {
    fail(Errc::already_exists, "a branch '{}' exists in {}", name, path());
  }
  if (has_snapshot(*this, name)) {
    fail(Errc::already_exists, "a snapshot '{}' exists in {}", name, path());
  }
}

void StoreDirectory::check_encoding(const format::Encoding& encoding) const {
  const std::uint32_t most = format::max_block_bytes(superblock());
  if (encoding.block_bytes <= most) return;
  fail(Errc::invalid_argument, "{}: blocks of {} bytes are too large: the store takes at most {}",
       path(), encoding.block_bytes, most);
}

void StoreDirectory::check_journal(const std::string& file, const std::string& branch,
                                   const format::JournalHeader& header) const {
  if (header.branch != branch) {
    fail(Errc::corrupted, "{}: the journal belongs to branch '{}'", file, header.branch);
  }
  if (header.encoding.has_value() &&
      header.encoding->block_bytes > format::max_block_bytes(superblock())) {
    fail(Errc::corrupted, "{}: the branch's blocks would be larger than the store's", file);
  }
}

std::uint64_t StoreDirectory::create_branch(const std::string& name, std::uint64_t region_bytes,
                                            std::uint64_t base_address,
                                            const std::optional<format::Encoding>& encoding) {
  if (region_bytes % format::kPageBytes != 0 || region_bytes > format::kMaxRegionBytes) {
    fail(Errc::invalid_argument, "branch '{}': a region cannot have {} bytes", name, region_bytes);
  }
  format::Version version;
  version.time_ns = base::wall_clock_ns();
  version.region_bytes = region_bytes;
  version.base_address = base_address;
  const NameLock claim = claim_name(*this, name);
  return publish_branch(name, version, "", encoding);
}

void StoreDirectory::create_branch_at(const std::string& name, const format::Version& version,
                                      const std::string& parent_snapshot,
                                      const std::optional<format::Encoding>& encoding,
                                      std::uint32_t journal_half_bytes) {
  const NameLock claim = claim_name(*this, name);
  publish_branch(name, version, parent_snapshot, encoding, journal_half_bytes);
}

void StoreDirectory::create_branch_at(const NameLock& claim, const format::Version& version,
                                      const std::string& parent_snapshot,
                                      const std::optional<format::Encoding>& encoding) {
  publish_branch(claim.name(), version, parent_snapshot, encoding);
}

// The branch gets one commit, as a checkpoint: the journal stays empty.
void StoreDirectory::create_staging_branch(const std::string& name, const format::Version& version,
                                           const std::string& parent_snapshot,
                                           const std::optional<format::Encoding>& encoding) {
  assert(is_staging_name(name));
  publish_branch(name, version, parent_snapshot, encoding, format::kMinJournalHalfBytes);
}

void StoreDirectory::publish_staging_branch(const NameLock& claim, const NamesShared& /*names*/,
                                            const format::Version& head,
                                            const std::optional<format::Encoding>& encoding) {
  assert(head.branch_id != 0);
  const std::uint32_t half_bytes = is_staging_name(claim.name()) ? format::kMinJournalHalfBytes : 0;
  publish_journal(claim.name(), head, encoding, half_bytes);
}

std::uint64_t StoreDirectory::publish_branch(const std::string& name,
                                             const format::Version& version,
                                             const std::string& parent_snapshot,
                                             const std::optional<format::Encoding>& encoding,
                                             std::uint32_t journal_half_bytes) {
  if (encoding.has_value()) check_encoding(*encoding);
  format::Version base = version;
  const auto taken = branch_ids_.taken(*this, packs().list_with_remote());
  do {
    base.branch_id = random_u32();
  } while (taken.contains(base.branch_id));
  base.parent = parent_snapshot;
  base.pages_changed = 0;
  base.bytes_added = 0;
  base.active_pack = 0;
  base.active_pack_end_bytes = 0;
  base.next_pack_number = 1;
  publish_journal(name, base, encoding, journal_half_bytes);
  return base.branch_id;
}

void StoreDirectory::publish_journal(const std::string& name, const format::Version& base,
                                     const std::optional<format::Encoding>& encoding,
                                     std::uint32_t journal_half_bytes) {
  assert(base.branch_id != 0 && !name.empty());
  format::JournalHeader header;
  header.store_id = superblock().store_id;
  header.branch_id = base.branch_id;
  header.created_ns = base::wall_clock_ns();
  header.half_bytes =
      journal_half_bytes != 0 ? journal_half_bytes : superblock().journal_half_bytes;
  header.branch = name;
  header.encoding = encoding;
  // First the directory, then the whole journal in one step: the commit point.
  const std::string directory = branch_directory(name);
  base::ensure_directory(fs(), directory);
  fs().sync_directory(branches_directory());
  try {
    base::publish_sparse_file(fs(), tmp_directory(), directory, kJournalName,
                              new_journal_start(header, base, keys()),
                              journal_bytes(header.half_bytes));
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    fail(Errc::already_exists, "a branch '{}' exists in {}", name, path());
  }
}

void StoreDirectory::create_snapshot(const std::string& name, const SnapshotRef& like) {
  create_snapshot(claim_name(*this, name), like);
}

void StoreDirectory::create_snapshot(const NameLock& claim, const SnapshotRef& like) {
  const std::string& name = claim.name();
  SnapshotRef ref = like;
  ref.name = name;
  if (ref.order == 0) {
    ref.order = claim_snapshot_order(*this);
  } else {
    pass_snapshot_order(*this, ref.order);
  }
  const auto bytes = format::encode_snapshot_ref(ref, file_seal());
  try {
    base::publish_new_file(fs(), tmp_directory(), snapshots_directory(), name + kRefSuffix, bytes,
                           [&](const std::function<void()>& give_name) {
                             change_refs_by_adding(*this, ref, give_name);
                           });
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    fail(Errc::already_exists, "a snapshot '{}' exists in {}", name, path());
  }
}

void StoreDirectory::create_snapshot(const std::string& name, const std::string& branch,
                                     const format::Version& version, const std::string& message) {
  create_snapshot(claim_name(*this, name), branch, version, message);
}

void StoreDirectory::create_snapshot(const NameLock& claim, const std::string& branch,
                                     const format::Version& version, const std::string& message) {
  SnapshotRef ref;
  ref.branch = branch;
  ref.created_ns = base::wall_clock_ns();
  ref.version = version;
  if (!message.empty()) ref.version.message = message;
  create_snapshot(claim, ref);
}

namespace {

// Whether the branch is in the state between the two steps of convert_to_branch().
bool is_untouched(const BranchHead& branch, const SnapshotRef& ref) {
  const format::Version& base = branch.journal.base;
  return branch.journal.commits.empty() && base.sequence == ref.version.sequence &&
         base.region_bytes == ref.version.region_bytes &&
         base.file_bytes == ref.version.file_bytes && base.runs == ref.version.runs;
}

}  // namespace

// NamesShared: gc must not read the names while neither name exists.
void StoreDirectory::convert_to_branch(const std::string& name) {
  if (!has_snapshot(*this, name) && !has_branch(*this, name)) {
    fail(Errc::not_found, "no snapshot or branch '{}' in {}", name, path());
  }
  const NameLock lock = lock_name(*this, name);
  const NamesShared names(*this);
  if (!has_snapshot(*this, name)) return;
  const SnapshotRef ref = read_snapshot(*this, name);
  // Both exist if an earlier call was interrupted.
  if (!has_branch(*this, name)) publish_branch(name, ref.version, ref.version.parent, std::nullopt);
  remove_ref(name);
}

void StoreDirectory::settle_name(const std::string& name) {
  if (!has_snapshot(*this, name)) return;
  const NameLock lock = lock_name(*this, name);
  if (!has_snapshot(*this, name) || !has_branch(*this, name)) return;
  if (!is_untouched(read_branch(name), read_snapshot(*this, name))) {
    fail(Errc::corrupted,
         "{}: a branch and a snapshot are both named '{}', and differ: remove one of them", path(),
         name);
  }
  remove_ref(name);
}

void StoreDirectory::remove_snapshot(const NameLock& claim) { remove_ref(claim.name()); }

void StoreDirectory::remove_snapshot(const std::string& name) {
  if (!has_snapshot(*this, name)) fail(Errc::not_found, "no snapshot '{}' in {}", name, path());
  const NameLock lock = lock_name(*this, name);
  if (!has_snapshot(*this, name)) fail(Errc::not_found, "no snapshot '{}' in {}", name, path());
  remove_ref(name);
}

void StoreDirectory::remove_ref(const std::string& name) {
  change_refs_by_removing(
      *this, name, [&] { fs().unlink(ref_path(*this, name)); },
      [&] { fs().sync_directory(snapshots_directory()); });
  remove_working_set(*this, name);
  remove_space_note(*this);
}

void StoreDirectory::remove_branch(const std::string& name) {
  if (!has_branch(*this, name)) fail(Errc::not_found, "no branch '{}' in {}", name, path());
  const NameLock lock = lock_name(*this, name);
  const auto journal = lock_branch(*this, name);
  drop_branch(name, *journal);
}

void StoreDirectory::remove_new_branch(const std::string& name, std::uint64_t branch_id) {
  if (!has_branch(*this, name)) return;
  const NameLock lock = lock_name(*this, name);
  const auto journal = try_lock_branch(*this, name);
  if (journal == nullptr) return;
  const JournalState state = read_journal(*journal, file_seal());
  if (state.header.branch_id == branch_id && state.head_sequence() == 0) {
    drop_branch(name, *journal);
  }
}

// The unlink of the journal is the commit point; the rest is cleanup.
void StoreDirectory::drop_branch(const std::string& name, const base::File& journal) {
  assert(journal.path().ends_with("/" + name + "/" + kJournalName));
  const std::string directory = branch_directory(name);
  fs().unlink(journal.path());
  fs().sync_directory(directory);
  branch_ids_.forget(name);
  remove_working_set(*this, name);
  remove_image_files(*this, name);
  fs().remove_directory(directory);
  fs().sync_directory(branches_directory());
  remove_space_note(*this);
}

ResolvedVersion resolve_snapshot(const StoreDirectory& store, const std::string& name) {
  return resolved(read_snapshot(store, name));
}

ResolvedVersion resolved(SnapshotRef ref) {
  ResolvedVersion out;
  out.label = "snapshot '" + ref.name + "'";
  out.version = std::move(ref.version);
  out.created_ns = ref.created_ns;
  out.order = ref.order;
  out.branch = std::move(ref.branch);
  out.signature = std::move(ref.signature);
  return out;
}

ResolvedVersion resolve_version(const StoreDirectory& store, const std::string& name) {
  if (const auto commit = parse_commit_name(name)) return resolve_commit(store, *commit);
  if (has_snapshot(store, name)) return resolve_snapshot(store, name);
  if (!has_branch(store, name)) {
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

KeptVersion resolve_kept(StoreDirectory& store, const std::string& name) {
  NamesShared names(store);
  KeptVersion kept{resolve_version(store, name), {}};
  kept.version_pin = VersionPin(store, std::move(names), kept.version.version);
  return kept;
}

NameLock claim_name(StoreDirectory& store, const std::string& name) {
  if (is_staging_name(name)) {
    fail(Errc::invalid_argument, "'{}': the name is reserved for unfinished snapshots", name);
  }
  store.require_free_name(name);  // also on a read-only medium, which has no locks
  NameLock lock = lock_name(store, name);
  store.require_free_name(name);
  return lock;
}

}  // namespace vellum::store
