#include "atomic/apply_runs.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace vellum::atomic {
namespace {

using format::kLineBytes;
using format::kLinesPerPage;
using format::kPageBytes;
using format::RedoRun;

constexpr std::uint64_t kSpanPages = 64;

std::uint64_t page_of(const RedoRun& run) { return run.first_line / kLinesPerPage; }

// What of a run lies in the file.
std::span<const std::byte> clipped(const RedoRun& run, std::uint64_t file_bytes) {
  const std::uint64_t begin = run.first_line * kLineBytes;
  if (begin >= file_bytes) return {};
  return {run.bytes, std::min<std::uint64_t>(run.count * kLineBytes, file_bytes - begin)};
}

void apply_singly(const std::vector<RedoRun>& runs, MediumFile& image) {
  const std::uint64_t size = image.size_bytes();
  for (const RedoRun& run : runs) {
    const auto bytes = clipped(run, size);
    if (!bytes.empty()) image.write(bytes, run.first_line * kLineBytes);
  }
}

// Neighbouring pages together: read, patched in the order of the commits, written.
void apply_span(std::span<const RedoRun> runs, MediumFile& image, std::vector<std::byte>& buffer) {
  const std::uint64_t size = image.size_bytes();
  const std::uint64_t begin = page_of(runs.front()) * kPageBytes;
  const std::uint64_t end = std::min(size, (page_of(runs.back()) + 1) * kPageBytes);
  if (begin >= end) return;
  buffer.resize(end - begin);
  image.read(buffer, begin);
  for (const RedoRun& run : runs) {
    const auto bytes = clipped(run, size);
    if (!bytes.empty())
      std::memcpy(buffer.data() + (run.first_line * kLineBytes - begin), bytes.data(),
                  bytes.size());
  }
  image.write(buffer, begin);
}

}  // namespace

void apply_runs(std::vector<RedoRun>& runs, MediumFile& image) {
  if (image.byte_addressable()) return apply_singly(runs, image);
  std::sort(runs.begin(), runs.end(), [](const RedoRun& a, const RedoRun& b) {
    return page_of(a) != page_of(b) ? page_of(a) < page_of(b) : a.bytes < b.bytes;
  });
  std::vector<std::byte> buffer;
  for (std::size_t first = 0; first < runs.size();) {
    std::size_t last = first;
    while (last + 1 < runs.size() && page_of(runs[last + 1]) <= page_of(runs[last]) + 1 &&
           page_of(runs[last + 1]) < page_of(runs[first]) + kSpanPages)
      ++last;
    apply_span(std::span(runs).subspan(first, last - first + 1), image, buffer);
    first = last + 1;
  }
}

}  // namespace vellum::atomic
