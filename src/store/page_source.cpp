#include "store/page_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "store/overlay.hpp"
#include "store/run_reader.hpp"
#include "store/store_core.hpp"
#include "store/util.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::MapEntry;
using format::PageKind;
using format::PageNumber;
using format::RecordRef;
using format::RecordType;

namespace {

// What one step of a page-in handles: small enough for the stack of a thread in the fault handler.
constexpr std::size_t kPagesPerStep = 16;
constexpr std::size_t kMaxLinks = 128;
constexpr std::size_t kMaxChain = 64;
static_assert(kMaxChain <= kMaxLinks);
constexpr std::uint16_t kNone = UINT16_MAX;

// A delta of some page's chain.
struct Link {
  RecordRef record;
  std::uint32_t slot = 0;
  std::uint16_t newer = kNone;  // the next link to apply
};

// Where one page comes from.
struct Target {
  enum State : std::uint8_t { open, zero, base, overlaid };
  RecordRef record;
  std::uint32_t slot = 0;
  std::uint16_t oldest = kNone;  // link
  State state = open;
  std::uint8_t depth = 0;  // of the oldest delta met so far
  std::uint8_t deltas = 0;
};

struct Plan {
  Target pages[kPagesPerStep];
  Link links[kMaxLinks];
  std::size_t links_used = 0;
};
static_assert(sizeof(Plan) <= 6 * 1024);

enum class Collected { all, too_many, failed };

bool fail_page(ReadFailure& failure, const char* reason, PageNumber page,
               const RecordRef& record = {}) noexcept {
  failure = {reason, record, page, 0};
  return false;
}

}  // namespace

struct PageSource::Impl {
  StoreCore* store = nullptr;
  RecordCache* records = nullptr;
  std::string label;
  std::string packs_directory;
  std::uint64_t region_bytes = 0;
  std::vector<std::shared_ptr<const LoadedRun>> runs;  // newest first
  Overlay overlay;

  Collected load(PageNumber first, std::size_t count, std::byte* out,
                 ReadFailure& failure) const noexcept;
  bool fill(const Plan& plan, PageNumber first, std::size_t count, std::byte* out,
            ReadFailure& failure) const noexcept;
  bool fill_bases(const Plan& plan, PageNumber first, std::size_t count, std::byte* out,
                  ReadFailure& failure) const noexcept;
  bool fill_deltas(const Plan& plan, PageNumber first, std::size_t count, std::byte* out,
                   ReadFailure& failure) const noexcept;
  void fill_overlay(PageNumber first, std::size_t count, std::byte* out) const noexcept;
  Collected collect(PageNumber first, std::size_t count, Plan& plan,
                    ReadFailure& failure) const noexcept;
  Collected collect_run(const LoadedRun& run, PageNumber first, std::size_t count, Plan& plan,
                        std::size_t& open_pages, ReadFailure& failure) const noexcept;
  Collected note(const MapEntry& e, PageNumber page, Target& target, Plan& plan,
                 std::size_t& open_pages, ReadFailure& failure) const noexcept;
  std::uint64_t next_entry(const LoadedRun& run, PageNumber first, MapEntry& out) const noexcept;
};

namespace {

// The first entry that reaches `page` or lies behind it.
const MapEntry* first_reaching(std::span<const MapEntry> entries, PageNumber page) noexcept {
  const auto at = std::partition_point(entries.begin(), entries.end(), [&](const MapEntry& e) {
    return e.page + e.count <= page;
  });
  return entries.data() + (at - entries.begin());
}

}  // namespace

PageSource::PageSource() : impl_(std::make_unique<Impl>()) {}
PageSource::~PageSource() = default;

std::shared_ptr<PageSource> PageSource::open(StoreCore& store, const format::Version& version,
                                             std::vector<format::CommitBody> commits,
                                             std::string label) {
  std::shared_ptr<PageSource> source(new PageSource());
  Impl& s = *source->impl_;
  s.store = &store;
  s.records = &store.records();
  s.label = std::move(label);
  s.packs_directory = store.packs_directory();
  with_context(s.label, [&] {
    s.region_bytes = commits.empty() ? version.region_bytes : commits.back().region_bytes;
    s.runs.reserve(version.runs.size());
    for (const auto& run : version.runs) s.runs.push_back(store.load_run(run));
    s.overlay = Overlay(std::move(commits));
  });
  return source;
}

const std::string& PageSource::label() const noexcept { return impl_->label; }
std::uint64_t PageSource::region_bytes() const noexcept { return impl_->region_bytes; }

// Adds what an entry says about a page that is still open.
Collected PageSource::Impl::note(const MapEntry& e, PageNumber page, Target& target, Plan& plan,
                                 std::size_t& open_pages, ReadFailure& failure) const noexcept {
  // Depths count down to the base: a version that lost a run in between shows here.
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
  if (target.deltas == kMaxChain) {
    fail_page(failure, "the page's delta chain is too long", page, e.record);
    return Collected::failed;
  }
  if (plan.links_used == kMaxLinks) return Collected::too_many;
  const auto link = static_cast<std::uint16_t>(plan.links_used++);
  plan.links[link] = {e.record, e.slot, target.oldest};
  target.oldest = link;
  target.depth = e.depth;
  ++target.deltas;
  return Collected::all;
}

Collected PageSource::Impl::collect_run(const LoadedRun& run, PageNumber first, std::size_t count,
                                        Plan& plan, std::size_t& open_pages,
                                        ReadFailure& failure) const noexcept {
  const PageNumber end = first + count;
  const auto& blocks = run.root.blocks;
  for (std::size_t b = run.block_from(first); b < blocks.size() && blocks[b].first_page < end; ++b) {
    RecordCache::View view;
    if (!records->get(run.block_ref(b), RecordType::map_block, view, failure)) {
      failure.page = first;
      return Collected::failed;
    }
    const auto entries = view.entries();
    const MapEntry* const stop = entries.data() + entries.size();
    for (const MapEntry* e = first_reaching(entries, first); e != stop && e->page < end; ++e) {
      const PageNumber to = std::min(end, e->page + e->count);
      for (PageNumber page = std::max(first, e->page); page < to; ++page) {
        Target& target = plan.pages[page - first];
        if (target.state != Target::open) continue;
        const Collected c = note(*e, page, target, plan, open_pages, failure);
        if (c != Collected::all) return c;
      }
    }
  }
  return Collected::all;
}

Collected PageSource::Impl::collect(PageNumber first, std::size_t count, Plan& plan,
                                    ReadFailure& failure) const noexcept {
  std::size_t open_pages = count;
  if (!overlay.empty()) {
    for (const auto& line : overlay.find(first, count)) {
      Target& target = plan.pages[line.page - first];
      if (line.full() && target.state == Target::open) {
        target.state = Target::overlaid;
        --open_pages;
      }
    }
  }
  for (const auto& run : runs) {
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

bool PageSource::Impl::fill_bases(const Plan& plan, PageNumber first, std::size_t count,
                                  std::byte* out, ReadFailure& failure) const noexcept {
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
      std::memset(out + i * kPageBytes, 0, n * kPageBytes);
    } else if (t.state == Target::base) {
      RecordCache::View view;
      if (!records->get(t.record, RecordType::pages, view, failure)) {
        failure.page = first + i;
        return false;
      }
      if (std::uint64_t{t.slot} + n > view.header().items) {
        return fail_page(failure, "the record has no such page", first + i, t.record);
      }
      std::memcpy(out + i * kPageBytes, view.raw().data() + t.slot * kPageBytes, n * kPageBytes);
    }
    i += n;
  }
  return true;
}

bool PageSource::Impl::fill_deltas(const Plan& plan, PageNumber first, std::size_t count,
                                   std::byte* out, ReadFailure& failure) const noexcept {
  RecordCache::View view;
  const RecordRef* held = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::uint16_t l = plan.pages[i].oldest; l != kNone; l = plan.links[l].newer) {
      const Link& link = plan.links[l];
      if (held == nullptr || *held != link.record) {
        if (!records->get(link.record, RecordType::deltas, view, failure)) {
          failure.page = first + i;
          return false;
        }
        held = &link.record;
      }
      const auto lines = view.deltas();
      if (link.slot >= lines.size() || lines[link.slot].page != first + i) {
        return fail_page(failure, "the record has no such delta", first + i, link.record);
      }
      format::apply_indexed_delta(view.raw(), lines[link.slot], out + i * kPageBytes);
    }
  }
  return true;
}

void PageSource::Impl::fill_overlay(PageNumber first, std::size_t count,
                                    std::byte* out) const noexcept {
  const auto lines = overlay.find(first, count);
  // A page's lines stand newest first; pages do not care in which order they come.
  for (std::size_t i = lines.size(); i-- > 0;) {
    lines[i].apply_to(out + (lines[i].page - first) * kPageBytes);
  }
}

bool PageSource::Impl::fill(const Plan& plan, PageNumber first, std::size_t count, std::byte* out,
                            ReadFailure& failure) const noexcept {
  if (!fill_bases(plan, first, count, out, failure)) return false;
  if (plan.links_used != 0 && !fill_deltas(plan, first, count, out, failure)) return false;
  if (!overlay.empty()) fill_overlay(first, count, out);
  return true;
}

// REQUIRES: count <= kPagesPerStep.
Collected PageSource::Impl::load(PageNumber first, std::size_t count, std::byte* out,
                                 ReadFailure& failure) const noexcept {
  Plan plan;
  const Collected c = collect(first, count, plan, failure);
  if (c != Collected::all) return c;
  return fill(plan, first, count, out, failure) ? Collected::all : Collected::failed;
}

bool PageSource::try_read(PageNumber first, std::size_t count, std::byte* out,
                          ReadFailure& failure) const noexcept {
  const std::uint64_t pages = impl_->region_bytes / kPageBytes;
  const std::size_t inside =
      first >= pages ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(count, pages - first));
  std::size_t step = kPagesPerStep;
  for (std::size_t done = 0; done < inside;) {
    const std::size_t n = std::min(step, inside - done);
    switch (impl_->load(first + done, n, out + done * kPageBytes, failure)) {
      case Collected::all:
        done += n;
        break;
      case Collected::too_many:
        step = n / 2;  // long chains on many pages; those of one page always fit
        break;
      case Collected::failed:
        return false;
    }
  }
  if (inside < count) std::memset(out + inside * kPageBytes, 0, (count - inside) * kPageBytes);
  return true;
}

// How many pages from `first` on this run does not mention. 0: `out` is what it says about `first`,
// or its block could not be read (count 0).
std::uint64_t PageSource::Impl::next_entry(const LoadedRun& run, PageNumber first,
                                           MapEntry& out) const noexcept {
  const std::size_t b = run.block_from(first);
  if (b == run.root.blocks.size()) return UINT64_MAX;
  if (run.root.blocks[b].first_page > first) return run.root.blocks[b].first_page - first;
  out.count = 0;
  RecordCache::View view;
  ReadFailure ignored;  // reading the page will meet it again
  if (!records->get(run.block_ref(b), RecordType::map_block, view, ignored)) return 0;
  const auto entries = view.entries();
  const MapEntry* e = first_reaching(entries, first);
  if (e == entries.data() + entries.size()) return 0;  // not the block that the root describes
  if (e->page > first) return e->page - first;
  out = *e;
  return 0;
}

std::size_t PageSource::zero_run(PageNumber first, std::size_t limit) const noexcept {
  const Impl& s = *impl_;
  const std::uint64_t pages = s.region_bytes / kPageBytes;
  if (first >= pages) return limit;
  std::uint64_t bound = limit;
  if (const Overlay::Line* line = s.overlay.next(first)) {
    if (line->page == first) {
      if (line->type != format::PartType::zeros) return 0;
      std::uint64_t n = 1;  // zero pages of a commit come one by one
      const Overlay::Line* const end = s.overlay.lines().data() + s.overlay.lines().size();
      while (n < bound && line + n != end && line[n].page == first + n &&
             line[n].type == format::PartType::zeros) {
        ++n;
      }
      return static_cast<std::size_t>(std::min(n, bound));
    }
    bound = std::min(bound, line->page - first);
  }
  for (const auto& run : s.runs) {
    MapEntry e;
    const std::uint64_t gap = s.next_entry(*run, first, e);
    if (gap == 0) {
      if (e.count == 0 || e.kind != PageKind::zero) return 0;
      bound = std::min<std::uint64_t>(bound, e.page + e.count - first);
      break;  // hides what older runs say
    }
    bound = std::min(bound, gap);
  }
  if (bound >= pages - first) return limit;  // as is everything past the end
  return static_cast<std::size_t>(bound);
}

void PageSource::read(PageNumber first, std::size_t count, std::byte* out) const {
  ReadFailure failure;
  if (!try_read(first, count, out, failure)) raise(failure);
}

std::vector<MapEntry> PageSource::chain(PageNumber page) const {
  std::vector<MapEntry> out;
  for (const auto& run : impl_->runs) {
    const std::size_t b = run->block_from(page);
    if (b == run->root.blocks.size() || run->root.blocks[b].first_page > page) continue;
    RecordCache::View view;
    ReadFailure failure;
    if (!impl_->records->get(run->block_ref(b), RecordType::map_block, view, failure)) {
      failure.page = page;
      raise(failure);
    }
    const auto entries = view.entries();
    for (const MapEntry* e = first_reaching(entries, page);
         e != entries.data() + entries.size() && e->page <= page; ++e) {
      MapEntry one = *e;
      if (one.kind == PageKind::base) one.slot += static_cast<std::uint32_t>(page - e->page);
      one.page = page;
      one.count = 1;
      if (!out.empty() && out.back().depth != one.depth + 1) {
        view.release();
        raise({"the page's delta chain is broken", one.record, page, 0});
      }
      out.push_back(one);
      if (one.kind != PageKind::delta) return out;
    }
  }
  if (!out.empty() && out.back().depth != 1) {
    raise({"the page's delta chain has no end", out.back().record, page, 0});
  }
  return out;
}

std::vector<std::uint8_t> PageSource::depths(std::span<const PageNumber> pages) const {
  std::vector<std::uint8_t> out(pages.size(), 0);
  std::vector<std::uint8_t> known(pages.size(), 0);
  for (const auto& run : impl_->runs) {
    RecordCache::View view;
    std::size_t held = SIZE_MAX;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (known[i] != 0) continue;
      const std::size_t b = run->block_from(pages[i]);
      if (b == run->root.blocks.size()) break;
      if (run->root.blocks[b].first_page > pages[i]) continue;
      ReadFailure failure;
      if (held != b &&
          !impl_->records->get(run->block_ref(b), RecordType::map_block, view, failure)) {
        failure.page = pages[i];
        raise(failure);
      }
      held = b;
      const auto entries = view.entries();
      const MapEntry* e = first_reaching(entries, pages[i]);
      if (e == entries.data() + entries.size() || e->page > pages[i]) continue;
      out[i] = e->depth;
      known[i] = 1;
    }
  }
  return out;
}

std::vector<PageSource::OverlaidPage> PageSource::overlaid_pages() const {
  std::vector<OverlaidPage> out;
  for (const Overlay::Line& line : impl_->overlay.lines()) {
    if (!out.empty() && out.back().page == line.page) continue;  // the newest comes first
    out.push_back({line.page, line.type == format::PartType::zeros});
  }
  return out;
}

std::vector<MapEntry> PageSource::run_entries(std::size_t run) const {
  return with_context(impl_->label, [&] { return read_entries(*impl_->store, *impl_->runs[run]); });
}

void PageSource::for_each_entry(
    const std::function<void(std::size_t run, const MapEntry&)>& visit) const {
  for (std::size_t r = 0; r < impl_->runs.size(); ++r) {
    const LoadedRun& run = *impl_->runs[r];
    for (std::size_t b = 0; b < run.root.blocks.size(); ++b) {
      const auto entries =
          with_context(impl_->label, [&] { return read_block(*impl_->store, run, b); });
      for (const MapEntry& e : entries) visit(r, e);
    }
  }
}

namespace {

// Text into a fixed buffer, cut where it ends.
class FixedText {
 public:
  explicit FixedText(std::span<char> out) noexcept : out_(out) {
    if (!out_.empty()) out_[0] = '\0';
  }
  FixedText& operator<<(std::string_view s) noexcept {
    for (const char c : s) put(c);
    return *this;
  }
  FixedText& operator<<(std::uint64_t v) noexcept { return number(v, 10, 1); }
  FixedText& hex16(std::uint64_t v) noexcept { return number(v, 16, 16); }

 private:
  FixedText& number(std::uint64_t v, unsigned radix, int width) noexcept {
    char digits[20];
    int n = 0;
    do {
      digits[n++] = "0123456789abcdef"[v % radix];
      v /= radix;
    } while (v != 0 || n < width);
    while (n > 0) put(digits[--n]);
    return *this;
  }
  void put(char c) noexcept {
    if (used_ + 1 >= out_.size()) return;
    out_[used_++] = c;
    out_[used_] = '\0';
  }
  std::span<char> out_;
  std::size_t used_ = 0;
};

}  // namespace

void PageSource::describe(const ReadFailure& failure, std::span<char> out) const noexcept {
  FixedText text(out);
  text << impl_->label << ": page " << failure.page << ": ";
  if (failure.record.pack != 0) {
    text << impl_->packs_directory << "/";
    text.hex16(failure.record.pack) << ".pack at byte " << failure.record.offset_bytes << ": ";
  }
  text << (failure.reason == nullptr ? "unknown failure" : failure.reason);
  if (failure.os_errno == ENODATA) {
    text << ": the file is truncated";
  } else if (failure.os_errno != 0) {
#ifdef __GLIBC__
    // Static text: strerror(3) may allocate.
    if (const char* name = ::strerrordesc_np(failure.os_errno)) {
      text << ": " << name;
      return;
    }
#endif
    text << ": error " << static_cast<std::uint64_t>(failure.os_errno);
  }
}

void PageSource::raise(const ReadFailure& failure) const {
  // Long enough for the longest label and path.
  std::vector<char> text(impl_->label.size() + impl_->packs_directory.size() + 512);
  describe(failure, text);
  const bool os = failure.os_errno != 0 && failure.os_errno != ENODATA;
  throw Error(os ? Errc::io : Errc::damaged, text.data());
}

}  // namespace vellum::store
