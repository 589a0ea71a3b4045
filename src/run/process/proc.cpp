#include "run/process/proc.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "run/process/real.hpp"

namespace vellum::preload {

std::uint64_t process_identity() noexcept {
  const auto process = static_cast<std::uint64_t>(getpid());
  struct stat space;
  if (process != 1 || VELLUM_REAL(stat)("/proc/self/ns/pid", &space) != 0) return process;
  return process | space.st_ino << 32;
}

// Does without opendir(3), which allocates.
bool any_descriptor(bool (*is)(int fd) noexcept) noexcept {
  const int all = VELLUM_REAL(open)("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (all < 0) return false;
  alignas(dirent64) char entries[4096];
  bool found = false;
  for (ssize_t got = 0; !found && (got = getdents64(all, entries, sizeof entries)) > 0;) {
    for (ssize_t at = 0; !found && at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const int fd = std::atoi(entry->d_name);
      found = entry->d_name[0] != '.' && fd != all && is(fd);
    }
  }
  VELLUM_REAL(close)(all);
  return found;
}

std::vector<int> descriptors_of_process() {
  const ReentrancyGuard inside;
  std::vector<int> out;
  DIR* const all = opendir("/proc/self/fd");
  if (all == nullptr) return out;
  while (const dirent* entry = readdir(all)) {
    if (entry->d_name[0] == '.') continue;
    const int fd = std::atoi(entry->d_name);
    if (fd != dirfd(all)) out.push_back(fd);
  }
  closedir(all);
  std::sort(out.begin(), out.end());
  return out;
}

bool writes_a_file(int fd) {
  struct stat status;
  const int flags = VELLUM_REAL(fcntl)(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY &&
         VELLUM_REAL(fstat)(fd, &status) == 0 && S_ISREG(status.st_mode);
}

void for_mappings(const std::function<void(const KernelMapping& mapping)>& visit) {
  const ReentrancyGuard inside;
  const auto close_stream = [](std::FILE* stream) { std::fclose(stream); };
  const std::unique_ptr<std::FILE, decltype(close_stream)> maps(
      VELLUM_REAL(fopen)("/proc/self/maps", "re"), close_stream);
  if (maps == nullptr) return;
  char* line = nullptr;
  std::size_t room = 0;
  // "from-to access offset device inode   path"
  while (getline(&line, &room, maps.get()) > 0) {
    void *begin = nullptr, *last = nullptr;
    unsigned long long offset = 0, inode = 0;
    char access[5] = "";
    int end = 0;
    if (std::sscanf(line, "%p-%p %4s %llx %*s %llu %n", &begin, &last, access, &offset, &inode,
                    &end) != 5)
      continue;
    std::string name(line + end);
    if (!name.empty() && name.back() == '\n') name.pop_back();
    visit({static_cast<std::byte*>(begin), static_cast<std::byte*>(last), offset,
           std::strcmp(access, "r--s") == 0, inode, std::move(name)});
  }
  std::free(line);
}

std::vector<KernelMapping> kernel_mappings(std::uint64_t file_inode, const std::string& path) {
  std::vector<KernelMapping> out;
  for_mappings([&](const KernelMapping& mapping) {
    if (mapping.inode == file_inode && mapping.path == path) out.push_back(mapping);
  });
  return out;
}

}  // namespace vellum::preload
