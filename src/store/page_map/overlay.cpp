#include "store/page_map/overlay.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/fail.hpp"

namespace vellum::store {

using format::CommitPart;
using format::PageNumber;
using format::PartType;

namespace {

std::vector<std::byte> unpack(base::Codec codec, std::span<const std::byte> stored,
                              std::size_t raw_bytes) {
  std::vector<std::byte> raw(raw_bytes);
  if (!base::Decompressor(raw_bytes).decompress(codec, stored, raw)) {
    fail(Errc::corrupted, "a part of a commit does not decompress");
  }
  return raw;
}

void parse_deltas(const CommitPart& part, format::DeltaBatch& out) {
  // Uncompressed bytes are parsed in place.
  std::vector<std::byte> raw;
  std::span<const std::byte> bytes = part.stored;
  if (part.codec != base::Compression::none) {
    raw = unpack(part.codec, part.stored, part.raw_bytes);
    bytes = raw;
  }
  if (!format::decode_delta_batch(bytes, out)) {
    fail(Errc::corrupted, "the deltas of a commit do not parse");
  }
}

}  // namespace

std::uint64_t max_epoch_raw_bytes(std::uint32_t journal_half_bytes) noexcept {
  return 8 * std::uint64_t{journal_half_bytes};
}

std::uint64_t raw_bytes_of(const format::CommitBody& body) noexcept {
  std::uint64_t bytes = 0;
  for (const CommitPart& part : body.parts) bytes += part.raw_bytes;
  return bytes;
}

void check_raw_bytes(std::span<const format::CommitBody> commits,
                     std::uint32_t journal_half_bytes) {
  std::uint64_t bytes = 0;
  for (const auto& body : commits) bytes += raw_bytes_of(body);
  if (bytes > max_epoch_raw_bytes(journal_half_bytes)) {
    fail(Errc::corrupted, "the journal's commits claim {} bytes", bytes);
  }
}

std::vector<PageWrites> parse_commit(format::CommitBody&& body) {
  std::vector<PageWrites> out(1);
  for (CommitPart& part : body.parts) {
    switch (part.type) {
      case PartType::deltas:
        if (!out.back().deltas.empty()) out.emplace_back();  // a PageWrites has one batch
        parse_deltas(part, out.back().deltas);
        break;
      case PartType::pages:
        out.back().blocks.push_back(
            {std::move(part.pages), part.codec, std::move(part.stored), {}});
        break;
      case PartType::zeros: {
        auto& zeros = out.front().zeros;
        zeros.insert(zeros.end(), part.pages.begin(), part.pages.end());
        break;
      }
    }
  }
  return out;
}

std::vector<std::byte> unpack_block(const PageBlock& block) {
  assert(!block.pages.empty());
  return unpack(block.codec, block.stored, block.pages.size() * format::kPageBytes);
}

void Overlay::Line::apply_to(std::byte* page_bytes) const noexcept {
  switch (type) {
    case PartType::pages:
      assert(content != nullptr);
      std::memcpy(page_bytes, content, format::kPageBytes);
      break;
    case PartType::zeros:
      std::memset(page_bytes, 0, format::kPageBytes);
      break;
    case PartType::deltas: {
      assert(batch != nullptr && index < batch->pages().size());
      const auto& p = batch->pages()[index];
      format::apply_delta(batch->spans_of(p), batch->bytes_of(p), page_bytes);
      break;
    }
  }
}

Overlay::Overlay(std::vector<format::CommitBody> commits) {
  std::uint32_t order = 0;
  for (auto& body : commits) {
    assert(order < UINT32_MAX);
    ++order;
    for (PageWrites& parsed : parse_commit(std::move(body))) {
      const PageWrites& piece = pieces_.emplace_back(std::move(parsed));
      std::uint32_t index = 0;
      for (const auto& p : piece.deltas.pages()) {
        lines_.push_back({p.page, order, PartType::deltas, index++, nullptr, &piece.deltas});
      }
      for (const PageBlock& block : piece.blocks) {
        const auto& content = contents_.emplace_back(unpack_block(block));
        const std::byte* at = content.data();
        for (const PageNumber page : block.pages) {
          lines_.push_back({page, order, PartType::pages, 0, at, nullptr});
          at += format::kPageBytes;
        }
      }
      for (const PageNumber page : piece.zeros) {
        lines_.push_back({page, order, PartType::zeros, 0, nullptr, nullptr});
      }
    }
  }
  std::sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) {
    return a.page != b.page ? a.page < b.page : a.order > b.order;
  });
  // Lines below a full content never show.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const bool hidden =
        kept > 0 && lines_[kept - 1].page == lines_[i].page && lines_[kept - 1].full();
    if (!hidden) lines_[kept++] = lines_[i];
  }
  lines_.resize(kept);
  assert(std::ranges::is_sorted(lines_, {}, &Line::page));
}

std::span<const Overlay::Line> Overlay::find(PageNumber first, std::uint64_t count) const noexcept {
  const auto below = [](PageNumber limit) {
    return [limit](const Line& l) { return l.page < limit; };
  };
  const auto begin = std::partition_point(lines_.begin(), lines_.end(), below(first));
  const auto end = std::partition_point(begin, lines_.end(), below(first + count));
  return {begin, end};
}

const Overlay::Line* Overlay::next(PageNumber page) const noexcept {
  const auto at = std::partition_point(lines_.begin(), lines_.end(),
                                       [&](const Line& l) { return l.page < page; });
  return at == lines_.end() ? nullptr : &*at;
}

}  // namespace vellum::store
