#include "base/files/real_path.hpp"

#include <limits.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/new_file.hpp"

namespace vellum::base {

std::string real_path(const std::string& path) {
  std::error_code error;
  auto found = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  if (error) return path;
  return without_end_slashes(found.string());
}

std::string path_of(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = readlink(link.c_str(), path, sizeof path);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : std::string();
}

}  // namespace vellum::base
