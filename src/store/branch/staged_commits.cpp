#include "store/branch/staged_commits.hpp"

#include <cassert>

#include "base/fail.hpp"
#include "store/branch/checkpoint/page_difference.hpp"
#include "store/branch/kept_name.hpp"
#include "store/journal/journal_writer.hpp"
#include "store/journal/read_journal.hpp"
#include "store/page_map/diff.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {
namespace {

// The branch as of the commit `sequence`.
std::optional<ResolvedVersion> head_in(const base::File& journal, const format::FileSeal& seal,
                                       std::uint64_t sequence, const std::string& label) {
  JournalState state = read_journal(journal, seal);
  if (sequence <= state.base.sequence || sequence > state.head_sequence()) return std::nullopt;
  ResolvedVersion out;
  out.label = label;
  out.is_branch = true;
  out.version = std::move(state.base);
  out.commits = std::move(state.commits);
  out.commits.resize(static_cast<std::size_t>(sequence - out.version.sequence));
  return out;
}

std::optional<StagedCommits> compare(StoreDirectory& store, const std::string& staging_name,
                                     const ResolvedVersion& now, const format::Encoding& encoding) {
  StagedCommits out{resolve_kept(store, staging_name), {}, 0, std::nullopt};
  const ResolvedVersion& staged = out.head.version;
  if (!staged.commits.empty() || staged.version.runs == now.version.runs) return std::nullopt;
  const auto source = PageSource::open(store, now.version, now.commits, now.label);
  const auto before = PageSource::open(store, staged.version, {}, staged.label);
  const auto pages = pages_that_may_differ(*before, staged, *source, now);
  out.rest = page_writes(encoding, *source, before.get(), pages);
  const std::uint64_t written = source->overlaid_pages().size(), left = pages_in(out.rest);
  out.staged_pages = written - std::min(written, left);
  return out;
}

// The comparison would fetch pages that the commits do not need.
bool has_remote_packs(const PackSet& packs) {
  return packs.reaches_remote() && !packs.list_remote().empty();
}

}  // namespace

void StagedCommits::move_to(format::Version& version) const {
  const format::Version& staged = head.version.version;
  version.runs = staged.runs;
  version.pages_changed += staged_pages;
  version.bytes_added += staged.bytes_added;
}

// Asks the cheap question first: a branch that nobody pushes costs one look at a directory. With gc
// excluded, nobody keeps the names for long, either.
//
// No error but a lack of memory ends a checkpoint, which can do without: gc may remove the branch, a
// newer Vellum may write it, and it may be damaged. The next push reports that. Damage of the
// branch's own pages is reported to those who read them.
std::optional<StagedCommits> find_staged_commits(StoreDirectory& store,
                                                 const JournalWriter& journal,
                                                 std::uint64_t sequence,
                                                 const format::Encoding& encoding,
                                                 const std::string& label) {
  try {
    const std::string name = kept_name(journal.base());
    if (!has_branch(store, name) || has_remote_packs(store.packs())) return std::nullopt;
    std::optional<GcShared> gc_lock = GcShared::try_lock(store);
    if (!gc_lock.has_value()) return std::nullopt;
    const auto now = head_in(journal.file(), store.file_seal(), sequence, label);
    if (!now.has_value()) return std::nullopt;
    std::optional<StagedCommits> out = compare(store, name, *now, encoding);
    if (out.has_value()) out->gc_lock = std::move(gc_lock);
    return out;
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return std::nullopt;
  }
}

}  // namespace vellum::store
