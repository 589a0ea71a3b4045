#include "lib/memory_group.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace bench {
namespace {

void write_text(const std::string& file, const std::string& text) {
  const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  const bool ok =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!ok) throw std::runtime_error(fmt::format("{}: {}", file, std::strerror(error)));
}

// The group of this process in a controller; "" is that of cgroup v2.
bool own_group(const std::string& controller, std::string& group) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.substr(first + 1, second - first - 1) != controller)
      continue;
    group = line.substr(second + 1);
    return true;
  }
  return false;
}

}  // namespace

MemoryGroup::MemoryGroup(std::uint64_t limit_bytes) {
  std::string group;
  const std::string name = "/vellum-bench-" + std::to_string(getpid());
  if (own_group("memory", group)) {
    path_ = "/sys/fs/cgroup/memory" + group + name;
  } else if (own_group("", group)) {
    path_ = "/sys/fs/cgroup" + group + name;
    v2_ = true;
  } else {
    throw std::runtime_error("no cgroup with a memory controller");
  }
  if (mkdir(path_.c_str(), 0755) != 0 && errno != EEXIST) {
    throw std::runtime_error(
        fmt::format("{}: {}: a limit of memory needs root", path_, std::strerror(errno)));
  }
  write_text(path_ + (v2_ ? "/memory.max" : "/memory.limit_in_bytes"), std::to_string(limit_bytes));
}

MemoryGroup::~MemoryGroup() { rmdir(path_.c_str()); }

void MemoryGroup::enter() const { write_text(path_ + "/cgroup.procs", std::to_string(getpid())); }

std::uint64_t read_ahead_kib(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return 0;
  std::ifstream in(fmt::format("/sys/dev/block/{}:{}/queue/read_ahead_kb", major(status.st_dev),
                               minor(status.st_dev)));
  std::uint64_t kib = 0;
  in >> kib;
  return in ? kib : 0;
}

void drop_from_cache(const std::string& path) {
  const auto drop = [](const std::string& file) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
  };
  if (!std::filesystem::is_directory(path)) return drop(path);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) drop(entry.path());
  }
}

}  // namespace bench
