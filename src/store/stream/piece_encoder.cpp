#include "store/stream/piece_encoder.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/memory/zeros.hpp"
#include "store/packs/encode/block_encoder.hpp"
#include "store/packs/encode/fresh_page.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;

namespace {

// Few enough for a processor's L1 and L2 caches. Unchanged content is never copied to memory.
constexpr std::size_t kReadPages = 32;
constexpr std::size_t kComparedPages = 16;

}  // namespace

std::size_t EncodedPiece::held_bytes() const noexcept {
  std::size_t bytes = writes.deltas.encoded_bound_bytes() + loose_content.size();
  for (const PageBlock& block : writes.blocks) bytes += block.stored.size();
  return bytes;
}

PieceEncoder::PieceEncoder(const format::Encoding& encoding, const PageSource& head)
    : encoding_(encoding),
      head_(head),
      blocks_(encoding),
      now_(kReadPages * kPageBytes),
      old_(kComparedPages * kPageBytes) {}

void PieceEncoder::encode(const Input& input, const std::function<const Dedup*()>& dedup,
                          EncodedPiece& out) {
  assert(input.room.size() % kPageBytes == 0);
  whole_.clear();
  compare(input, out);
  if (out.empty()) return;
  const Dedup* const look_up = dedup();
  if (!whole_.empty()) place_whole(input.first, input.room, look_up, out);
}

// Content that equals the head's is read only into `now_`.
void PieceEncoder::compare(const Input& input, EncodedPiece& out) {
  const std::size_t pages = input.room.size() / kPageBytes;
  for (std::size_t i = 0; i < pages;) {
    const PageNumber first = input.first + i;
    const std::size_t n = std::min<std::size_t>(kReadPages - first % kReadPages, pages - i);
    const auto room = input.room.subspan(i * kPageBytes, n * kPageBytes);
    i += n;
    const bool fresh = head_.zeros_from(first, n) == n;
    const bool is_read = input.read == nullptr;
    const auto now = fresh || is_read ? room : std::span(now_).first(room.size());
    if (!is_read) input.read(first, now);
    if (!fresh && head_.surely_equal(first, n, now.data())) continue;
    if (now.data() != room.data()) std::memcpy(room.data(), now.data(), room.size());
    compare_with_head(first, room, out);
  }
}

void PieceEncoder::compare_with_head(PageNumber first, std::span<const std::byte> now,
                                     EncodedPiece& out) {
  assert(now.size() % kPageBytes == 0);
  const std::size_t pages = now.size() / kPageBytes;
  for (std::size_t i = 0; i < pages;) {
    const std::byte* const at = now.data() + i * kPageBytes;
    const std::size_t n = std::min(kComparedPages, pages - i);
    const std::size_t zeros = head_.zeros_from(first + i, n);
    if (zeros > 0) {
      for (std::size_t k = 0; k < zeros; ++k) {
        compare_fresh(first + i + k, at + k * kPageBytes, out);
      }
      i += zeros;
      continue;
    }
    head_.read(first + i, n, old_.data());
    if (std::memcmp(old_.data(), at, n * kPageBytes) != 0) {
      for (std::size_t k = 0; k < n; ++k) {
        compare_page(first + i + k, old_.data() + k * kPageBytes, at + k * kPageBytes, out);
      }
    }
    i += n;
  }
}

void PieceEncoder::compare_fresh(PageNumber page, const std::byte* now, EncodedPiece& out) {
  if (mostly_used(now)) {
    ++out.pages_changed;
    whole_.push_back(page);
    return;
  }
  auto& deltas = out.writes.deltas;
  if (!deltas.add_difference_from_zero(page, now)) return;
  ++out.pages_changed;
  if (encoding_.deltas && deltas.last_cost_bytes() <= kMaxFreshDeltaCostBytes) return;
  deltas.pop_back();
  whole_.push_back(page);
}

void PieceEncoder::compare_page(PageNumber page, const std::byte* old, const std::byte* now,
                                EncodedPiece& out) {
  auto& deltas = out.writes.deltas;
  if (!deltas.add_difference(page, old, now)) return;
  ++out.pages_changed;
  if (encoding_.deltas && deltas.last_cost_bytes() <= kMaxDeltaCostBytes) return;
  deltas.pop_back();
  if (base::is_zero({now, kPageBytes})) {
    out.writes.zeros.push_back(page);
  } else {
    whole_.push_back(page);
  }
}

void PieceEncoder::encode_zeros(PageNumber first, std::size_t pages, EncodedPiece& out) {
  static constexpr std::byte kZeros[kPageBytes] = {};
  for (std::size_t i = 0; i < pages;) {
    if (const std::size_t zeros = head_.zeros_from(first + i, pages - i); zeros > 0) {
      i += zeros;
      continue;
    }
    const std::size_t n = std::min(kComparedPages, pages - i);
    head_.read(first + i, n, old_.data());
    for (std::size_t k = 0; k < n; ++k) {
      compare_page(first + i + k, old_.data() + k * kPageBytes, kZeros, out);
    }
    i += n;
  }
}

// Encodes pages that the store does not have yet as blocks.
void PieceEncoder::place_whole(PageNumber first, std::span<const std::byte> now, const Dedup* dedup,
                               EncodedPiece& out) {
  assert(std::is_sorted(whole_.begin(), whole_.end()) && whole_.front() >= first);
  const auto content = [&](PageNumber page) { return now.data() + (page - first) * kPageBytes; };
  if (dedup != nullptr) {
    dedup->find(whole_, [&](std::size_t i) { return content(whole_[i]); }, out.writes.found);
  }
  const std::size_t half_a_block = encoding_.block_bytes / kPageBytes / 2;
  blocks_ = BlockEncoder(encoding_);
  std::span<const PageNumber> left = whole_;
  while (!left.empty()) {
    const auto pages = next_block(left, blocks_.pages());
    const std::byte* raw = content(pages.front());
    if (pages.back() - pages.front() + 1 != pages.size()) {
      gathered_.resize(pages.size() * kPageBytes);
      for (std::size_t i = 0; i < pages.size(); ++i) {
        std::memcpy(gathered_.data() + i * kPageBytes, content(pages[i]), kPageBytes);
      }
      raw = gathered_.data();
    }
    if (left.empty() && pages.size() < half_a_block) {
      out.loose.assign(pages.begin(), pages.end());
      out.loose_content.assign(raw, raw + pages.size() * kPageBytes);
      return;
    }
    out.writes.blocks.push_back(pack(pages, {raw, pages.size() * kPageBytes}, dedup != nullptr));
  }
}

PageBlock PieceEncoder::pack(std::span<const PageNumber> pages, std::span<const std::byte> raw,
                             bool note) {
  assert(!pages.empty() && raw.size() == pages.size() * kPageBytes);
  auto payload = blocks_.encode(compressor_, raw);
  PageBlock block{{pages.begin(), pages.end()}, payload.codec, {}, {}, std::move(payload.hash)};
  if (note) block.noted = Dedup::worth_noting(raw, payload.stored.size());
  block.stored = std::move(payload.stored);
  return block;
}

}  // namespace vellum::store
