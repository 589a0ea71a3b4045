// region/encode/encoder.cpp: the slices of a commit, and the threads that work on them.
#include "region/encode/encoder.hpp"

#include <algorithm>
#include <cassert>

#include "base/threads/interruption.hpp"
#include "region/encode/encoder_slice.hpp"
#include "store/packs/encode/fresh_page.hpp"

namespace vellum::region {
namespace {

using format::PageNumber;

// Slices are distributed to several threads. The pack has their blocks in the order of completion.
// Long slices keep neighbouring pages together, so that Dedup finds them again: in slices of 512
// pages, it misses a twentieth of a moved array. Slices are short when pages are in the spill file.
constexpr std::size_t kSlicePages = 512;
constexpr std::size_t kLongSlicePages = 4096;
constexpr std::size_t kSlicesPerThread = 4;
// The longest slice without helper threads: bounds the memory that a slice holds before it is added.
constexpr std::size_t kMaxSlicePages = 8192;
// Commits of fewer pages use one thread: waking another costs about 50 us.
constexpr std::size_t kParallelPages = 768;

}  // namespace

Encoder::Encoder(RegionMemory& memory, const format::Encoding& encoding, std::size_t threads)
    : memory_(memory),
      pages_(memory.data()),
      backing_(memory.backing()),
      encoding_(encoding),
      max_delta_cost_bytes_(encoding.deltas ? store::kMaxDeltaCostBytes : 0),
      max_fresh_delta_cost_bytes_(encoding.deltas ? store::kMaxFreshDeltaCostBytes : 0),
      pool_(threads) {
  workers_.resize(threads + 1);
}

Encoder::~Encoder() = default;

// Creates a worker at its first use: a region with small commits needs only one. REQUIRES: no other
// thread uses this number, as in the pool.
Encoder::Worker& Encoder::worker(std::size_t number) {
  assert(number < workers_.size());
  auto& own = workers_[number];
  if (own == nullptr) own = std::make_unique<Worker>(encoding_);
  return *own;
}

// Calls body(part of the pages, slice, worker) for all slices. Returns how many pages had changed.
template <typename Body>
std::uint64_t Encoder::for_slices(std::span<const PageNumber> dirty, const Body& body) {
  assert(std::ranges::is_sorted(dirty));
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
  const auto* const request = base::Interruptible::request();
  const auto run = [&](std::size_t index, std::size_t worker) {
    base::throw_if(request);
    const std::size_t first = index * step;
    body(dirty.subspan(first, std::min(step, dirty.size() - first)), *slices_[index],
         this->worker(worker));
  };
  if (count == 1) {
    run(0, 0);
  } else {
    pool_.parallel_for(count, run);
  }
  marked_ = {};
  std::uint64_t changed = 0;
  for (const auto& slice : slices_) changed += slice->changed;
  assert(changed <= dirty.size());
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

}  // namespace vellum::region
