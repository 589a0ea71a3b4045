#include "store/live_snapshot.hpp"

#include <optional>
#include <random>

#include "store/branch_writer.hpp"
#include "store/diff.hpp"
#include "store/lease.hpp"
#include "store/page_copy.hpp"
#include "store/page_source.hpp"
#include "store/util.hpp"

namespace vellum::store {
namespace {

// The branch aside, for as long as this lives.
class Aside {
 public:
  Aside(StoreCore& store, const ResolvedVersion& from) : store_(store) {
    std::random_device random;
    name_ = fmt::format("vellum-snapshot-{:08x}{:08x}", random(), random());
    // One commit, and that goes to packs: nothing is to be journaled.
    store.create_branch_at(name_, from.version, from.version.parent, from.encoding,
                           format::kMinJournalHalfBytes);
  }
  ~Aside() {
    try {
      store_.remove_branch(name_);
    } catch (const std::exception&) {  // as after a crash: a branch too many
    }
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  const std::string& name() const noexcept { return name_; }

 private:
  StoreCore& store_;
  std::string name_;
};

// What the journal has, as one commit that goes to packs.
format::Version fold_aside(StoreCore& store, const Aside& aside, const ResolvedVersion& from) {
  const auto now = PageSource::open(store, from.version, from.commits, from.label);
  ResolvedVersion folded = from;
  folded.commits.clear();
  const auto before = PageSource::open(store, folded.version, {}, from.label);
  const auto pages = pages_that_may_differ(*before, folded, *now, from);
  const auto writer = BranchWriter::open(store, aside.name());
  auto commit = writer->begin();
  add_pages(*commit, writer->encoding(), *now, before.get(), pages);
  const format::CommitBody& last = from.commits.back();
  commit->finish(
      {last.time_ns, now->region_bytes(), last.base_address, last.message, now->file_bytes()},
      true);
  return writer->head();
}

}  // namespace

void snapshot_of_live(StoreCore& store, const std::string& branch, const std::string& name,
                      const std::string& message) {
  const KeptVersion kept = resolve_kept(store, branch);
  const ResolvedVersion& from = kept.version;
  format::Version version = from.version;
  std::optional<Aside> aside;  // until the snapshot needs what was written there
  if (!from.commits.empty()) {
    aside.emplace(store, from);
    version = fold_aside(store, *aside, from);
    version.sequence = from.version.sequence + from.commits.size();
  }
  store.create_snapshot(name, branch, version, message);
}

}  // namespace vellum::store
