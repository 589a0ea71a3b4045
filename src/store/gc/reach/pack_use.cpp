#include "store/gc/reach/pack_use.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

void reach_roots(StoreDirectory& store, const Roots& roots, LiveSet& live_set,
                 const BetweenSteps& between) {
  const auto reach = [&](const Root& root) {
    if (between) between();
    with_context(root.name.empty() ? store.path() : "'" + root.name + "' of " + store.path(),
                 [&] { live_set.reach(root.version); });
  };
  for (const Root& root : roots.versions) {
    if (!root.may_be_stale) reach(root);
  }
  live_set.begin_stale();
  for (const Root& root : roots.versions) {
    if (!root.may_be_stale) continue;
    try {
      reach(root);
    } catch (const Error& e) {
      if (e.code() != Errc::corrupted) throw;
    }
  }
}

namespace {

// A power cut may make an older base frame valid again, whose records may have been freed before.
bool record_exists(StoreDirectory& store, const format::RecordRef& ref) {
  try {
    store.packs().open(ref.pack);
    if (store.packs().is_remote(ref.pack)) return true;
    const RecordPlace place = store.packs().locate(ref);
    if (place.problem != nullptr) return false;
    return read_record_header(store, ref.pack, place.record.offset_bytes).tag() == place.record.tag;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
    return false;
  }
}

Needs needed_records(StoreDirectory& store, const LiveSet& live_set) {
  Needs out;
  for (LiveSet::RecordId id = 0; id < live_set.size(); ++id) {
    if (!live_set.is_reached(id)) continue;
    const auto& ref = live_set.record(id);
    if (!live_set.is_durable(id) && !record_exists(store, ref)) continue;
    out[ref.pack].records.push_back({ref.offset_bytes, id});
  }
  for (auto& [pack, needs] : out) {
    std::sort(needs.records.begin(), needs.records.end(),
              [](const auto& a, const auto& b) { return a.offset_bytes < b.offset_bytes; });
  }
  return out;
}

std::vector<Extent> extents_of(StoreDirectory& store, std::uint64_t pack,
                               const std::vector<PackNeeds::Record>& records, LiveSet& live_set) {
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint32_t> lines;
  offsets.reserve(records.size());
  lines.reserve(records.size());
  for (const auto& r : records) {
    offsets.push_back(r.offset_bytes);
    lines.push_back(live_set.size_lines(r.id));
  }
  auto extents = record_extents(store, pack, offsets, lines);
  assert(extents.size() == records.size() && lines.size() == records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    live_set.set_size_lines(records[i].id, lines[i]);
  }
  return extents;
}

constexpr std::uint64_t up(std::uint64_t at) { return base::round_up(at, kHoleBytes); }
constexpr std::uint64_t down(std::uint64_t at) { return at / kHoleBytes * kHoleBytes; }

// The whole blocks of [0, end) outside `needed`. REQUIRES: `needed` is sorted.
std::vector<Extent> holes_between(const std::vector<Extent>& needed, std::uint64_t end) {
  assert(std::is_sorted(needed.begin(), needed.end()));
  std::vector<Extent> holes;
  std::uint64_t at = 0;
  const auto add = [&](std::uint64_t to) {
    if (up(at) < down(to)) holes.push_back({up(at), down(to)});
  };
  for (const Extent& e : needed) {
    add(std::min(e.from, end));
    at = std::max(at, e.to);
  }
  add(end);
  return holes;
}

PackUse use_of(StoreDirectory& store, std::uint64_t pack, std::vector<Extent> needed,
               const Roots& roots, bool named) {
  PackUse use;
  use.pack = pack;
  const auto file = store.packs().places().open(pack);
  use.at_home = store.packs().places().is_home(*file);
  use.file_bytes = file->size_bytes();
  use.allocated_bytes = file->allocated_bytes();
  const std::uint64_t settled =
      std::min(roots.settled_bytes(pack).value_or(use.file_bytes), use.file_bytes);
  use.removable = needed.empty() && !named && !roots.settled_bytes(pack).has_value();
  if (use.removable) {
    use.freeable_bytes = use.allocated_bytes;
    return use;
  }
  needed.push_back({0, format::kPackHeaderBytes});
  if (settled == use.file_bytes) {
    const Extent index = index_extent(store, pack);
    if (index.to != 0) {
      needed.push_back(index);
      // Hints for later writers. They are kept as long as their pack.
      for (const auto& hint : hash_records(store, pack)) needed.push_back(extent_of(store, hint));
    }
  } else {
    needed.push_back({settled, use.file_bytes});
  }
  std::sort(needed.begin(), needed.end());
  std::uint64_t end = 0;
  for (const Extent& e : needed) {
    use.needed_bytes += std::max(e.to, end) - std::max(e.from, end);
    end = std::max(e.to, end);
  }
  use.holes = holes_between(needed, settled);
  std::uint64_t kept = up(use.file_bytes);
  for (const Extent& hole : use.holes) {
    assert(hole.from < hole.to && hole.to - hole.from <= kept);
    kept -= hole.to - hole.from;
  }
  if (use.allocated_bytes > kept) use.freeable_bytes = use.allocated_bytes - kept;
  return use;
}

}  // namespace

Needs needs_of_packs(StoreDirectory& store, const Roots& roots, const LiveSet& live_set) {
  Needs out = needed_records(store, live_set);
  for (const Root& root : roots.versions) {
    if (root.version.runs.empty()) continue;
    const format::RecordRef& newest = root.version.runs.front().root;
    const Extent copy = version_copy_extent(store, newest.pack, newest.offset_bytes);
    if (copy.to != 0) out[newest.pack].copies.push_back(copy);
  }
  for (auto& [pack, needs] : out) {
    std::sort(needs.copies.begin(), needs.copies.end());
    needs.copies.erase(std::unique(needs.copies.begin(), needs.copies.end()), needs.copies.end());
  }
  return out;
}

std::vector<std::uint64_t> record_bytes(StoreDirectory& store, LiveSet& live_set) {
  std::vector<std::uint64_t> out(live_set.size());
  for (const auto& [pack, needs] : needed_records(store, live_set)) {
    const auto extents = extents_of(store, pack, needs.records, live_set);
    for (std::size_t i = 0; i < needs.records.size(); ++i) {
      assert(extents[i].from <= extents[i].to);
      out[needs.records[i].id] = extents[i].to - extents[i].from;
    }
  }
  return out;
}

std::vector<PackUse> use_of_packs(StoreDirectory& store, const Roots& roots, LiveSet& live_set,
                                  const Needs& needs, const BetweenSteps& between) {
  std::vector<PackUse> out;
  for (const std::uint64_t pack : roots.packs) {
    if (between) between();
    std::vector<Extent> needed;
    const auto at = needs.find(pack);
    if (at != needs.end()) {
      needed = at->second.copies;
      const auto extents = extents_of(store, pack, at->second.records, live_set);
      needed.insert(needed.end(), extents.begin(), extents.end());
    }
    try {
      out.push_back(
          use_of(store, pack, std::move(needed), roots, live_set.named_packs().contains(pack)));
    } catch (const Error& e) {
      // Its writer has just removed it, or it is no pack.
      if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
    }
  }
  return out;
}

}  // namespace vellum::store
