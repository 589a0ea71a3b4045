#include "format/working_set.hpp"

#include <algorithm>
#include <cassert>

#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr WholeFileKind kWorkingSetFile{kWorkingSetMagic, kMaxWorkingSetBytes, "no working set",
                                        "larger than any working set"};
constexpr std::size_t kMinRangeBytes = 2;
// A page number of 34 bits and a distance of 35 bits take 5 bytes each.
static_assert(kMaxWorkingSetBytes >= 64 + 10ULL * kMaxWorkingSetRanges);

bool read_ranges(ByteReader& in, std::vector<PageRange>& out) {
  const std::uint64_t n = in.varint();
  if (!in.ok() || n > kMaxWorkingSetRanges || n > in.left() / kMinRangeBytes) return false;
  out.resize(static_cast<std::size_t>(n));
  std::uint64_t end = 0;
  for (PageRange& r : out) {
    // Modulo 2^64. The check of the size refuses a number outside the region.
    r.first = end + static_cast<std::uint64_t>(in.zigzag());
    const std::uint64_t more = in.varint();
    if (!in.ok() || r.first >= kMaxPages || more >= kMaxPages - r.first) return false;
    r.count = more + 1;
    end = r.first + r.count;
  }
  return true;
}

}  // namespace

std::vector<std::byte> encode_working_set(const WorkingSet& set, const FileSeal& seal) {
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.u64(set.owner.branch_id);
  b.u64(set.owner.sequence);
  b.u64(static_cast<std::uint64_t>(set.owner.time_ns));
  const std::size_t n = std::min<std::size_t>(set.ranges.size(), kMaxWorkingSetRanges);
  b.varint(n);
  std::uint64_t end = 0;
  for (const PageRange& r : std::span(set.ranges).first(n)) {
    b.zigzag(static_cast<std::int64_t>(r.first - end));
    b.varint(r.count - 1);
    end = r.first + r.count;
  }
  assert(kWholeFileHeaderBytes + body.size() + 8 <= kMaxWorkingSetBytes);
  return encode_whole_file(kWorkingSetFile, body, seal);
}

const char* decode_working_set(std::span<const std::byte> bytes, const FileSeal& seal,
                               WorkingSet& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kWorkingSetFile, bytes, seal, opened, body))
    return problem;
  ByteReader in(body);
  WorkingSet set;
  set.owner.branch_id = in.u64();
  set.owner.sequence = in.u64();
  set.owner.time_ns = static_cast<std::int64_t>(in.u64());
  if (!read_ranges(in, set.ranges)) return "malformed ranges";
  if (!in.done()) return "malformed";
  out = std::move(set);
  return nullptr;
}

}  // namespace vellum::format
