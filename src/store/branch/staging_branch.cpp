#include "store/branch/staging_branch.hpp"

#include <cassert>
#include <chrono>
#include <utility>

#include "store/branch/kept_name.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"
#include "store/journal/read_journal.hpp"

namespace vellum::store {
namespace {

constexpr std::chrono::seconds kMaxTrying{2};

// Whether the branch may go on in its active pack. After a power cut its journal may state an older
// end than the versions that use the pack do, and the next record would replace theirs.
bool continues(StoreDirectory& store, const format::Version& head) {
  if (head.active_pack == 0) return true;
  const std::string path = store.packs().places().home_path(head.active_pack);
  return store.fs().open(path, base::OpenMode::read_only)->size_bytes() ==
         head.active_pack_end_bytes;
}

// The head of a staging branch after its move to another version: only its packs stay.
format::Version moved(format::Version head, const format::Version& version) {
  head.set_info(version.info());
  head.sequence = version.sequence;
  head.parent = version.parent;
  head.pages_changed = 0;
  head.bytes_added = 0;
  head.runs = version.runs;
  return head;
}

// The head of a branch that goes on. Nullopt: it cannot, or it cannot be read, and would stay in the
// way of each push.
std::optional<format::Version> head_to_continue(StoreDirectory& store, const base::File& journal) {
  try {
    format::Version head = read_journal(journal, store.file_seal()).base;
    if (continues(store, head)) return head;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted && e.code() != Errc::not_found) throw;
  }
  return std::nullopt;
}

// Unless another process has it. gc may remove it first.
void drop_unlocked(StoreDirectory& store, const std::string& name) {
  try {
    if (const auto journal = try_lock_branch(store, name)) store.drop_branch(name, *journal);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
}

}  // namespace

StagingBranch::StagingBranch(StoreDirectory& store, const format::Version& version,
                             const std::optional<format::Encoding>& encoding)
    : store_(store), encoding_(encoding) {
  const auto last_try = std::chrono::steady_clock::now() + kMaxTrying;
  while (writer_ == nullptr) create(version, encoding, last_try);
}

StagingBranch::StagingBranch(StoreDirectory& store, const format::Version& version,
                             const std::optional<format::Encoding>& encoding, std::string kept_name)
    : store_(store), encoding_(encoding), name_(std::move(kept_name)), is_kept_(true) {
  if (!has_branch(store, name_))
    store.create_staging_branch(name_, version, version.parent, encoding);
  writer_ = BranchWriter::open(store, name_);
}

// gc reads the names before the old one is gone, and keeps its packs, or after the new one is there.
// Two journals never have the id at once.
void StagingBranch::move_kept(StoreDirectory& store, const format::Version& version,
                              const std::optional<format::Encoding>& encoding) {
  const std::string name = kept_name(version);
  const bool is_there = has_branch(store, name);
  for (const std::string& from : kept_names(store, version.branch_id)) {
    const auto journal = is_there != (from == name) ? nullptr : try_lock_branch(store, from);
    if (journal == nullptr) continue;
    const auto head = head_to_continue(store, *journal);
    if (is_there && head.has_value()) return;
    const NameLock claim = lock_name(store, name);
    const NamesShared names(store);
    store.drop_branch(from, *journal);
    if (is_there || !head.has_value()) continue;
    return store.publish_staging_branch(claim, names, moved(*head, version), encoding);
  }
}

// Another process may have the branch, and gc may remove it. One whose packs are damaged is removed.
std::unique_ptr<StagingBranch> StagingBranch::kept(
    StoreDirectory& store, const format::Version& version,
    const std::optional<format::Encoding>& encoding) {
  const std::string name = kept_name(version);
  try {
    move_kept(store, version, encoding);
    return std::unique_ptr<StagingBranch>(new StagingBranch(store, version, encoding, name));
  } catch (const Error& e) {
    if (e.code() == Errc::no_space || e.code() == Errc::out_of_memory) throw;
    if (e.code() == Errc::corrupted) drop_unlocked(store, name);
  }
  return std::make_unique<StagingBranch>(store, version, encoding);
}

void StagingBranch::remove_kept(StoreDirectory& store, std::uint64_t branch_id,
                                const format::Version& version) {
  const std::string stays = version.branch_id == 0 ? "" : kept_name(version);
  for (const std::string& name : kept_names(store, branch_id)) {
    if (name != stays) drop_unlocked(store, name);
  }
}

StagingBranch::~StagingBranch() {
  if (!is_kept_) drop();
}

// gc may find the branch before it is locked, and remove it. The caller then tries again. A gc that
// is stopped while it reads the names makes the store busy, too, and that is no reason to try again.
void StagingBranch::create(const format::Version& version,
                           const std::optional<format::Encoding>& encoding,
                           std::chrono::steady_clock::time_point last_try) {
  name_ = random_staging_name();
  try {
    store_.create_staging_branch(name_, version, version.parent, encoding);
    writer_ = BranchWriter::open(store_, name_);
  } catch (const Error& e) {
    drop();
    const bool is_gone = e.code() == Errc::not_found || e.code() == Errc::busy;
    if (!is_gone || std::chrono::steady_clock::now() > last_try) throw;
  }
}

// Holds names, since gc must not run while neither name exists. Both names exist for a short time,
// or, after a crash, until the next gc. They then mean the same version.
void StagingBranch::publish(const NameLock& claim) {
  assert(writer_ != nullptr);
  const NamesShared names(store_);
  store_.publish_staging_branch(claim, names, writer_->head(), encoding_);
  drop();
}

void StagingBranch::drop() noexcept {
  if (name_.empty()) return;
  writer_.reset();
  try {
    if (const auto journal = try_lock_branch(store_, name_)) store_.drop_branch(name_, *journal);
  } catch (const std::exception&) {  // gc removes it, as after a crash
  }
  name_.clear();
}

}  // namespace vellum::store
