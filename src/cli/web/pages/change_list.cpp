#include "cli/web/pages/change_list.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/terminal/output.hpp"
#include "cli/web/pages/byte_text.hpp"
#include "cli/web/pages/html.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kChangesOfPage = 100;
constexpr std::uint64_t kMergedGap = 16;  // equal bytes between two ranges of one change
constexpr std::uint64_t kChangeLineBytes = 8, kChangeLines = 4;

struct Side {
  std::string version;
  std::uint64_t region_bytes;
  char sign;
};

Bytes part_of(const std::vector<std::byte>& bytes, std::uint64_t at, std::uint64_t length) {
  const auto begin = static_cast<std::size_t>(std::min<std::uint64_t>(at, bytes.size()));
  return Bytes(bytes).subspan(begin,
                              std::min(static_cast<std::size_t>(length), bytes.size() - begin));
}

// The lines of one side from `begin` on; beyond the end of its region there are none.
std::string side_markup(const Side& side, std::uint64_t begin, std::vector<std::byte> bytes,
                        const std::vector<std::byte>& other) {
  const std::uint64_t end = std::max(side.region_bytes, begin) - begin;
  bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), end)));
  std::string markup = "<pre>";
  if (bytes.empty()) markup += fmt::format("{} past the end\n", side.sign);
  for (std::uint64_t at = 0; at < bytes.size(); at += kChangeLineBytes) {
    const Bytes line = part_of(bytes, at, kChangeLineBytes);
    markup += fmt::format("{} {}{:{}}  {}\n", side.sign,
                          hex_of(line, part_of(other, at, kChangeLineBytes)), "",
                          3 * (kChangeLineBytes - line.size()), characters_of(line));
  }
  return markup + "</pre>";
}

std::string change_markup(const Store& store, const Side& a, const Side& b, const Change& change) {
  const std::uint64_t begin = change.begin / kChangeLineBytes * kChangeLineBytes;
  const std::uint64_t length =
      std::min((change.end - begin + kChangeLineBytes - 1) / kChangeLineBytes, kChangeLines) *
      kChangeLineBytes;
  const auto before = bytes_of(store, a.version, begin, length);
  const auto after = bytes_of(store, b.version, begin, length);
  const std::string address =
      fmt::format("bytes?version={}&against={}&offset={}", in_query(b.version), in_query(a.version),
                  hex_offset(change.begin / 16 * 16));
  std::string markup = fmt::format(
      "<li>{}, {}\n<div class=\"sides\">{}{}</div>", link_to(address, both_offsets(change.begin)),
      counted(change.bytes_different, "byte"), side_markup(a, begin, before, after),
      side_markup(b, begin, after, before));
  if (begin + length < change.end) markup += fmt::format("up to {}", hex_offset(change.end - 1));
  return markup + "</li>\n";
}

}  // namespace

void ChangeList::add(const ByteRange& range) {
  const std::uint64_t range_end = range.offset_bytes + range.length_bytes;
  if (last_.end != 0 && range.offset_bytes - last_.end <= kMergedGap) {
    last_.end = range_end;
    last_.bytes_different += range.length_bytes;
    return;
  }
  end();
  last_ = {range.offset_bytes, range_end, range.length_bytes};
}

void ChangeList::end() {
  const Change change = std::exchange(last_, {});
  if (change.end == 0) return;
  if (change.end <= from_) {
    before_.push_back(change.begin);
    if (before_.size() > kChangesOfPage) before_.pop_front();
  } else if (shown_.size() < kChangesOfPage) {
    shown_.push_back(change);
  } else if (!next_page_) {
    next_page_ = change.begin;
  }
}

std::optional<std::uint64_t> ChangeList::page_before() const {
  if (before_.empty()) return std::nullopt;
  return before_.front();
}

std::string changes_markup(const Store& store, const std::string& a, const std::string& b,
                           const std::vector<Change>& changes) {
  const Side before{a, store.version(a).region_bytes, '-'};
  const Side after{b, store.version(b).region_bytes, '+'};
  std::string markup = "<ol class=\"changes\">\n";
  for (const Change& change : changes) markup += change_markup(store, before, after, change);
  return markup + "</ol>\n";
}

}  // namespace vellum::cli
