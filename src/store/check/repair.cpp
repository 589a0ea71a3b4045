// Copies the intact versions to a new store. repair_find.cpp finds them.
#include "store/check/check.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <tuple>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "store/branch/branch_writer.hpp"
#include "store/branch/page_copy.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/snapshots/snapshot_order.hpp"
#include "store/check/repair_find.hpp"
#include "store/page_map/diff.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;

namespace {

class Copier {
 public:
  Copier(StoreDirectory& from, StoreDirectory& to, const std::vector<Whole>& whole,
         const ProgressFn& progress)
      : from_(from), to_(to), progress_(progress) {
    for (const Whole& w : whole) taken_.insert(w.name);
  }

  std::uint64_t pages_written() const { return pages_written_; }

  // Replays the versions of one line, oldest first, on one branch. Each costs only its difference
  // from the previous one.
  void copy_line(std::vector<const Whole*> versions) {
    assert(!versions.empty());
    std::sort(versions.begin(), versions.end(), [](const Whole* a, const Whole* b) {
      const auto key = [](const Whole& w) {
        return std::tuple(w.resolved.head_sequence(), w.is_branch, w.name);
      };
      return key(*a) < key(*b);
    });
    const auto head =
        std::find_if(versions.begin(), versions.end(), [](const Whole* w) { return w->is_branch; });
    // A line without a branch is written to a temporary branch. Its snapshots remain.
    const bool has_head = head != versions.end();
    const std::string branch =
        has_head ? (*head)->name : free_name(fmt::format("repair-{:x}", versions.front()->line));
    start_branch(branch, *versions.front(), has_head ? (*head)->resolved.encoding : std::nullopt);
    {
      const auto writer = BranchWriter::open(to_, branch);
      for (const Whole* v : versions) copy(*writer, *v);
    }
    if (!has_head) to_.remove_branch(branch);
  }

  bool has(const std::string& snapshot) const { return copied_.contains(snapshot); }

 private:
  std::string free_name(std::string name) const {
    while (has_branch(to_, name) || taken_.contains(name)) name += '+';
    return name;
  }

  // Starts at the snapshot that the line was forked from, if the new store has it, to share pages.
  void start_branch(const std::string& branch, const Whole& first,
                    const std::optional<format::Encoding>& encoding) {
    previous_ = nullptr;
    const auto parent = copied_.find(first.resolved.version.parent);
    if (parent != copied_.end() &&
        parent->second->resolved.version.region_bytes <= first.resolved.version.region_bytes) {
      to_.create_branch_at(branch, read_snapshot(to_, parent->first).version, parent->first,
                           encoding);
      previous_ = parent->second;
    } else {
      to_.create_branch(branch, 0, 0, encoding);
    }
  }

  void copy(BranchWriter& writer, const Whole& v) {
    const auto source = PageSource::open(from_, v.resolved.version, v.resolved.commits, v.origin);
    const auto before = previous_ == nullptr
                            ? nullptr
                            : PageSource::open(from_, previous_->resolved.version,
                                               previous_->resolved.commits, previous_->origin);
    const auto pages = changed_pages(*source, v, before.get());
    auto commit = writer.begin();
    pages_written_ += add_pages(*commit, writer.encoding(), *source, before.get(), pages);
    commit->finish(v.resolved.head_info(), true);
    if (!v.is_branch) publish(writer, v);
    previous_ = &v;
    if (progress_) progress_({++versions_done_, 0, "versions copied"});
  }

  // Publishes the version as a snapshot under its own name and times.
  void publish(BranchWriter& writer, const Whole& v) {
    writer.publish_snapshot(v.name, v.resolved.head_info().message);
    auto ref = read_snapshot(to_, v.name);
    ref.created_ns = v.resolved.created_ns;
    if (v.resolved.order != 0) ref.order = v.resolved.order;
    if (!v.resolved.branch.empty()) ref.branch = v.resolved.branch;
    ref.signature.reset();  // repair vouches for nothing
    base::publish_file(to_.fs(), to_.tmp_directory(), to_.snapshots_directory(), v.name + ".ref",
                       format::encode_snapshot_ref(ref, to_.file_seal()), true);
    copied_[v.name] = &v;
  }

  std::vector<PageNumber> changed_pages(const PageSource& source, const Whole& v,
                                        const PageSource* before) const {
    if (before != nullptr) {
      assert(previous_ != nullptr);
      return pages_that_may_differ(*before, previous_->resolved, source, v.resolved);
    }
    std::vector<PageNumber> out;
    const PageNumber pages = source.region_bytes() / kPageBytes;
    for (PageNumber page = 0; page < pages;) {
      const std::size_t zeros = source.zeros_from(page, static_cast<std::size_t>(pages - page));
      page += zeros;
      if (zeros == 0) out.push_back(page++);
    }
    return out;
  }

  StoreDirectory& from_;
  StoreDirectory& to_;
  const ProgressFn& progress_;
  const Whole* previous_ = nullptr;  // the content of the current branch
  std::set<std::string> taken_;      // names that versions will have
  std::map<std::string, const Whole*> copied_;
  std::uint64_t pages_written_ = 0, versions_done_ = 0;
};

// Copies a line that was forked from a snapshot after the line of that snapshot.
void copy_all(const std::vector<Whole>& whole, Copier& copier) {
  std::map<std::uint64_t, std::vector<const Whole*>> lines;
  std::map<std::string, std::uint64_t> line_of_snapshot;
  for (const Whole& w : whole) {
    lines[w.line].push_back(&w);
    if (!w.is_branch) line_of_snapshot[w.name] = w.line;
  }
  while (!lines.empty()) {
    auto next = std::find_if(lines.begin(), lines.end(), [&](const auto& line) {
      const Whole* first = *std::min_element(
          line.second.begin(), line.second.end(), [](const Whole* a, const Whole* b) {
            return a->resolved.head_sequence() < b->resolved.head_sequence();
          });
      const auto parent = line_of_snapshot.find(first->resolved.version.parent);
      return parent == line_of_snapshot.end() || parent->second == line.first ||
             copier.has(parent->first);
    });
    if (next == lines.end()) next = lines.begin();  // a cycle of forged parents
    copier.copy_line(std::move(next->second));
    lines.erase(next);
  }
}

// Returns the number of pages written. The destination appears only after it is complete.
std::uint64_t copy_into_new_store(base::Fs& fs, StoreDirectory& from,
                                  const std::string& destination, const std::vector<Whole>& whole,
                                  const ProgressFn& progress) {
  base::NewDirectory directory(fs, destination);
  std::uint64_t pages_written = 0;
  {
    const auto to = StoreDirectory::create(fs, directory.unfinished_path(), from.superblock());
    Copier copier(from, *to, whole, progress);
    copy_all(whole, copier);
    forget_snapshot_order(*to);
    pages_written = copier.pages_written();
  }
  directory.publish();
  return pages_written;
}

}  // namespace

RepairReport repair_store(base::Fs& fs, const std::string& path,
                          const std::optional<std::string>& destination, const ProgressFn& progress,
                          Removed removed) {
  const auto store = StoreDirectory::open(fs, path);
  if (destination) store->require_plain("the repaired store");
  const NamesShared names(*store);
  if (destination && (*destination + "/").starts_with(store->path() + "/")) {
    fail(Errc::invalid_argument, "{}: is inside the corrupted store", *destination);
  }
  if (destination) base::require_free(fs, *destination);
  RepairFindings found = find_whole_versions(*store, removed, progress);
  RepairReport report;
  report.lost = std::move(found.lost);
  if (destination) {
    report.pages_written = copy_into_new_store(fs, *store, *destination, found.whole, progress);
    report.destination = *destination;
  }
  for (const Whole& w : found.whole) {
    report.saved.push_back({w.name, w.is_branch, w.resolved.head_sequence(),
                            w.resolved.head_info().region_bytes, w.origin, w.exact});
  }
  return report;
}

}  // namespace vellum::store
