#include "store/gc/reach/roots.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <tuple>

#include "base/fail.hpp"
#include "format/version.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/journal/read_journal.hpp"
#include "store/packs/record/pack_extents.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

using format::Version;

namespace {

// Reads the copy of the version that the checkpoint wrote after the root. It must be of exactly
// this version: a guess would free data in use.
Version version_behind_root(StoreDirectory& store, const RootPlace& place) {
  const Extent copy = version_copy_extent(store, place.pack, place.offset_bytes);
  Version out;
  if (copy.to != 0) {
    const format::RecordHeader header = read_record_header(store, place.pack, copy.from);
    const auto record =
        load_record_at(store, {place.pack, copy.from, header.tag()}, format::RecordType::version);
    if (format::decode_version(record.raw, out) && !out.runs.empty() &&
        out.runs[0].root.pack == place.pack &&
        out.runs[0].root.offset_bytes == place.offset_bytes) {
      return out;
    }
  }
  fail(Errc::busy, "{}: the copy of an open version is missing",
       record_place(store, place.pack, place.offset_bytes));
}

}  // namespace

std::optional<std::uint64_t> Roots::settled_bytes(std::uint64_t pack) const {
  const auto next = next_pack_.find(pack >> 32);
  if (next != next_pack_.end() && pack >= next->second) return 0;
  const auto active = active_ends_.find(pack);
  if (active != active_ends_.end()) return active->second;
  return std::nullopt;
}

std::uint64_t Roots::reached_bytes(std::uint64_t pack) const {
  const auto at = writer_ends_.find(pack >> 32);
  if (at == writer_ends_.end() || pack > at->second.active_pack) return 0;
  if (pack == at->second.active_pack) return at->second.active_end_bytes;
  return std::binary_search(packs.begin(), packs.end(), pack + 1) ? UINT64_MAX : 0;
}

void Roots::note_reached(const Version& head) {
  writer_ends_[head.branch_id] = {head.active_pack, head.active_pack_end_bytes};
}

// The order matters: 1. Packs: a pack of a branch created meanwhile must not look like a pack of a
// removed branch. 2. Branches: a snapshot that a writer creates meanwhile is a version of the head
// that was read, or
//    follows it.
// 3. Snapshots: those of a branch that was removed after its snapshot are found here.
// Every other operation that could move a version from one name to another, or from a pin to a name,
// holds the names, or excludes gc.
Roots read_roots(StoreDirectory& store) {
  Roots out;
  store.packs().refresh();
  out.packs = store.packs().list();
  assert(std::is_sorted(out.packs.begin(), out.packs.end()));
  for (const auto& name : store.branch_names()) {
    std::vector<Version> bases;
    try {
      store.read_branch(name);  // for its checks
      const auto file = store.fs().open(store.journal_path(name), base::OpenMode::read_only);
      bases = read_base_versions(*file, store.file_seal());
    } catch (const Error& e) {
      if (e.code() == Errc::not_found) continue;  // removed just now
      throw;
    }
    out.branches += is_staging_name(name) ? 0 : 1;
    for (std::size_t i = 0; i < bases.size(); ++i) {
      Version& base = bases[i];
      // The smaller of two: until the later base is durable, a crash may restore the earlier one.
      const std::uint64_t next = (base.branch_id << 32) + base.next_pack_number;
      const auto [limit, fresh] = out.next_pack_.try_emplace(base.branch_id, next);
      if (!fresh) limit->second = std::min(limit->second, next);
      if (base.active_pack != 0) {
        const auto [end, first] =
            out.active_ends_.try_emplace(base.active_pack, base.active_pack_end_bytes);
        if (!first) end->second = std::min(end->second, base.active_pack_end_bytes);
      }
      out.versions.push_back({i == 0 ? name : "", true, i != 0, std::move(base)});
    }
  }
  for (const auto& name : snapshot_names(store)) {
    try {
      auto ref = read_snapshot(store, name);
      out.versions.push_back({name, false, false, std::move(ref.version), ref.order});
    } catch (const Error& e) {
      if (e.code() == Errc::not_found) continue;  // removed just now
      throw;
    }
    ++out.snapshots;
  }
  std::map<RootPlace, std::size_t> known;
  for (std::size_t i = 0; i < out.versions.size(); ++i) {
    const auto& runs = out.versions[i].version.runs;
    if (!runs.empty()) known[{runs[0].root.pack, runs[0].root.offset_bytes}] = i;
  }
  for (const RootPlace& place : pinned_roots(store, out.packs)) {
    ++out.kept_open;
    const auto at = known.find(place);
    if (at != known.end()) {
      out.versions[at->second].may_be_stale = false;
      continue;
    }
    out.versions.push_back({"", false, false, version_behind_root(store, place)});
  }
  // The smaller of a branch's base frames, as above; the largest of other versions.
  for (const Root& root : out.versions) {
    const Version& v = root.version;
    const Roots::WriterEnd end{v.active_pack, v.active_pack_end_bytes};
    const auto [known, fresh] = out.writer_ends_.try_emplace(v.branch_id, end);
    if (fresh) continue;
    const bool has_journal = out.next_pack_.contains(v.branch_id);
    if (!has_journal) known->second = std::max(known->second, end);
    if (has_journal && root.is_branch) known->second = std::min(known->second, end);
  }
  const auto place = [](const Root& r) {
    return std::make_tuple(r.version.branch_id, r.version.sequence, !r.is_branch, r.name.empty(),
                           std::string_view(r.name));
  };
  std::sort(out.versions.begin(), out.versions.end(),
            [&](const Root& a, const Root& b) { return place(a) < place(b); });
  return out;
}

}  // namespace vellum::store
