#include "shim/proc.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "shim/real.hpp"

namespace vellum::shim {

std::vector<int> descriptors_of_process() {
  const Inside inside;
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

bool kernel_maps(std::uint64_t file_inode, const std::string& path) {
  const Inside inside;
  const auto close_stream = [](std::FILE* stream) { std::fclose(stream); };
  const std::unique_ptr<std::FILE, decltype(close_stream)> maps(
      VELLUM_REAL(fopen)("/proc/self/maps", "re"), close_stream);
  if (maps == nullptr) return false;
  char* line = nullptr;
  std::size_t room = 0;
  bool found = false;
  // "from-to access offset device inode   path"
  while (!found && getline(&line, &room, maps.get()) > 0) {
    unsigned long long inode = 0;
    int end = 0;
    if (std::sscanf(line, "%*s %*s %*s %*s %llu %n", &inode, &end) != 1 || end == 0) continue;
    std::string name(line + end);
    if (!name.empty() && name.back() == '\n') name.pop_back();
    found = inode == file_inode && name == path;
  }
  std::free(line);
  return found;
}

}  // namespace vellum::shim
