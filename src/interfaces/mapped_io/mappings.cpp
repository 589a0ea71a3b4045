#include "interfaces/mapped_io/mappings.hpp"

#include <algorithm>
#include <cassert>

#include "format/wire/types.hpp"

namespace vellum::mapped_io {
namespace {

using format::kPageBytes;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPageBytes - 1) & ~(kPageBytes - 1); }

}  // namespace

bool Mappings::contains(const void* address) const noexcept {
  const auto* const at = static_cast<const std::byte*>(address);
  return std::any_of(all_.begin(), all_.end(),
                     [&](const auto& m) { return at >= m.first && at < m.second; });
}

void Mappings::add(std::byte* begin, std::size_t length_bytes) {
  assert(length_bytes != 0);
  all_.emplace_back(begin, begin + whole_pages(length_bytes));
}

void Mappings::remove(std::byte* begin, std::size_t length_bytes) {
  auto* const end = begin + whole_pages(length_bytes);
  const auto overlaps = [&](const auto& m) { return m.first < end && m.second > begin; };
  auto meant = std::find(all_.begin(), all_.end(), std::pair(begin, end));
  if (meant == all_.end()) meant = std::find_if(all_.begin(), all_.end(), overlaps);
  if (meant == all_.end()) return;
  const auto [from, to] = *meant;
  all_.erase(meant);
  if (from < begin) all_.emplace_back(from, begin);
  if (end < to) all_.emplace_back(end, to);
}

bool Mappings::resize(std::byte* begin, std::size_t old_bytes, std::size_t new_bytes) noexcept {
  const auto it =
      std::find(all_.begin(), all_.end(), std::pair(begin, begin + whole_pages(old_bytes)));
  if (it == all_.end()) return false;
  assert(new_bytes != 0);
  it->second = begin + whole_pages(new_bytes);
  return true;
}

}  // namespace vellum::mapped_io
