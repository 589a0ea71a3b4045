#include "store/census.hpp"

#include "store/util.hpp"

namespace vellum::store {

using format::PageKind;
using format::RecordRef;
using format::Version;

std::size_t Census::RefHash::operator()(const RecordRef& r) const noexcept {
  return static_cast<std::size_t>(mix64(r.pack) ^ mix64(r.offset_bytes + r.tag));
}

Census::RecordId Census::id_of(const RecordRef& ref) {
  const auto [at, fresh] = ids_.try_emplace(ref, static_cast<RecordId>(records_.size()));
  if (fresh) {
    if (records_.size() >= UINT32_MAX)
      fail(Errc::unsupported, "{}: too many records", store_.path());
    records_.push_back(ref);
  }
  return at->second;
}

const Census::Run& Census::load(const format::RunRef& ref) {
  const auto [at, fresh] = runs_.try_emplace(ref.root);
  Run& run = at->second;
  if (!fresh) return run;
  try {
    const auto loaded = store_.load_run(ref);
    run.own.push_back(id_of(ref.root));
    named_packs_.insert(ref.root.pack);
    named_packs_.insert(loaded->root.packs.begin(), loaded->root.packs.end());
    run.entries.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(ref.entries, 1u << 20)));
    // Neighbours often lie in the same record.
    RecordRef last;
    RecordId last_id = 0;
    for (std::size_t b = 0; b < loaded->root.blocks.size(); ++b) {
      run.own.push_back(id_of(loaded->block_ref(b)));
      for (const format::MapEntry& e : read_block(store_, *loaded, b)) {
        if (e.kind != PageKind::zero && e.record != last) {
          last = e.record;
          last_id = id_of(last);
        }
        run.entries.push_back({e.page, e.count, e.slot, last_id, e.kind});
      }
    }
  } catch (...) {
    runs_.erase(at);
    throw;
  }
  return run;
}

std::uint64_t Census::visit(const Version& version, const std::function<void(RecordId)>& need) {
  ShownPages shown;
  for (const auto& ref : version.runs) {
    const Run& run = load(ref);
    for (const RecordId id : run.own) need(id);
    for (const Entry& e : run.entries) {
      if (shown.take(e.page, e.count, e.kind) && e.kind != PageKind::zero) need(e.record);
    }
  }
  return shown.nonzero_pages();
}

void Census::begin_stale() {
  stale_ = true;
  firm_ = marked_;
}

void Census::note(RecordId id) {
  if (id >= marked_.size()) marked_.resize(records_.size());
  marked_[id] = true;
}

void Census::note_entry(const Entry& e, ShownPages& shown) {
  if (!note_slots_ || e.kind == PageKind::zero) {
    if (shown.take(e.page, e.count, e.kind) && e.kind != PageKind::zero) note(e.record);
    return;
  }
  shown.take_parts(e.page, e.count, e.kind, [&](std::uint32_t from, std::uint32_t count) {
    note(e.record);
    slots_.add(e.record, e.slot + from, count);
    if (!stale_) firm_slots_.add(e.record, e.slot + from, count);
  });
}

void Census::mark(const Version& version) {
  std::vector<RecordRef> roots;
  roots.reserve(version.runs.size());
  for (const auto& ref : version.runs) roots.push_back(ref.root);
  ShownPages shown;
  for (std::size_t i = 0; i < version.runs.size(); ++i) {
    // All that the rest shows is marked, whether the runs above hide it or not.
    const std::vector<RecordRef> rest(roots.begin() + static_cast<std::ptrdiff_t>(i), roots.end());
    if (marked_lists_.contains(rest)) break;
    const Run& run = load(version.runs[i]);
    for (const RecordId id : run.own) note(id);
    for (const Entry& e : run.entries) note_entry(e, shown);
  }
  marked_lists_.insert(std::move(roots));
}

}  // namespace vellum::store
