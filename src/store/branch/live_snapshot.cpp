#include "store/branch/live_snapshot.hpp"

#include <optional>
#include <string_view>

#include "store/branch/branch_writer.hpp"
#include "store/branch/page_copy.hpp"
#include "store/catalog/aside_name.hpp"
#include "store/catalog/branch_lock.hpp"
#include "store/catalog/kept_version.hpp"
#include "store/lock/version_pin.hpp"
#include "store/page_map/diff.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {
namespace {

// Owns the branch aside and its lock. Without the lock, gc would take the branch for a leftover of
// a crash.
class Aside {
 public:
  Aside(StoreCore& store, const ResolvedVersion& from) : store_(store) {
    while (writer_ == nullptr) make(from);
  }
  ~Aside() {
    writer_.reset();
    try {
      if (const auto journal = try_lock_branch(store_, name_)) store_.drop_branch(name_, *journal);
    } catch (const std::exception&) {  // as after a crash: gc removes it
    }
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  BranchWriter& writer() noexcept { return *writer_; }

 private:
  // gc may find the branch before it is locked and remove it; the caller then tries again.
  void make(const ResolvedVersion& from) {
    name_ = random_aside_name();
    try {
      store_.create_branch_aside(name_, from.version, from.version.parent, from.encoding);
      writer_ = BranchWriter::open(store_, name_);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found && e.code() != Errc::busy) throw;
    }
  }

  StoreCore& store_;
  std::string name_;
  std::unique_ptr<BranchWriter> writer_;
};

// Writes the journal's commits as one commit that goes to packs.
format::Version checkpoint_aside(StoreCore& store, Aside& aside, const ResolvedVersion& from) {
  const auto now = PageSource::open(store, from.version, from.commits, from.label);
  ResolvedVersion checkpointed = from;
  checkpointed.commits.clear();
  const auto before = PageSource::open(store, checkpointed.version, {}, from.label);
  const auto pages = pages_that_may_differ(*before, checkpointed, *now, from);
  BranchWriter& writer = aside.writer();
  auto commit = writer.begin();
  add_pages(*commit, writer.encoding(), *now, before.get(), pages);
  const format::CommitBody& last = from.commits.back();
  commit->finish(
      {last.time_ns, now->region_bytes(), last.base_address, last.message, now->file_bytes()},
      true);
  return writer.head();
}

}  // namespace

void snapshot_of_live(StoreCore& store, const std::string& branch, const NameLock& claim,
                      const std::string& message) {
  const KeptVersion kept = resolve_kept(store, branch);
  const ResolvedVersion& from = kept.version;
  format::Version version = from.version;
  std::optional<Aside> aside;  // lives until the snapshot needs its packs
  if (!from.commits.empty()) {
    aside.emplace(store, from);
    version = checkpoint_aside(store, *aside, from);
    version.sequence = from.version.sequence + from.commits.size();
  }
  store.create_snapshot(claim, branch, version, message);
}

}  // namespace vellum::store
