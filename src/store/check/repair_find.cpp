// The search for intact versions, and for replacements of corrupted ones.
#include "store/check/repair_find.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/fail.hpp"
#include "format/records/record.hpp"
#include "format/version.hpp"
#include "store/catalog/names.hpp"
#include "store/journal/read_journal.hpp"
#include "store/packs/pack_scanner.hpp"
#include "store/packs/record/record_io.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;
using format::RecordHeader;
using format::Version;

namespace {

// Every valid version record in any pack, by branch id and sequence; of equal ones the last. The
// scan skips damage and never fails because of it.
std::vector<Version> scan_version_records(StoreDirectory& store) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Version> found;
  for (const std::uint64_t pack : store.packs().places().list_found()) {
    try {
      // Bypasses the PackSet: a pack with a corrupted header still has records.
      const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only);
      PackScanner scanner(*file, pack, store.record_seal(), format::kPackHeaderBytes,
                          file->size_bytes());
      for (RecordHeader h; scanner.next(h);) {
        if (h.type != format::RecordType::version) continue;
        const auto record =
            load_record_at(store, {pack, h.offset_bytes, h.tag()}, format::RecordType::version);
        Version v;
        if (format::decode_version(record.raw, v)) found[{v.branch_id, v.sequence}] = std::move(v);
      }
    } catch (const Error& e) {
      if (e.code() == Errc::out_of_memory || e.code() == Errc::newer_format) throw;
      continue;  // a link, a directory, or an unreadable file
    }
  }
  std::vector<Version> out;
  out.reserve(found.size());
  for (auto& [key, version] : found) out.push_back(std::move(version));
  return out;
}

class Finder {
 public:
  Finder(StoreDirectory& store, Removed removed, const ProgressFn& progress)
      : store_(store), removed_(removed), progress_(progress) {}

  RepairFindings run() {
    records_ = scan_version_records(store_);
    for (const auto& name : snapshot_names(store_)) add_snapshot(name);
    for (const auto& name : store_.branch_names()) {
      if (!is_staging_name(name)) add_branch(name);
    }
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
  struct Candidate {
    ResolvedVersion resolved;
    std::string origin;
    std::uint64_t sequence;
  };

  // Reads every page that the maps or the journal name. Throws the store's errors.
  void read_all(const ResolvedVersion& v);
  // Saves the version, or records `lost_name`, if any, as lost. Returns whether it is saved.
  bool keep(Whole whole, const std::string& lost_name);
  void add_snapshot(const std::string& name);
  void add_branch(const std::string& name);
  void replace_branch(const LostBranch& lost);
  void add_journal_remains(const LostBranch& lost, std::vector<Candidate>& out);
  void add_lost_snapshots();
  void add_lost_lines();
  bool offer(const Version& v, const std::string& name, const std::string& origin);
  bool offer_branch(const std::string& name, ResolvedVersion resolved, bool exact,
                    const std::string& origin, const std::string& lost_name);
  std::uint64_t line_of(const std::string& branch);
  bool name_taken(const std::string& name) const {
    return std::any_of(found_.whole.begin(), found_.whole.end(),
                       [&](const Whole& w) { return w.name == name; });
  }

  // Whether the snapshot has a ref, but its version is lost.
  bool is_lost(const std::string& snapshot) const {
    return std::any_of(found_.lost.begin(), found_.lost.end(), [&](const LostVersion& lost) {
      return lost.name == "snapshot '" + snapshot + "'";
    });
  }

  StoreDirectory& store_;
  const Removed removed_;
  const ProgressFn& progress_;
  RepairFindings found_;
  std::vector<Version> records_;  // by line, oldest first
  std::vector<Version> read_;     // of refs and journals, intact or not
  std::vector<LostBranch> lost_branches_;
};

void Finder::read_all(const ResolvedVersion& v) {
  const auto source = PageSource::open(store_, v.version, v.commits, v.label);
  const PageNumber pages = source->region_bytes() / kPageBytes;
  constexpr std::size_t kStep = 64;
  std::vector<std::byte> out(kStep * kPageBytes);
  for (PageNumber page = 0; page < pages;) {
    const auto left = static_cast<std::size_t>(pages - page);
    const std::size_t zeros = source->zeros_from(page, left);
    page += zeros;
    if (zeros != 0) continue;
    const std::size_t n = std::min(left, kStep);
    source->read(page, n, out.data());
    page += n;
  }
  if (progress_) progress_({found_.whole.size() + 1, 0, "versions"});
}

bool Finder::keep(Whole whole, const std::string& lost_name) {
  try {
    if (name_taken(whole.name)) {
      fail(Errc::corrupted, "{}: another version has the name", whole.resolved.label);
    }
    read_all(whole.resolved);
  } catch (const Error& e) {
    const std::string reason = damage_reason(e);
    if (!lost_name.empty()) found_.lost.push_back({lost_name, reason});
    return false;
  }
  found_.whole.push_back(std::move(whole));
  return true;
}

void Finder::add_snapshot(const std::string& name) {
  const std::string label = "snapshot '" + name + "'";
  try {
    const auto ref = read_snapshot(store_, name);
    read_.push_back(ref.version);
    const Version& v = ref.version;
    keep({name,
          false,
          true,
          label,
          v.branch_id,
          {label, false, v, {}, ref.created_ns, ref.branch, std::nullopt, ref.order}},
         label);
  } catch (const Error& e) {
    if (e.code() == Errc::not_found && !has_snapshot(store_, name)) return;  // removed just now
    found_.lost.push_back({label, damage_reason(e)});
  }
}

// Offers a branch, with the properties of its last commit if it has commits.
bool Finder::offer_branch(const std::string& name, ResolvedVersion resolved, bool exact,
                          const std::string& origin, const std::string& lost_name) {
  const std::uint64_t line = resolved.version.branch_id;
  return keep({name, true, exact, origin, line, std::move(resolved)}, lost_name);
}

void Finder::add_branch(const std::string& name) {
  const std::string label = "branch '" + name + "'";
  try {
    auto resolved = resolve_version(store_, name);
    read_.push_back(resolved.version);
    const std::uint64_t line = resolved.version.branch_id;
    if (!offer_branch(name, std::move(resolved), true, label, label)) {
      lost_branches_.push_back({name, line});
    }
  } catch (const Error& e) {
    if (e.code() == Errc::not_found && !has_branch(store_, name)) return;  // removed just now
    found_.lost.push_back({label, damage_reason(e)});
    lost_branches_.push_back({name, line_of(name)});
  }
}

// The line of a branch whose journal cannot be read, from the journal's header or from snapshots.
std::uint64_t Finder::line_of(const std::string& branch) {
  try {
    std::vector<std::byte> bytes(format::kJournalHeaderBytes);
    store_.fs().open(store_.journal_path(branch), base::OpenMode::read_only)->pread(bytes, 0);
    format::JournalHeader header;
    if (format::decode_journal_header(bytes, store_.file_seal(), header) == nullptr) {
      return header.branch_id;
    }
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;  // else a link or a short file: try the snapshots
  }
  for (const auto& w : found_.whole) {
    if (!w.is_branch && w.resolved.branch == branch) return w.line;
  }
  return 0;
}

bool Finder::offer(const Version& v, const std::string& name, const std::string& origin) {
  return keep({name,
               false,
               false,
               origin,
               v.branch_id,
               {"snapshot '" + name + "'", false, v, {}, v.time_ns, ""}},
              "");
}

// Adds the content of a corrupted journal up to the damage.
void Finder::add_journal_remains(const LostBranch& lost, std::vector<Candidate>& out) {
  try {
    const auto file = store_.fs().open(store_.journal_path(lost.name), base::OpenMode::read_only);
    JournalRemains remains = read_corrupted_journal(*file, store_.file_seal());
    if (remains.state.header.branch != lost.name) return;
    const std::uint64_t head = remains.state.head_sequence();
    const std::string dropped = remains.lost_commits
                                    ? fmt::format("at least {}", *remains.lost_commits)
                                    : "an unknown number";
    out.push_back({{"branch '" + lost.name + "'", true, std::move(remains.state.base),
                    std::move(remains.state.commits), 0, lost.name, remains.state.header.encoding},
                   fmt::format("the journal up to the damage; dropped commits: {}", dropped),
                   head});
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;  // else: the journal has no usable content
  }
}

// Offers the newest intact state of the line: from the journal, a version record or a snapshot.
void Finder::replace_branch(const LostBranch& lost) {
  const std::string label = "branch '" + lost.name + "'";
  std::vector<Candidate> candidates;
  add_journal_remains(lost, candidates);
  for (const auto& v : records_) {
    if (v.branch_id != lost.line) continue;
    candidates.push_back({{label, false, v, {}, v.time_ns, lost.name},
                          fmt::format("the copy of version {} in the packs", v.sequence),
                          v.sequence});
  }
  for (const auto& w : found_.whole) {
    if (w.is_branch || (w.line != lost.line && w.resolved.branch != lost.name)) continue;
    const Version& v = w.resolved.version;
    candidates.push_back({{label, false, v, {}, v.time_ns, lost.name}, w.origin, v.sequence});
  }
  // Of equal ones the first found is preferred: the journal has more than a copy.
  std::multimap<std::uint64_t, Candidate*, std::greater<>> newest_first;
  for (auto& c : candidates) newest_first.emplace(c.sequence, &c);
  for (const auto& [sequence, c] : newest_first) {
    if (offer_branch(lost.name, std::move(c->resolved), false, c->origin, "")) return;
  }
}

// Every version names the snapshot before it. A missing snapshot was the last version of its line
// before the versions that name it.
void Finder::add_lost_snapshots() {
  // By sequence. Of equal ones, the record of a checkpoint is before the version of a name.
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
      if (removed_ == Removed::left_out && !is_lost(version.parent)) continue;
      if (!whole.insert(version.parent).second) continue;
      const std::string name = fmt::format("recovered-{:x}-{}", line, earlier->sequence);
      if (name_taken(name)) continue;
      offer(*earlier, name,
            fmt::format("the copy in the packs of version {}, which snapshot '{}' named",
                        earlier->sequence, version.parent));
    }
  }
}

// Offers lines without any remaining name. A lost name may have belonged to one of them.
void Finder::add_lost_lines() {
  if (removed_ == Removed::left_out && found_.lost.empty()) return;
  std::set<std::uint64_t> alive;
  for (const auto& w : found_.whole) alive.insert(w.line);
  for (std::size_t i = records_.size(); i-- > 0;) {
    const Version& v = records_[i];
    if (alive.contains(v.branch_id)) continue;
    const std::string name = fmt::format("recovered-{:x}-{}", v.branch_id, v.sequence);
    if (offer(v, name, "the newest copy in the packs of a removed branch")) {
      alive.insert(v.branch_id);
    }
  }
}

}  // namespace

RepairFindings find_whole_versions(StoreDirectory& store, Removed removed,
                                   const ProgressFn& progress) {
  return Finder(store, removed, progress).run();
}

}  // namespace vellum::store
