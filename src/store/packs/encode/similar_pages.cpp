#include "store/packs/encode/similar_pages.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <tuple>

#include "base/bytes/codec.hpp"
#include "base/bytes/mix64.hpp"

namespace vellum::store {

using format::BasePage;
using format::kPageBytes;

namespace {

constexpr std::size_t kStretchBytes = 32;
constexpr unsigned kPlaceBits = 7;  // one offset of 128 begins a stretch
// The limit of all writers of the process together: thousands of branches may be open.
constexpr std::size_t kMaxPagesOfAll = 16 * SimilarPages::kMaxPages;
std::atomic<std::size_t> pages_of_all = 0;

bool take_page() noexcept {
  if (pages_of_all.fetch_add(1, std::memory_order_relaxed) < kMaxPagesOfAll) return true;
  pages_of_all.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

// Two pages that share this many features are similar.
constexpr std::size_t kMinShared = 2;

std::uint32_t hash_of(const std::byte* stretch) noexcept {
  std::uint64_t words[kStretchBytes / 8];
  std::memcpy(words, stretch, sizeof words);
  std::uint64_t h = 0;
  for (const std::uint64_t word : words) h = base::mix64(h ^ word);
  return static_cast<std::uint32_t>(h) | 1;  // 0 is no feature
}

// Keeps the smallest, in order; 0 stands for infinity.
void insert(std::array<std::uint32_t, SimilarPages::kFeatures>& least, std::uint32_t feature) {
  for (std::uint32_t& known : least) {
    if (known == feature) return;
    if (known != 0 && known < feature) continue;
    std::swap(known, feature);
    if (feature == 0) return;
  }
}

// Zeros begin no stretch.
bool is_place(const std::byte* at) noexcept {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return (word * 0x9E3779B97F4A7C15u + 0x7F4A7C15F39CC060u) >> (64 - kPlaceBits) == 0;
}

void sketch_page(const std::byte* page, std::array<std::uint32_t, SimilarPages::kFeatures>& out) {
  out.fill(0);
  for (std::size_t i = 0; i + kStretchBytes <= kPageBytes; ++i) {
    if (is_place(page + i)) insert(out, hash_of(page + i));
  }
}

}  // namespace

SimilarPages::Sketch::Sketch(std::span<const std::byte> raw) : pages_(raw.size() / kPageBytes) {
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    sketch_page(raw.data() + i * kPageBytes, pages_[i]);
  }
}

bool SimilarPages::is_kept(std::uint64_t number) const noexcept {
  return number < next_ && next_ - number <= kMaxPages;
}

void SimilarPages::note(const format::RecordRef& record, std::span<const std::byte> raw,
                        const Sketch& sketch) {
  assert(raw.size() / kPageBytes == sketch.pages_.size());
  for (std::size_t slot = 0; slot < sketch.pages_.size(); ++slot) {
    const auto at = static_cast<std::size_t>(next_ % kMaxPages);
    if (at >= pages_.size()) {
      if (!take_page()) return;
      pages_.resize(at + 1);
      contents_.resize((at + 1) * kPageBytes);
    }
    assert(contents_.size() == pages_.size() * kPageBytes);
    pages_[at] = {record, static_cast<std::uint32_t>(slot)};
    std::memcpy(contents_.data() + at * kPageBytes, raw.data() + slot * kPageBytes, kPageBytes);
    for (const std::uint32_t feature : sketch.pages_[slot]) {
      if (feature != 0) newest_[feature] = next_;
    }
    ++next_;
  }
  unused_pages_ += sketch.pages_.size();
  if (unused_pages_ > kMaxPages) often_ = false;
  if (newest_.size() > 2 * kFeatures * kMaxPages) {
    std::erase_if(newest_, [this](const auto& known) { return !is_kept(known.second); });
  }
}

void SimilarPages::note_use() noexcept {
  often_ = true;
  unused_pages_ = 0;
}

void SimilarPages::clear() noexcept {
  assert(pages_of_all.load(std::memory_order_relaxed) >= pages_.size());
  pages_of_all.fetch_sub(pages_.size(), std::memory_order_relaxed);
  pages_ = {};
  contents_ = {};
  next_ = 0;
  newest_.clear();
}

// False: too few of the pages resemble any.
bool SimilarPages::vote(const Sketch& sketch, Votes& out) const {
  std::size_t alike = 0;
  for (const auto& features : sketch.pages_) {
    std::array<std::uint64_t, kFeatures> found{};
    std::size_t most = 0, count = 0;
    for (const std::uint32_t feature : features) {
      const auto at = feature == 0 ? newest_.end() : newest_.find(feature);
      if (at == newest_.end() || !is_kept(at->second)) continue;
      found[count++] = at->second;
      const auto same =
          std::count(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count), at->second);
      most = std::max(most, static_cast<std::size_t>(same));
      ++out[at->second];
    }
    if (most >= kMinShared) ++alike;
  }
  return alike * 2 >= sketch.pages_.size();
}

// The indexes of the pages with most shared features, in the order of encode_base_pages().
std::vector<std::size_t> SimilarPages::best_of(const Votes& votes) const {
  std::vector<std::pair<std::size_t, std::uint64_t>> best;  // votes, page
  best.reserve(votes.size());
  for (const auto& [page, count] : votes) best.push_back({count, page});
  const std::size_t keep = std::min(best.size(), format::kMaxBasePages);
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(keep), best.end(),
                    std::greater<>());
  best.resize(keep);
  std::vector<std::size_t> places;
  places.reserve(keep);
  for (const auto& [count, page] : best)
    places.push_back(static_cast<std::size_t>(page % kMaxPages));
  std::sort(places.begin(), places.end(), [this](std::size_t a, std::size_t b) {
    return std::tie(pages_[a].record, pages_[a].slot) < std::tie(pages_[b].record, pages_[b].slot);
  });
  return places;
}

bool SimilarPages::find(const Sketch& sketch, Bases& out) const {
  Votes votes;
  if (next_ == 0 || !vote(sketch, votes)) return false;
  out.pages.clear();
  out.prefix.assign(base::kPrefixZeros, std::byte{0});
  for (const std::size_t at : best_of(votes)) {
    assert(at < pages_.size());
    const KeptPage& page = pages_[at];
    out.pack = page.record.pack;
    out.pages.push_back({page.record.offset_bytes, page.record.tag, page.slot});
    const auto* const content = contents_.data() + at * kPageBytes;
    out.prefix.insert(out.prefix.end(), content, content + kPageBytes);
  }
  return true;
}

}  // namespace vellum::store
