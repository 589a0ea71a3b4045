#include "base/memory/room_to_grow.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <fstream>

#include "base/size_limit.hpp"

namespace vellum::base {
namespace {

constexpr std::uint64_t kUsualBytes = 64ULL << 30;
constexpr std::uint64_t kShare = 8;

// The used address space in pages, and its writable private part: proc(5).
struct UsedPages {
  std::uint64_t all = 0, data = 0;
};

UsedPages used_pages() {
  UsedPages used;
  std::uint64_t skipped = 0;
  std::ifstream in("/proc/self/statm");
  in >> used.all >> skipped >> skipped >> skipped >> skipped >> used.data;
  return used;
}

std::uint64_t left_of(decltype(RLIMIT_AS) resource, std::uint64_t used_bytes) noexcept {
  struct rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used_bytes);
}

}  // namespace

std::uint64_t space_left() {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const UsedPages used = used_pages();
  return std::min(left_of(RLIMIT_AS, used.all * page), left_of(RLIMIT_DATA, used.data * page));
}

std::uint64_t room_to_grow(std::uint64_t size_bytes) {
  const std::uint64_t usual = std::max(4 * size_bytes, kUsualBytes);
  const std::uint64_t left = space_left();
  const std::uint64_t share = left == UINT64_MAX ? usual : left / kShare;
  const std::uint64_t room = std::max(size_bytes, std::min({usual, share, file_size_limit()}));
  assert(room >= size_bytes);
  return room;
}

}  // namespace vellum::base
