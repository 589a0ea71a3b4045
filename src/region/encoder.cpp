#include "region/encoder.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "region/kernel/racing_page.hpp"
#include "store/encode/block_encoder.hpp"

namespace vellum::region {
namespace {

using format::PageNumber;

// The delta limit of a page that was all zero: it has nothing that a delta could leave out.
constexpr std::size_t kMaxFreshDeltaCostBytes = kPageBytes / 8;
// Slices are for several threads; their blocks lie in the pack in the order in which they get done.
// Long slices keep neighbours together for Dedup to find again: a twentieth of a moved array is not
// found in slices of 512 pages. Where memory is short, slices are short.
constexpr std::size_t kSlicePages = 512;
constexpr std::size_t kLongSlicePages = 4096;
constexpr std::size_t kSlicesPerThread = 4;
constexpr std::size_t kMaxSlicePages =
    8192;  // without helpers: bounds what is held before it goes out
// Below this, waking another thread costs more than it saves (a hand-off between cores: about 50
// us).
constexpr std::size_t kParallelPages = 768;
// A commit of one slice may still have work for several threads: blocks to compress, about 100 us
// each.
constexpr std::size_t kParallelBlocks = 3;
constexpr std::size_t kBlocksPerThread = 4;
// Old page contents kept for undo(), over all slices of a commit; beyond it a failed commit reads
// them from the store.
constexpr std::size_t kUndoBudgetBytes = 64u << 20;
std::size_t& undo_budget_bytes() {
  static std::size_t bytes = kUndoBudgetBytes;
  return bytes;
}
constexpr std::size_t kPrefetchAhead = 4;

// Brings in the page's address translation and first line; the hardware's own prefetch, which stops
// at a page's end, does the rest better than 64 prefetches.
inline void prefetch_page(const std::byte* page) noexcept { __builtin_prefetch(page); }

bool is_zero_page(const std::byte* page) noexcept {
  return page[0] == std::byte{0} && std::memcmp(page, page + 1, kPageBytes - 1) == 0;
}

// Whether the page has so many lines in use that a delta against zero is out of the question.
__attribute__((no_sanitize("thread"))) bool mostly_used(const std::byte* page) noexcept {
  std::size_t used = 0;
  for (std::size_t line = 0; line < kPageBytes; line += 64) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(page + line);
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < 8; ++i) any |= words[i];
    used += any != 0;
  }
  return used * 64 > 2 * kMaxFreshDeltaCostBytes;
}

}  // namespace

// The records of one slice: what is encoded so far, and the pages that are to be stored whole,
// whose base copies hold their recorded content.
struct Encoder::Captured {
  store::PageWrites writes;
  std::vector<PageNumber> whole;           // ascending
  std::vector<PageNumber> spilled_whole;   // ascending; of `whole`, those without a base copy:
  std::vector<std::byte> spilled_content;  // one after the other

  const std::byte* content(PageNumber page, const Backing& backing) const {
    const auto at = std::lower_bound(spilled_whole.begin(), spilled_whole.end(), page);
    if (at == spilled_whole.end() || *at != page) return backing.base_copy(page);
    return spilled_content.data() +
           static_cast<std::size_t>(at - spilled_whole.begin()) * kPageBytes;
  }
};

// The pages that one thread works on at once, and the data that undo() needs for them.
struct Encoder::Slice {
  Captured captured;               // between capture and pack
  format::DeltaBatch old_bytes;    // what the base copies held where they were changed
  std::vector<PageNumber> fresh;   // pages that had no base copy
  std::vector<PageNumber> reload;  // base copies overwritten without keeping the old content
  std::vector<PageNumber> taken;   // from the spill file
  std::uint64_t changed = 0;
};

struct Encoder::Worker {
  explicit Worker(const format::Encoding& encoding) : blocks(encoding) {}

  base::Compressor compressor;
  store::BlockEncoder blocks;
  std::vector<std::byte> gathered;  // pages of a block that do not lie side by side
  std::vector<std::byte> page = std::vector<std::byte>(kPageBytes);
  std::vector<std::byte> old_bytes;
  std::vector<PageNumber> fresh_whole;  // to be stored whole, and without a base copy yet
  std::vector<PageNumber> merged;
  alignas(8) SpillFile::Buffer record;
};

namespace {

// Holds the chunks of pages (ascending) in place.
class Held {
 public:
  Held(RegionMemory& memory, std::span<const PageNumber> pages) : memory_(memory), pages_(pages) {
    for_each_chunk([&](PageNumber first) { memory_.hold(first, 1); });
  }
  ~Held() {
    for_each_chunk([&](PageNumber first) { memory_.release(first, 1); });
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  template <typename Do>
  void for_each_chunk(Do&& what) const {
    std::size_t last = SIZE_MAX;
    for (const PageNumber page : pages_) {
      if (memory_.chunk_of(page) == last) continue;
      last = memory_.chunk_of(page);
      what(page);
    }
  }
  RegionMemory& memory_;
  std::span<const PageNumber> pages_;
};

}  // namespace

Encoder::Encoder(RegionMemory& memory, const format::Encoding& encoding, std::size_t threads)
    : memory_(memory),
      pages_(memory.data()),
      backing_(memory.backing()),
      encoding_(encoding),
      max_delta_cost_bytes_(encoding.deltas ? store::kMaxDeltaCostBytes : 0),
      max_fresh_delta_cost_bytes_(encoding.deltas ? kMaxFreshDeltaCostBytes : 0),
      pool_(threads) {
  workers_.resize(threads + 1);
}

Encoder::~Encoder() = default;

// Makes a worker when it is first needed: a region with small commits needs one. REQUIRES: as for
// the pool, nobody else works under this number.
Encoder::Worker& Encoder::worker(std::size_t number) {
  auto& own = workers_[number];
  if (own == nullptr) own = std::make_unique<Worker>(encoding_);
  return *own;
}

// Calls body(part of the pages, slice, worker) for all slices. Returns how many pages had changed.
template <typename Body>
std::uint64_t Encoder::for_slices(std::span<const PageNumber> dirty, const Body& body) {
  const bool some_spilled = memory_.has_spilled();
  const std::size_t wanted = dirty.size() / (kSlicesPerThread * workers_.size());
  const std::size_t slice_pages = std::max<std::size_t>(
      some_spilled ? kSlicePages : std::clamp(wanted, kSlicePages, kLongSlicePages),
      encoding_.block_bytes / kPageBytes);
  const bool parallel = dirty.size() >= kParallelPages && pool_.workers() > 0;
  const std::size_t step = parallel || some_spilled || dirty.size() > kMaxSlicePages
                               ? slice_pages
                               : std::max<std::size_t>(dirty.size(), 1);
  const std::size_t count = (dirty.size() + step - 1) / step;
  slices_.clear();
  for (std::size_t i = 0; i < count; ++i) slices_.push_back(std::make_unique<Slice>());
  const auto run = [&](std::size_t index, std::size_t worker) {
    const std::size_t first = index * step;
    body(dirty.subspan(first, std::min(step, dirty.size() - first)), *slices_[index],
         this->worker(worker));
  };
  if (count == 1) {
    run(0, 0);
  } else {
    pool_.parallel_for(count, run);
  }
  std::uint64_t changed = 0;
  for (const auto& slice : slices_) changed += slice->changed;
  return changed;
}

std::uint64_t Encoder::encode(std::span<const PageNumber> dirty,
                              store::BranchWriter::Commit& commit) {
  return for_slices(dirty, [&](auto part, Slice& slice, Worker& worker) {
    capture_slice(part, worker, slice);
    pack_slice(slice, worker, commit);
  });
}

std::uint64_t Encoder::capture(std::span<const PageNumber> dirty) {
  return for_slices(
      dirty, [&](auto part, Slice& slice, Worker& worker) { capture_slice(part, worker, slice); });
}

void Encoder::pack(store::BranchWriter::Commit& commit) {
  if (slices_.size() == 1) return pack_slice(*slices_[0], worker(0), commit);
  pool_.parallel_for(slices_.size(), [&](std::size_t index, std::size_t number) {
    pack_slice(*slices_[index], worker(number), commit);
  });
}

void Encoder::capture_slice(std::span<const PageNumber> dirty, Worker& worker, Slice& slice) {
  std::optional<Held> held(std::in_place, memory_, dirty);
  worker.fresh_whole.clear();
  for (std::size_t i = 0; i < dirty.size(); ++i) {
    if (i + kPrefetchAhead < dirty.size()) {
      const PageNumber ahead = dirty[i + kPrefetchAhead];
      if (memory_.is_present(ahead)) {
        prefetch_page(pages_ + ahead * kPageBytes);
        if (backing_.has_base_copy(ahead)) prefetch_page(backing_.base_copy(ahead));
      }
    }
    if (memory_.is_present(dirty[i])) {
      capture_page(dirty[i], worker, slice);
    } else {
      capture_spilled(dirty[i], worker, slice);
    }
  }
  write_fresh_base_copies(worker, slice);
  held.reset();
  memory_.stay_within_limit();
}

// Captured content stays in its base copies: a chunk whose base copies are newer than the source is
// not evicted. But an eviction takes the base copies away for a moment to look at the pages, hence
// the hold.
void Encoder::pack_slice(Slice& slice, Worker& worker, store::BranchWriter::Commit& commit) {
  Captured& captured = slice.captured;
  std::optional<Held> held(std::in_place, memory_, captured.whole);
  const store::Dedup* const dedup = commit.dedup();
  if (dedup != nullptr) {
    // The comparison is with what gets recorded: the base copies.
    dedup->find(
        captured.whole,
        [&](std::size_t i) { return captured.content(captured.whole[i], backing_); },
        captured.writes.found);
  }
  pack_blocks(captured, worker, dedup != nullptr);
  held.reset();
  commit.add(std::move(captured.writes));
  captured = {};
}

void Encoder::capture_page(PageNumber page, Worker& worker, Slice& slice) {
  if (backing_.has_base_copy(page)) {
    capture_with_base_copy(page, worker, slice);
  } else {
    capture_fresh(page, worker, slice);
  }
}

// The entry holds the difference from the last commit: the delta. Nothing comes into memory.
void Encoder::capture_spilled(PageNumber page, Worker& worker, Slice& slice) {
  Captured& out = slice.captured;
  SpillFile::Entry entry;
  if (!memory_.take_spilled(page, worker.record, entry)) {
    if (memory_.is_present(page)) capture_page(page, worker, slice);
    return;
  }
  slice.taken.push_back(page);
  ++slice.changed;
  if (!entry.whole && entry.bytes.size() + 3 * entry.spans.size() <= max_delta_cost_bytes_) {
    out.writes.deltas.add(page, entry.spans, entry.bytes);
    return;
  }
  if (!entry.whole) memory_.read_committed(page, worker.page.data());
  entry.apply_to(worker.page.data());
  if (is_zero_page(worker.page.data())) {
    out.writes.zeros.push_back(page);
    return;
  }
  out.whole.push_back(page);
  out.spilled_whole.push_back(page);
  out.spilled_content.insert(out.spilled_content.end(), worker.page.begin(), worker.page.end());
}

void Encoder::capture_with_base_copy(PageNumber page, Worker& worker, Slice& slice) {
  Captured& out = slice.captured;
  std::byte* const base_copy = backing_.base_copy(page);
  const std::byte* const now = pages_ + page * kPageBytes;
  if (!out.writes.deltas.add_difference(page, base_copy, now)) return;
  ++slice.changed;
  memory_.note_newer(page);
  if (out.writes.deltas.last_cost_bytes() <= max_delta_cost_bytes_) {
    const auto& delta = out.writes.deltas.pages().back();
    const auto spans = out.writes.deltas.spans_of(delta);
    worker.old_bytes.clear();
    for (const auto& span : spans) {
      worker.old_bytes.insert(worker.old_bytes.end(), base_copy + span.offset_bytes,
                              base_copy + span.offset_bytes + span.length_bytes);
    }
    slice.old_bytes.add(page, spans, worker.old_bytes);
    format::apply_delta(spans, out.writes.deltas.bytes_of(delta), base_copy);
    return;
  }
  out.writes.deltas.pop_back();
  keep_old_page(page, slice);
  copy_racing_page(base_copy, now);  // from here on, the base copy is what gets recorded
  if (is_zero_page(base_copy)) {
    out.writes.zeros.push_back(page);
  } else {
    out.whole.push_back(page);
  }
}

void Encoder::set_undo_budget(std::optional<std::size_t> bytes) {
  undo_budget_bytes() = bytes.value_or(kUndoBudgetBytes);
}

void Encoder::keep_old_page(PageNumber page, Slice& slice) {
  if (kept_bytes_.fetch_add(kPageBytes, std::memory_order_relaxed) >= undo_budget_bytes()) {
    slice.reload.push_back(page);
    return;
  }
  static constexpr format::DeltaSpan kWholePage{0, kPageBytes};
  slice.old_bytes.add(page, std::span(&kWholePage, 1), {backing_.base_copy(page), kPageBytes});
}

void Encoder::capture_fresh(PageNumber page, Worker& worker, Slice& slice) {
  Captured& out = slice.captured;
  const std::byte* const now = pages_ + page * kPageBytes;
  if (mostly_used(now)) {
    ++slice.changed;
    worker.fresh_whole.push_back(page);
    return;
  }
  if (!out.writes.deltas.add_difference_from_zero(page, now)) return;
  ++slice.changed;
  if (out.writes.deltas.last_cost_bytes() > max_fresh_delta_cost_bytes_) {
    out.writes.deltas.pop_back();
    worker.fresh_whole.push_back(page);
    return;
  }
  const auto& delta = out.writes.deltas.pages().back();
  std::fill(worker.page.begin(), worker.page.end(), std::byte{0});
  format::apply_delta(out.writes.deltas.spans_of(delta), out.writes.deltas.bytes_of(delta),
                      worker.page.data());
  write_base_copies(page, worker.page, slice);
}

// Copies neighbours at once; the copies in the backing then get recorded.
void Encoder::write_fresh_base_copies(Worker& worker, Slice& slice) {
  const auto& fresh = worker.fresh_whole;
  for (std::size_t i = 0; i < fresh.size();) {
    std::size_t n = 1;
    while (i + n < fresh.size() && fresh[i + n] == fresh[i] + n) ++n;
    write_base_copies(fresh[i], {pages_ + fresh[i] * kPageBytes, n * kPageBytes}, slice);
    i += n;
  }
  auto& whole = slice.captured.whole;
  worker.merged.resize(whole.size() + fresh.size());
  std::merge(whole.begin(), whole.end(), fresh.begin(), fresh.end(), worker.merged.begin());
  whole.swap(worker.merged);
}

void Encoder::write_base_copies(PageNumber first, std::span<const std::byte> bytes, Slice& slice) {
  const std::size_t count = bytes.size() / kPageBytes;
  for (std::size_t i = 0; i < count; ++i) {
    slice.fresh.push_back(first + i);
    memory_.note_newer(first + i);
  }
  const int error = backing_.write(first, bytes);
  if (error != 0) {
    fail(Errc::out_of_memory, "no memory for the committed copy of a page: {}",
         std::strerror(error));
  }
  backing_.note_base_copies(first, count);
}

// Takes the next block off the pages. Blocks follow the aligned blocks of the region where enough
// pages of one changed; a few scattered pages share one.
std::span<const PageNumber> Encoder::next_block(std::span<const PageNumber>& whole,
                                                std::size_t block_pages) {
  std::size_t n = 1;
  while (n < whole.size() && n < block_pages) {
    const bool crosses = whole[n] / block_pages != whole[n - 1] / block_pages;
    if (crosses && n >= block_pages / 2) break;
    ++n;
  }
  const auto block = whole.first(n);
  whole = whole.subspan(n);
  return block;
}

void Encoder::pack_blocks(Captured& captured, Worker& worker, bool note) {
  std::span<const PageNumber> left = captured.whole;
  auto& blocks = captured.writes.blocks;
  const std::size_t at_once = slices_.size() == 1 ? kBlocksPerThread * workers_.size() : 1;
  std::vector<std::span<const PageNumber>> parts;
  while (!left.empty()) {
    const std::size_t block_pages = worker.blocks.pages();
    parts.clear();
    while (!left.empty() && parts.size() < at_once) parts.push_back(next_block(left, block_pages));
    if (parts.size() < kParallelBlocks) {
      for (const auto& part : parts) blocks.push_back(compress(part, captured, worker, note));
      continue;
    }
    const std::size_t first = blocks.size();
    blocks.resize(first + parts.size());
    pool_.parallel_for(parts.size(), [&](std::size_t i, std::size_t number) {
      blocks[first + i] = compress(parts[i], captured, this->worker(number), note);
    });
  }
}

store::PageBlock Encoder::compress(std::span<const PageNumber> pages, const Captured& captured,
                                   Worker& worker, bool note) {
  const std::size_t raw_bytes = pages.size() * kPageBytes;
  const std::byte* raw = backing_.base_copy(pages.front());
  if (pages.back() - pages.front() + 1 != pages.size() || !captured.spilled_whole.empty()) {
    worker.gathered.resize(raw_bytes);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      std::memcpy(worker.gathered.data() + i * kPageBytes, captured.content(pages[i], backing_),
                  kPageBytes);
    }
    raw = worker.gathered.data();
  }
  auto payload = worker.blocks.encode(worker.compressor, {raw, raw_bytes});
  store::PageBlock block{
      {pages.begin(), pages.end()}, payload.codec, {}, {}, std::move(payload.hash)};
  if (note) block.noted = store::Dedup::worth_noting({raw, raw_bytes}, payload.stored.size());
  block.stored = std::move(payload.stored);
  return block;
}

// A page may have lost its private copy because it equalled its base copy. The program's content
// must stay when the base copy goes back.
void Encoder::undo(const std::function<void(std::span<const PageNumber>)>& reload) {
  const auto slices = std::move(slices_);
  accept();
  for (const auto& slice : slices) {
    for (const auto& old : slice->old_bytes.pages()) {
      const Held held(memory_, {&old.page, 1});
      memory_.make_private(old.page);
      format::apply_delta(slice->old_bytes.spans_of(old), slice->old_bytes.bytes_of(old),
                          backing_.base_copy(old.page));
    }
    for (const PageNumber page : slice->fresh) {
      const Held held(memory_, {&page, 1});
      memory_.make_private(page);
      backing_.drop_base_copies(page, 1);
    }
  }
  for (const auto& slice : slices) {
    std::vector<PageNumber> back = slice->reload;
    memory_.give_back(slice->taken, back);
    if (!back.empty()) reload(back);
  }
}

std::vector<PageNumber> Encoder::accept() {
  std::vector<PageNumber> taken;
  for (const auto& slice : slices_) {
    taken.insert(taken.end(), slice->taken.begin(), slice->taken.end());
  }
  slices_.clear();
  kept_bytes_.store(0, std::memory_order_relaxed);
  return taken;
}

}  // namespace vellum::region
