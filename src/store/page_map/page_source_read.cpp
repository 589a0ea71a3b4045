// store/page_map/page_source_read.cpp: reading pages, in the fault handler as well.
//
// Nothing here allocates, throws or uses much stack, except fetch_early(), which no fault handler
// calls.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/memory/zeros.hpp"
#include "store/packs/record/pack_store.hpp"
#include "store/page_map/page_source_state.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::MapEntry;
using format::PageKind;
using format::PageNumber;
using format::RecordRef;
using format::RecordType;

namespace {

// Pages read in one step: the stack of a thread in the fault handler must hold their plan.
constexpr std::size_t kPagesPerStep = 16;
constexpr std::size_t kMaxLinks = 128;
static_assert(kMaxChainDeltas <= kMaxLinks);

// A delta in the chain of a page.
struct Link {
  RecordRef record;
  std::uint32_t slot = 0;
  std::uint8_t page = 0;  // of the step
};
static_assert(kPagesPerStep <= UINT8_MAX);

// The sources of one page.
struct Target {
  enum State : std::uint8_t { open, zero, base, overlaid };
  RecordRef record;
  std::uint32_t slot = 0;
  State state = open;
  std::uint8_t depth = 0;  // of the oldest delta found so far
  std::uint8_t deltas = 0;
};

struct Plan {
  Target pages[kPagesPerStep];
  // Those of newer runs first: the links of each page are ordered newest to oldest.
  Link links[kMaxLinks];
  std::size_t links_used = 0;
};
static_assert(sizeof(Plan) <= std::size_t{6} * 1024);

enum class Collected { all, too_many, failed };

bool fail_page(ReadFailure& failure, const char* reason, PageNumber page,
               const RecordRef& record = {}) noexcept {
  failure = {reason, record, page, 0};
  return false;
}

// One step of try_read(): finds the sources of up to kPagesPerStep pages, then assembles the pages.
class PageReader {
 public:
  explicit PageReader(const PageSourceState& source, bool alone = false)
      : s(source), alone_(alone) {}
  Collected load(PageNumber first, std::size_t count, std::byte* out,
                 ReadFailure& failure) const noexcept;
  bool surely_equal(PageNumber first, std::size_t count, const std::byte* content) const noexcept;
  // Adds the records that load() reads, except blocks of the page map. Allocates.
  Collected add_records(PageNumber first, std::size_t count, std::vector<RecordRef>& out) const;

 private:
  bool fill(const Plan& plan, PageNumber first, std::size_t count, std::byte* out,
            ReadFailure& failure) const noexcept;
  // Calls use(index, pages, content) for each group of adjacent pages with one source; `content` is
  // null if they are zero. False: a page cannot be read, or `use` has returned false. With `out`,
  // pages of a block may be decoded straight to `out`, without a call.
  template <typename Use>
  bool for_bases(const Plan& plan, PageNumber first, std::size_t count, std::byte* out,
                 ReadFailure& failure, const Use& use) const noexcept;
  static const std::byte* pages_in(const RecordCache::View& view, const Target& t, std::size_t n,
                                   PageNumber page, ReadFailure& failure) noexcept;
  bool fill_deltas(const Plan& plan, PageNumber first, std::byte* out,
                   ReadFailure& failure) const noexcept;
  void fill_overlay(PageNumber first, std::size_t count, std::byte* out) const noexcept;
  Collected collect(PageNumber first, std::size_t count, Plan& plan,
                    ReadFailure& failure) const noexcept;
  Collected collect_run(const LoadedRun& run, PageNumber first, std::size_t count, Plan& plan,
                        std::size_t& open_pages, ReadFailure& failure) const noexcept;
  Collected note(const MapEntry& e, PageNumber first, PageNumber page, Plan& plan,
                 std::size_t& open_pages, ReadFailure& failure) const noexcept;
  const PageSourceState& s;
  const bool alone_;
};

// Adds an entry to the target of a page that is still open.
Collected PageReader::note(const MapEntry& e, PageNumber first, PageNumber page, Plan& plan,
                           std::size_t& open_pages, ReadFailure& failure) const noexcept {
  assert(page >= first && page - first < kPagesPerStep);
  Target& target = plan.pages[page - first];
  assert(target.state == Target::open && open_pages > 0);
  // Depths count down to the base, so this detects a version that lost a run in between.
  if (target.deltas != 0 && e.depth + 1 != target.depth) {
    fail_page(failure, "the page's delta chain is broken", page, e.record);
    return Collected::failed;
  }
  if (e.kind != PageKind::delta) {
    target.state = e.kind == PageKind::zero ? Target::zero : Target::base;
    target.record = e.record;
    target.slot = e.slot + static_cast<std::uint32_t>(page - e.page);
    --open_pages;
    return Collected::all;
  }
  if (target.deltas == kMaxChainDeltas) {
    fail_page(failure, "the page's delta chain is too long", page, e.record);
    return Collected::failed;
  }
  if (plan.links_used == kMaxLinks) return Collected::too_many;
  plan.links[plan.links_used++] = {e.record, e.slot, static_cast<std::uint8_t>(page - first)};
  target.depth = e.depth;
  ++target.deltas;
  return Collected::all;
}

Collected PageReader::collect_run(const LoadedRun& run, PageNumber first, std::size_t count,
                                  Plan& plan, std::size_t& open_pages,
                                  ReadFailure& failure) const noexcept {
  const PageNumber end = first + count;
  const auto& blocks = run.root.blocks;
  for (std::size_t b = run.block_from(first); b < blocks.size() && blocks[b].first_page < end;
       ++b) {
    RecordCache::View view;
    if (!get_block(*s.records, run, b, view, failure)) {
      failure.page = first;
      return Collected::failed;
    }
    const auto entries = view.entries();
    const MapEntry* const stop = entries.data() + entries.size();
    for (const MapEntry* e = first_reaching(entries, first); e != stop && e->page < end; ++e) {
      const PageNumber to = std::min(end, e->page + e->count);
      for (PageNumber page = std::max(first, e->page); page < to; ++page) {
        if (plan.pages[page - first].state != Target::open) continue;
        const Collected c = note(*e, first, page, plan, open_pages, failure);
        if (c != Collected::all) return c;
      }
    }
  }
  return Collected::all;
}

Collected PageReader::collect(PageNumber first, std::size_t count, Plan& plan,
                              ReadFailure& failure) const noexcept {
  std::size_t open_pages = count;
  if (!s.overlay.empty()) {
    for (const auto& line : s.overlay.find(first, count)) {
      Target& target = plan.pages[line.page - first];
      if (line.full() && target.state == Target::open) {
        target.state = Target::overlaid;
        --open_pages;
      }
    }
  }
  for (const auto& run : s.runs) {
    if (open_pages == 0) break;
    const Collected c = collect_run(*run, first, count, plan, open_pages, failure);
    if (c != Collected::all) return c;
  }
  for (std::size_t i = 0; open_pages != 0 && i < count; ++i) {
    Target& target = plan.pages[i];
    if (target.state != Target::open) continue;
    if (target.deltas != 0 && target.depth != 1) {
      fail_page(failure, "the page's delta chain has no end", first + i);
      return Collected::failed;
    }
    target.state = Target::zero;
  }
  return Collected::all;
}

// The n pages of a record from the target's on. Null: the record lacks some of them.
const std::byte* PageReader::pages_in(const RecordCache::View& view, const Target& t, std::size_t n,
                                      PageNumber page, ReadFailure& failure) noexcept {
  const char* problem = nullptr;
  if (std::uint64_t{t.slot} + n > view.header().items) {
    problem = "the record has no such page";
  } else if (!view.holds(t.slot, n)) {
    problem = "gc has freed the page";
  }
  assert(n >= 1);
  if (problem == nullptr) return view.raw().data() + t.slot * kPageBytes;
  fail_page(failure, problem, page, t.record);
  return nullptr;
}

template <typename Use>
bool PageReader::for_bases(const Plan& plan, PageNumber first, std::size_t count, std::byte* out,
                           ReadFailure& failure, const Use& use) const noexcept {
  for (std::size_t i = 0; i < count;) {
    const Target& t = plan.pages[i];
    std::size_t n = 1;
    const auto same = [&](std::size_t k) {
      const Target& u = plan.pages[k];
      return u.state == t.state &&
             (t.state != Target::base || (u.record == t.record && u.slot == t.slot + (k - i)));
    };
    while (i + n < count && same(i + n)) ++n;
    if (t.state == Target::zero) {
      if (!use(i, n, nullptr)) return false;
    } else if (t.state == Target::base) {
      DirectPages direct{{}, t.slot, alone_};
      if (out != nullptr) direct.out = {out + i * kPageBytes, n * kPageBytes};
      RecordCache::View view;
      const format::SlotRange slots{t.slot, static_cast<std::uint32_t>(n)};
      if (!s.records->get({t.record, RecordType::pages, direct, slots}, view, failure)) {
        failure.page = first + i;
        return false;
      }
      // The pieces at a remote may hold different pages of this record: read the pages one by one.
      if (!view.empty() && n > 1 && !view.holds(t.slot, n)) {
        n = 1;
        if (!s.records->get({t.record, RecordType::pages, {}, {t.slot, 1}}, view, failure)) {
          failure.page = first + i;
          return false;
        }
      }
      if (!view.empty()) {
        const std::byte* const content = pages_in(view, t, n, first + i, failure);
        if (content == nullptr || !use(i, n, content)) return false;
      }
    }
    i += n;
  }
  return true;
}

// Applies the oldest deltas first. The deltas of one run for adjacent pages are mostly in one record,
// which is looked up once for all of them.
bool PageReader::fill_deltas(const Plan& plan, PageNumber first, std::byte* out,
                             ReadFailure& failure) const noexcept {
  RecordCache::View view;
  const RecordRef* held = nullptr;
  for (std::size_t l = plan.links_used; l-- > 0;) {
    const Link& link = plan.links[l];
    const PageNumber page = first + link.page;
    if (held == nullptr || *held != link.record || !view.holds(link.slot)) {
      if (!s.records->get({link.record, RecordType::deltas, {}, {link.slot, 1}}, view, failure)) {
        failure.page = page;
        return false;
      }
      held = &link.record;
    }
    const auto lines = view.deltas();
    if (link.slot >= lines.size() || lines[link.slot].page != page) {
      return fail_page(failure, "the record has no such delta", page, link.record);
    }
    if (!view.holds(link.slot)) {
      return fail_page(failure, "gc has freed the delta", page, link.record);
    }
    format::apply_indexed_delta(view.raw(), lines[link.slot], out + link.page * kPageBytes);
  }
  return true;
}

void PageReader::fill_overlay(PageNumber first, std::size_t count, std::byte* out) const noexcept {
  const auto lines = s.overlay.find(first, count);
  // A page's lines are ordered newest first. The order among pages does not matter.
  for (std::size_t i = lines.size(); i-- > 0;) {
    lines[i].apply_to(out + (lines[i].page - first) * kPageBytes);
  }
}

bool PageReader::fill(const Plan& plan, PageNumber first, std::size_t count, std::byte* out,
                      ReadFailure& failure) const noexcept {
  const auto copy = [out](std::size_t i, std::size_t n, const std::byte* content) {
    if (content == nullptr) {
      std::memset(out + i * kPageBytes, 0, n * kPageBytes);
    } else {
      std::memcpy(out + i * kPageBytes, content, n * kPageBytes);
    }
    return true;
  };
  if (!for_bases(plan, first, count, out, failure, copy)) return false;
  if (plan.links_used != 0 && !fill_deltas(plan, first, out, failure)) return false;
  if (!s.overlay.empty()) fill_overlay(first, count, out);
  return true;
}

// REQUIRES: count <= kPagesPerStep.
Collected PageReader::load(PageNumber first, std::size_t count, std::byte* out,
                           ReadFailure& failure) const noexcept {
  assert(count <= kPagesPerStep);
  Plan plan;
  const Collected c = collect(first, count, plan, failure);
  if (c != Collected::all) return c;
  return fill(plan, first, count, out, failure) ? Collected::all : Collected::failed;
}

// REQUIRES: count <= kPagesPerStep.
Collected PageReader::add_records(PageNumber first, std::size_t count,
                                  std::vector<RecordRef>& out) const {
  assert(count <= kPagesPerStep);
  Plan plan;
  ReadFailure ignored;  // reading the pages meets the failure again
  const Collected c = collect(first, count, plan, ignored);
  if (c != Collected::all) return c;
  const auto add = [&](const RecordRef& ref) {
    if (out.empty() || out.back() != ref) out.push_back(ref);
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (plan.pages[i].state == Target::base) add(plan.pages[i].record);
  }
  for (std::size_t l = 0; l < plan.links_used; ++l) add(plan.links[l].record);
  return c;
}

// REQUIRES: count <= kPagesPerStep.
bool PageReader::surely_equal(PageNumber first, std::size_t count,
                              const std::byte* content) const noexcept {
  assert(count <= kPagesPerStep);
  if (!s.overlay.empty() && !s.overlay.find(first, count).empty()) return false;
  Plan plan;
  ReadFailure ignored;  // reading the pages meets the failure again
  if (collect(first, count, plan, ignored) != Collected::all || plan.links_used != 0) return false;
  const auto same = [content](std::size_t i, std::size_t n, const std::byte* held) {
    const std::byte* const at = content + i * kPageBytes;
    return held == nullptr ? base::is_zero({at, n * kPageBytes})
                           : std::memcmp(at, held, n * kPageBytes) == 0;
  };
  return for_bases(plan, first, count, nullptr, ignored, same);
}

// The blocks of the page map that have entries of these pages.
std::vector<RecordRef> map_blocks_of(const PageSourceState& s,
                                     std::span<const format::PageRange> ranges) {
  std::vector<RecordRef> out;
  for (const auto& run : s.runs) {
    const auto& blocks = run->root.blocks;
    for (const format::PageRange& range : ranges) {
      for (std::size_t b = run->block_from(range.first);
           b < blocks.size() && blocks[b].first_page < range.first + range.count; ++b) {
        const RecordRef block = run->block_ref(b);
        if (out.empty() || out.back() != block) out.push_back(block);
      }
    }
  }
  return out;
}

// Ends at the first page whose records are unknown: reading that page reports why.
std::vector<RecordRef> records_of(const PageSourceState& s,
                                  std::span<const format::PageRange> ranges) {
  std::vector<RecordRef> out;
  const PageReader reader(s);
  for (const format::PageRange& range : ranges) {
    std::size_t step = kPagesPerStep;
    for (std::uint64_t done = 0; done < range.count;) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(step, range.count - done));
      const Collected c = reader.add_records(range.first + done, n, out);
      if (c == Collected::failed) return out;
      if (c == Collected::all) done += n;
      assert(c != Collected::too_many || n > 1);
      if (c == Collected::too_many) step = n / 2;
    }
  }
  return out;
}

}  // namespace

bool PageSource::may_be_remote() const noexcept { return impl_->store->packs().reaches_remote(); }

std::shared_ptr<const void> PageSource::fetch_early(
    std::span<const format::PageRange> ranges) const {
  const PackSet& packs = impl_->store->packs();
  auto map = packs.fetch_early(map_blocks_of(*impl_, ranges));
  auto data = packs.fetch_early(records_of(*impl_, ranges));
  return std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
      std::move(map), std::move(data));
}

bool PageSource::surely_equal(PageNumber first, std::size_t count,
                              const std::byte* content) const noexcept {
  if (first + count > impl_->region_bytes / kPageBytes) return false;
  for (std::size_t done = 0; done < count;) {
    const std::size_t n = std::min(kPagesPerStep, count - done);
    if (!PageReader(*impl_).surely_equal(first + done, n, content + done * kPageBytes))
      return false;
    done += n;
  }
  return true;
}

bool PageSource::try_read(PageNumber first, std::size_t count, std::byte* out, ReadFailure& failure,
                          bool alone) const noexcept {
  const std::uint64_t pages = impl_->region_bytes / kPageBytes;
  const std::size_t inside =
      first >= pages ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(count, pages - first));
  std::size_t step = kPagesPerStep;
  for (std::size_t done = 0; done < inside;) {
    const std::size_t n = std::min(step, inside - done);
    switch (PageReader(*impl_, alone).load(first + done, n, out + done * kPageBytes, failure)) {
      case Collected::all:
        done += n;
        break;
      case Collected::too_many:
        assert(n > 1);
        step = n / 2;  // long chains on many pages; those of one page always fit
        break;
      case Collected::failed:
        return false;
    }
  }
  if (inside < count) std::memset(out + inside * kPageBytes, 0, (count - inside) * kPageBytes);
  return true;
}

}  // namespace vellum::store
