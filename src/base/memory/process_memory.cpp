#include "base/memory/process_memory.hpp"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <fstream>
#include <string>

#include "base/environment.hpp"
#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "base/size_limit.hpp"

namespace vellum::base {
namespace {

constexpr std::uint64_t kReservedForProcessBytes = 64u << 20;

// The number in a file; `otherwise` if it has none ("max") or does not exist.
std::uint64_t number_in(const std::string& path, std::uint64_t otherwise) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  return in >> value ? value : otherwise;
}

// The minimum limit of a group and its ancestors. Inside a container the path may be invisible. The
// root of the mount is then the container's own group.
std::uint64_t least_limit(const std::string& mount, std::string group, const char* file) {
  std::uint64_t least = number_in(mount + "/" + file, UINT64_MAX);
  while (!group.empty() && group != "/") {
    least = std::min(least, number_in(mount + group + "/" + file, UINT64_MAX));
    group.erase(group.rfind('/'));
  }
  return least;
}

std::uint64_t find_memory() {
  struct sysinfo info{};
  std::uint64_t least = UINT64_MAX;
  if (sysinfo(&info) == 0) least = std::uint64_t{info.totalram} * info.mem_unit;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_limit("/sys/fs/cgroup", group, "memory.max"));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      least = std::min(least, least_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

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

std::uint64_t memory_of_process() {
  static const std::uint64_t bytes = find_memory();
  return bytes;
}

std::uint64_t memory_for_regions() {
  const auto text = environment("VELLUM_MEMORY_LIMIT");
  if (!text.has_value()) {
    const std::uint64_t memory = memory_of_process();
    return memory / 4 * 3 - std::min(memory / 4, kReservedForProcessBytes);
  }
  const auto limit = parse_number<std::uint64_t>(*text);
  if (limit.value_or(0) == 0) {
    fail(Errc::invalid_argument, "VELLUM_MEMORY_LIMIT is '{}': it must be a number of bytes",
         *text);
  }
  return *limit;
}

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

void require_pages_of_4_kib(const char* what) {
  const long bytes = sysconf(_SC_PAGESIZE);
  if (bytes == 4096) return;
  fail(Errc::unsupported,
       "{} needs a kernel with pages of 4 KiB, and this one's have {} KiB: versions can be read "
       "here with `vellum export`, `diff` and `mount`",
       what, bytes / 1024);
}

}  // namespace vellum::base
