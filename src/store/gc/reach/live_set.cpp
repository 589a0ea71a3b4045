#include "store/gc/reach/live_set.hpp"

#include <algorithm>
#include <cassert>

#include "base/bytes/mix64.hpp"
#include "base/fail.hpp"
#include "store/gc/reach/base_pages.hpp"
#include "store/page_map/run_reader.hpp"

namespace vellum::store {

using format::PageKind;
using format::RecordRef;
using format::Version;

std::size_t LiveSet::RefHash::operator()(const RecordRef& r) const noexcept {
  return static_cast<std::size_t>(base::mix64(r.pack) ^ base::mix64(r.offset_bytes + r.tag));
}

namespace {

using format::CensusRange;

// Sorts `ids`.
std::vector<CensusRange> ranges_of(std::vector<std::uint32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  std::vector<CensusRange> out;
  for (const std::uint32_t id : ids) {
    if (out.empty() || id > out.back().first + out.back().count) {
      out.push_back({id, 1});
    } else if (id == out.back().first + out.back().count) {
      ++out.back().count;
    }
  }
  return out;
}

template <typename Visit>
void for_each(const std::vector<CensusRange>& ranges, const Visit& visit) {
  for (const CensusRange& r : ranges) {
    for (std::uint32_t i = 0; i < r.count; ++i) visit(r.first + i);
  }
}

}  // namespace

LiveSet::RecordId LiveSet::id_of(const RecordRef& ref) {
  const auto end = records_.begin() + static_cast<std::ptrdiff_t>(sorted_records_);
  const auto known = std::lower_bound(records_.begin(), end, ref);
  if (known != end && *known == ref) return static_cast<RecordId>(known - records_.begin());
  const auto [at, fresh] = ids_.try_emplace(ref, static_cast<RecordId>(records_.size()));
  if (fresh) {
    if (records_.size() >= UINT32_MAX)
      fail(Errc::unsupported, "{}: too many records", store_.path());
    records_.push_back(ref);
  }
  return at->second;
}

const LiveSet::Run& LiveSet::load(const format::RunRef& ref) {
  const auto [at, fresh] = runs_.try_emplace(ref.root);
  Run& run = at->second;
  if (!fresh) return run;
  try {
    const auto loaded = load_run(store_, ref);
    run.own.push_back(id_of(ref.root));
    run.packs = loaded->root.packs;
    run.packs.push_back(ref.root.pack);
    named_packs_.insert(run.packs.begin(), run.packs.end());
    run.entries.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(ref.entries, 1u << 20)));
    // Consecutive entries are often in the same record.
    RecordRef last;
    RecordId last_id = 0;
    for (std::size_t b = 0; b < loaded->root.blocks.size(); ++b) {
      run.own.push_back(id_of(loaded->block_ref(b)));
      for (const format::MapEntry& e : read_block(store_, *loaded, b)) {
        if (e.kind != PageKind::zero && e.record != last) {
          last = e.record;
          last_id = id_of(last);
        }
        const RecordId id = e.kind == PageKind::zero ? kNoRecord : last_id;
        run.entries.push_back({e.page, e.count, e.slot, id, e.kind});
      }
    }
  } catch (...) {
    runs_.erase(at);
    throw;
  }
  return run;
}

void LiveSet::begin_stale() {
  assert(!stale_);
  stale_ = true;
  durable_ = reached_;
}

void LiveSet::note(RecordId id) {
  assert(id < records_.size());
  if (id >= reached_.size()) reached_.resize(records_.size());
  reached_[id] = true;
  noted_.push_back(id);
}

void LiveSet::note_shown(const Entry& e) {
  note(e.record);
  if (e.kind != PageKind::base) return;
  if (shown_records_.empty() || shown_records_.back() != e.record) {
    shown_records_.push_back(e.record);
  }
}

// A base page is live as long as a record needs it.
void LiveSet::note_bases_of(RecordId id) {
  const auto at = bases_.find(id);
  if (at == bases_.end()) return;
  for (const RecordId base : at->second.records) note(base);
  if (!note_slots_) return;
  for (const auto& [base, slot] : at->second.slots) {
    slots_.add(base, slot, 1);
    if (!stale_) durable_slots_.add(base, slot, 1);
  }
}

void LiveSet::note_bases() {
  std::sort(shown_records_.begin(), shown_records_.end());
  const auto end = std::unique(shown_records_.begin(), shown_records_.end());
  shown_records_.erase(end, shown_records_.end());
  bases_known_.resize(records_.size());
  std::vector<RecordRef> refs;
  for (const RecordId id : shown_records_) {
    if (!bases_known_[id]) refs.push_back(records_[id]);
  }
  std::sort(refs.begin(), refs.end());
  find_base_pages(store_, refs, {.skip_corrupted = stale_, .fetch = follow_remote_},
                  [&](const RecordRef& ref, std::span<const format::BasePage> pages) {
                    Bases& bases = bases_[id_of(ref)];
                    bases = {};
                    for (const format::BasePage& page : pages) {
                      const RecordId base = id_of({ref.pack, page.offset_bytes, page.tag});
                      bases.slots.push_back({base, page.slot});
                      if (bases.records.empty() || bases.records.back() != base) {
                        bases.records.push_back(base);
                      }
                    }
                  });
  bases_known_.resize(records_.size());
  for (const RecordId id : shown_records_) {
    bases_known_[id] = true;
    note_bases_of(id);
  }
}

void LiveSet::note_entry(const Entry& e, ShownPages& shown) {
  if (!note_slots_ || e.kind == PageKind::zero) {
    if (shown.take(e.page, e.count, e.kind) && e.kind != PageKind::zero) note_shown(e);
    return;
  }
  shown.take_parts(e.page, e.count, e.kind, [&](std::uint32_t from, std::uint32_t count) {
    note_shown(e);
    slots_.add(e.record, e.slot + from, count);
    if (!stale_) durable_slots_.add(e.record, e.slot + from, count);
  });
}

LiveSet::ListId LiveSet::list_of(ListId older, RecordId root) {
  assert(older < reached_lists_.size() && root < records_.size());
  const auto key = std::uint64_t{older} << 32 | root;
  const auto [at, fresh] = lists_.try_emplace(key, static_cast<ListId>(reached_lists_.size()));
  if (fresh) reached_lists_.push_back(false);
  return at->second;
}

LiveSet::UnreachedRuns LiveSet::above_reached(const Version& version) {
  UnreachedRuns out;
  out.roots.resize(version.runs.size());
  std::size_t above = out.roots.size();
  for (std::size_t i = out.roots.size(); i-- > 0;) {
    out.roots[i] = id_of(version.runs[i].root);
    out.whole = list_of(out.whole, out.roots[i]);
    if (reached_lists_[out.whole]) above = i;
  }
  out.roots.resize(above);
  return out;
}

void LiveSet::read(std::span<const format::RunRef> runs, ReachedPart& part) {
  noted_.clear();
  shown_records_.clear();
  std::set<std::uint64_t> packs;
  ShownPages shown;
  for (const auto& ref : runs) {
    const Run& run = load(ref);
    for (const RecordId id : run.own) note(id);
    for (const Entry& e : run.entries) note_entry(e, shown);
    packs.insert(run.packs.begin(), run.packs.end());
  }
  note_bases();
  part.packs.assign(packs.begin(), packs.end());
  part.records = ranges_of(noted_);
}

void LiveSet::mark_reached(const ReachedPart& part) {
  if (reached_.size() < records_.size()) reached_.resize(records_.size());
  for (const auto& r : part.records) {
    assert(std::uint64_t{r.first} + r.count <= reached_.size());
    const auto first = reached_.begin() + static_cast<std::ptrdiff_t>(r.first);
    std::fill(first, first + static_cast<std::ptrdiff_t>(r.count), true);
  }
  named_packs_.insert(part.packs.begin(), part.packs.end());
}

void LiveSet::reach(const Version& version) {
  const auto [roots, whole] = above_reached(version);
  if (!roots.empty()) mark_reached(part_of(roots, version));
  reached_lists_[whole] = true;
}

const LiveSet::ReachedPart& LiveSet::part_of(const Roots& roots, const Version& version) {
  assert(roots.size() <= version.runs.size());
  const auto [at, fresh] = parts_.try_emplace(roots);
  if (!fresh) return at->second;
  const auto known = earlier_.find(roots);
  if (known != earlier_.end()) {
    ++earlier_used_;
    return at->second = std::move(known->second);
  }
  try {
    read(std::span(version.runs).first(roots.size()), at->second);
  } catch (...) {
    parts_.erase(at);
    throw;
  }
  has_changed_ = true;
  return at->second;
}

void LiveSet::set_size_lines(RecordId id, std::uint32_t lines) {
  assert(id < records_.size());
  if (size_lines_.size() < records_.size()) size_lines_.resize(records_.size());
  size_lines_[id] = lines;
}

void LiveSet::load_earlier(format::GcCensus earlier, std::span<const std::uint64_t> packs) {
  assert(records_.empty() && runs_.empty() && parts_.empty());
  assert(std::is_sorted(packs.begin(), packs.end()));
  records_ = std::move(earlier.records);
  sorted_records_ = records_.size();
  size_lines_ = std::move(earlier.size_lines);
  for (auto& part : earlier.parts) {
    const bool exists =
        std::includes(packs.begin(), packs.end(), part.packs.begin(), part.packs.end());
    if (exists) earlier_[std::move(part.roots)] = {std::move(part.records), std::move(part.packs)};
    has_changed_ |= !exists;
  }
}

format::GcCensus LiveSet::save() const {
  std::vector<bool> used(records_.size());
  for (const auto& [roots, part] : parts_)
    for_each(part.records, [&](RecordId id) { used[id] = true; });
  std::vector<RecordId> order;
  for (RecordId id = 0; id < used.size(); ++id) {
    if (used[id]) order.push_back(id);
  }
  std::sort(order.begin(), order.end(),
            [&](RecordId a, RecordId b) { return records_[a] < records_[b]; });
  format::GcCensus out;
  std::vector<RecordId> number(records_.size());
  for (const RecordId id : order) {
    number[id] = static_cast<RecordId>(out.records.size());
    out.records.push_back(records_[id]);
    out.size_lines.push_back(size_lines(id));
  }
  for (const auto& [roots, part] : parts_) {
    std::vector<RecordId> ids;
    for_each(part.records, [&](RecordId id) { ids.push_back(number[id]); });
    auto& saved = out.parts.emplace_back();
    for (const RecordId root : roots) {
      assert(used[root]);
      saved.roots.push_back(number[root]);
    }
    saved.records = ranges_of(ids);
    saved.packs = part.packs;
  }
  std::sort(out.parts.begin(), out.parts.end(),
            [](const auto& a, const auto& b) { return a.roots < b.roots; });
  return out;
}

}  // namespace vellum::store
