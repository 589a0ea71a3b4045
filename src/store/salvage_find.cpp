// Which versions are whole, and what stands in for those that are not.
#include "store/salvage_find.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "store/page_source.hpp"
#include "store/salvage_scan.hpp"
#include "store/util.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;
using format::Version;

namespace {

class Finder {
 public:
  Finder(StoreCore& store, const ProgressFn& progress) : store_(store), progress_(progress) {}

  Findings run() {
    records_ = scan_version_records(store_);
    for (const auto& name : store_.snapshot_names()) add_snapshot(name);
    for (const auto& name : store_.branch_names()) add_branch(name);
    for (const auto& name : lost_branches_) replace_branch(name);
    add_lost_snapshots();
    add_lost_lines();
    return std::move(found_);
  }

 private:
  struct LostBranch {
    std::string name;
    std::uint64_t line;  // 0: unknown
  };

  // Reads every page that anything mentions. Throws what the store throws.
  void read_all(const ResolvedVersion& v);
  bool keep(Whole whole, const std::string& what_is_lost);
  void add_snapshot(const std::string& name);
  void add_branch(const std::string& name);
  void replace_branch(const LostBranch& lost);
  void add_lost_snapshots();
  void add_lost_lines();
  bool offer(const Version& v, const std::string& name, bool is_branch, const std::string& origin);
  std::uint64_t line_of(const std::string& branch);
  bool name_taken(const std::string& name) const {
    return std::any_of(found_.whole.begin(), found_.whole.end(),
                       [&](const Whole& w) { return w.name == name; });
  }

  StoreCore& store_;
  const ProgressFn& progress_;
  Findings found_;
  std::vector<Version> records_;  // by line, oldest first
  std::vector<Version> read_;     // of refs and journals, whole or not
  std::vector<LostBranch> lost_branches_;
};

void Finder::read_all(const ResolvedVersion& v) {
  const auto source = PageSource::open(store_, v.version, v.commits, v.label);
  const PageNumber pages = source->region_bytes() / kPageBytes;
  constexpr std::size_t kStep = 64;
  std::vector<std::byte> out(kStep * kPageBytes);
  for (PageNumber page = 0; page < pages;) {
    const auto left = static_cast<std::size_t>(pages - page);
    const std::size_t zeros = source->zero_run(page, left);
    page += zeros;
    if (zeros != 0) continue;
    const std::size_t n = std::min(left, kStep);
    source->read(page, n, out.data());
    page += n;
  }
  if (progress_) progress_({found_.whole.size() + 1, 0, "versions"});
}

bool Finder::keep(Whole whole, const std::string& what_is_lost) {
  try {
    if (name_taken(whole.name)) {
      fail(Errc::damaged, "{}: another version has the name", whole.resolved.label);
    }
    read_all(whole.resolved);
  } catch (const Error& e) {
    if (!what_is_lost.empty()) found_.lost.push_back({what_is_lost, e.what()});
    return false;
  }
  found_.whole.push_back(std::move(whole));
  return true;
}

void Finder::add_snapshot(const std::string& name) {
  const std::string label = "snapshot '" + name + "'";
  try {
    const auto ref = store_.read_snapshot(name);
    read_.push_back(ref.version);
    const Version& v = ref.version;
    keep({name,
          false,
          true,
          label,
          v.branch_id,
          v.sequence,
          v.time_ns,
          v.message,
          v.base_address,
          {label, false, v, {}, ref.created_ns, ref.branch}},
         label);
  } catch (const Error& e) {
    found_.lost.push_back({label, e.what()});
  }
}

void Finder::add_branch(const std::string& name) {
  const std::string label = "branch '" + name + "'";
  try {
    auto resolved = resolve_version(store_, name);
    const Version& v = resolved.version;
    read_.push_back(v);
    Whole whole{name,      true,        true,
                label,     v.branch_id, v.sequence + resolved.commits.size(),
                v.time_ns, v.message,   v.base_address,
                {}};
    if (!resolved.commits.empty()) {
      whole.time_ns = resolved.commits.back().time_ns;
      whole.message = resolved.commits.back().message;
      whole.base_address = resolved.commits.back().base_address;
    }
    const std::uint64_t line = v.branch_id;
    whole.resolved = std::move(resolved);
    if (!keep(std::move(whole), label)) lost_branches_.push_back({name, line});
  } catch (const Error& e) {
    found_.lost.push_back({label, e.what()});
    lost_branches_.push_back({name, line_of(name)});
  }
}

// The line of a branch whose journal does not read: its header may, and snapshots name it.
std::uint64_t Finder::line_of(const std::string& branch) {
  try {
    std::vector<std::byte> bytes(format::kJournalHeaderBytes);
    store_.fs().open(store_.journal_path(branch), base::OpenMode::read_only)->pread(bytes, 0);
    format::JournalHeader header;
    if (format::decode_journal_header(bytes, store_.superblock().store_id, header) == nullptr) {
      return header.branch_id;
    }
  } catch (const Error&) {
    // A link, a truncated file: the snapshots may know.
  }
  for (const auto& w : found_.whole) {
    if (!w.is_branch && w.resolved.branch == branch) return w.line;
  }
  return 0;
}

bool Finder::offer(const Version& v, const std::string& name, bool is_branch,
                   const std::string& origin) {
  const std::string label = is_branch ? "branch '" + name + "'" : "snapshot '" + name + "'";
  return keep({name,
               is_branch,
               false,
               origin,
               v.branch_id,
               v.sequence,
               v.time_ns,
               v.message,
               v.base_address,
               {label, false, v, {}, v.time_ns, is_branch ? name : ""}},
              "");
}

// The newest whole state of the line: a version record, or a snapshot.
void Finder::replace_branch(const LostBranch& lost) {
  std::vector<std::pair<Version, std::string>> candidates;
  for (const auto& v : records_) {
    if (v.branch_id != lost.line) continue;
    candidates.emplace_back(v, fmt::format("the copy of version {} in the packs", v.sequence));
  }
  for (const auto& w : found_.whole) {
    if (w.is_branch || (w.line != lost.line && w.resolved.branch != lost.name)) continue;
    candidates.emplace_back(w.resolved.version, w.origin);
  }
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::tie(b.first.sequence, a.second) < std::tie(a.first.sequence, b.second);
  });
  for (const auto& [version, origin] : candidates) {
    if (offer(version, lost.name, true, origin)) return;
  }
}

// Every version says which snapshot came before it. One that is not there any more was the last
// version of its line that does not name it yet.
void Finder::add_lost_snapshots() {
  // By sequence; of equal ones the record that a fold wrote comes before what was named later.
  std::map<std::uint64_t, std::multimap<std::uint64_t, Version>> lines;
  for (const auto& v : records_) lines[v.branch_id].emplace(v.sequence, v);
  for (const auto& v : read_) lines[v.branch_id].emplace(v.sequence, v);
  std::set<std::string> whole;
  for (const auto& w : found_.whole) whole.insert(w.name);
  for (const auto& [line, versions] : lines) {
    const Version* before = nullptr;
    for (const auto& [sequence, version] : versions) {
      const Version* const earlier = std::exchange(before, &version);
      if (earlier == nullptr || version.parent.empty() || version.parent == earlier->parent) {
        continue;
      }
      if (!whole.insert(version.parent).second) continue;
      const std::string name = fmt::format("recovered-{:x}-{}", line, earlier->sequence);
      if (name_taken(name)) continue;
      offer(*earlier, name, false,
            fmt::format("the copy in the packs of version {}, which snapshot '{}' named",
                        earlier->sequence, version.parent));
    }
  }
}

// Lines of which nothing has a name any more.
void Finder::add_lost_lines() {
  std::set<std::uint64_t> alive;
  for (const auto& w : found_.whole) alive.insert(w.line);
  for (std::size_t i = records_.size(); i-- > 0;) {
    const Version& v = records_[i];
    if (alive.contains(v.branch_id)) continue;
    const std::string name = fmt::format("recovered-{:x}-{}", v.branch_id, v.sequence);
    if (offer(v, name, false, "the newest copy in the packs of a branch that is gone")) {
      alive.insert(v.branch_id);
    }
  }
}

}  // namespace

Findings find_whole_versions(StoreCore& store, const ProgressFn& progress) {
  return Finder(store, progress).run();
}

}  // namespace vellum::store
