#include "cli/history/change_stat.hpp"

#include <algorithm>
#include <cstddef>

#include "cli/terminal/output.hpp"
#include "cli/terminal/table.hpp"
#include "format/wire/types.hpp"

namespace vellum::cli {
namespace {

using format::kPageBytes;

constexpr std::uint64_t kMaxParts = 32;
constexpr std::size_t kMinBarColumns = 8, kMaxBarColumns = 40;
constexpr std::size_t kBesideBar = 35;  // length, pages, changed bytes and gaps

std::uint64_t part_bytes_for(std::uint64_t region_bytes) {
  std::uint64_t bytes = kPageBytes;
  while ((region_bytes - 1) / bytes >= kMaxParts) bytes *= 2;
  return bytes;
}

// Distributes ascending ranges to the parts that they touch.
class Parts {
 public:
  explicit Parts(std::uint64_t part_bytes) : part_bytes_(part_bytes) {}

  void add(const ByteRange& range) {
    const std::uint64_t end = range.offset_bytes + range.length_bytes;
    for (std::uint64_t at = range.offset_bytes; at < end;) {
      const std::uint64_t next = std::min(end, (at / part_bytes_ + 1) * part_bytes_);
      add_within_part(at, next);
      at = next;
    }
  }

  std::vector<ChangedPart> take() { return std::move(parts_); }

 private:
  void add_within_part(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t offset = begin / part_bytes_ * part_bytes_;
    if (parts_.empty() || parts_.back().offset_bytes != offset) parts_.push_back({offset, 0, 0});
    ChangedPart& part = parts_.back();
    const std::uint64_t pages_end = (end - 1) / kPageBytes + 1;
    // A page with several ranges counts once.
    part.pages_different += pages_end - std::max(begin / kPageBytes, counted_pages_end_);
    part.bytes_different += end - begin;
    counted_pages_end_ = pages_end;
  }

  std::uint64_t part_bytes_;
  std::uint64_t counted_pages_end_ = 0;
  std::vector<ChangedPart> parts_;
};

// The columns that remain on the terminal next to offsets up to `last_offset` and the other
// columns.
std::size_t bar_columns(std::uint64_t last_offset) {
  const auto screen = screen_columns();
  if (!screen) return kMaxBarColumns;
  const std::size_t beside =
      kBesideBar + std::max<std::size_t>(6, fmt::formatted_size("{}", last_offset));
  return std::clamp(*screen - std::min(*screen, beside), kMinBarColumns, kMaxBarColumns);
}

// The part that changed most has the longest bar; one that changed at all has a mark.
std::string bar_of(std::uint64_t bytes, std::uint64_t most_bytes, std::size_t columns) {
  const auto share = static_cast<double>(bytes) / static_cast<double>(most_bytes);
  const auto marks = static_cast<std::size_t>(share * static_cast<double>(columns));
  return std::string(std::max<std::size_t>(marks, 1), '+');
}

}  // namespace

std::uint64_t length_of(const ChangeStat& stat, const ChangedPart& part) {
  return std::min(stat.part_bytes, std::max(stat.a_bytes, stat.b_bytes) - part.offset_bytes);
}

ChangeStat change_stat(const Store& store, const std::string& a, const std::string& b,
                       const std::function<void(const ByteRange&)>& visit) {
  ChangeStat stat;
  stat.a_bytes = store.version(a).region_bytes;
  stat.b_bytes = store.version(b).region_bytes;
  stat.part_bytes = part_bytes_for(std::max(stat.a_bytes, stat.b_bytes));
  Parts parts(stat.part_bytes);
  stat.totals = store.diff(a, b, [&](const ByteRange& range) {
    parts.add(range);
    if (visit) visit(range);
  });
  stat.parts = parts.take();
  return stat;
}

void print_parts(Output& out, const ChangeStat& stat) {
  if (stat.parts.empty()) return;
  std::uint64_t most_bytes = 0;
  for (const ChangedPart& part : stat.parts)
    most_bytes = std::max(most_bytes, part.bytes_different);
  const std::size_t columns = bar_columns(stat.parts.back().offset_bytes);
  using enum Table::Align;
  Table table(
      {{"offset", right}, {"length", right}, {"pages", right}, {"changed", right}, {"", left}});
  for (const ChangedPart& part : stat.parts) {
    table.add({fmt::format("{}", part.offset_bytes), human_bytes(length_of(stat, part)),
               fmt::format("{}", part.pages_different), human_bytes(part.bytes_different),
               bar_of(part.bytes_different, most_bytes, columns)});
  }
  table.print(out);
}

Json parts_json(const ChangeStat& stat) {
  Json parts = Json::array();
  for (const ChangedPart& part : stat.parts) {
    parts.push_back(Json{{"offset", part.offset_bytes},
                         {"length", length_of(stat, part)},
                         {"pages_different", part.pages_different},
                         {"bytes_different", part.bytes_different}});
  }
  return Json{{"part_bytes", stat.part_bytes}, {"parts", std::move(parts)}};
}

}  // namespace vellum::cli
