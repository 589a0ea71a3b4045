// remote/fetch/piece_parts.hpp: some byte ranges of a piece, kept temporarily.
//
// They are not checked: the readers of records check them. All functions but add() may be called in
// the fault handler.
#pragma once

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace vellum::remote {

class PieceParts {
 public:
  // REQUIRES: `at_bytes` is at or after the end of the last range, and there are no readers yet.
  void add(std::uint64_t at_bytes, std::vector<std::byte> bytes) {
    assert(parts_.empty() || parts_.back().first + parts_.back().second.size() <= at_bytes);
    parts_.emplace_back(at_bytes, std::move(bytes));
  }
  bool has(std::uint64_t at_bytes, std::uint64_t size_bytes) const noexcept {
    const StoredPart* const part = find(at_bytes);
    return part != nullptr && part->first + part->second.size() - at_bytes >= size_bytes;
  }
  // 0, or ENODATA if the range is too short. Nullopt: no range has the first byte.
  std::optional<int> read(std::span<std::byte> out, std::uint64_t at_bytes) const noexcept {
    const StoredPart* const part = find(at_bytes);
    if (part == nullptr) return std::nullopt;
    const std::uint64_t from = at_bytes - part->first;
    if (part->second.size() - from < out.size()) return ENODATA;
    std::memcpy(out.data(), part->second.data() + from, out.size());
    return 0;
  }

 private:
  using StoredPart = std::pair<std::uint64_t, std::vector<std::byte>>;
  const StoredPart* find(std::uint64_t at_bytes) const noexcept {
    const auto behind =
        std::partition_point(parts_.begin(), parts_.end(),
                             [&](const StoredPart& part) { return part.first <= at_bytes; });
    if (behind == parts_.begin()) return nullptr;
    const StoredPart& part = *std::prev(behind);
    return at_bytes - part.first < part.second.size() ? &part : nullptr;
  }
  std::vector<StoredPart> parts_;
};

}  // namespace vellum::remote
