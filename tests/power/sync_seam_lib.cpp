#include "power/sync_seam_lib.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <mutex>

namespace vellum::power {

namespace {

std::mutex mutex;
std::function<bool(const std::string&)> skips_now;
std::atomic<std::size_t> skipped{0};

bool is_skipped(int fd) {
  const std::lock_guard lock(mutex);
  if (!skips_now) return false;
  std::error_code failed;
  const auto path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), failed);
  if (failed || !skips_now(path.string())) return false;
  ++skipped;
  return true;
}

}  // namespace

SkippedSyncs::SkippedSyncs(std::function<bool(const std::string& path)> skips) {
  const std::lock_guard lock(mutex);
  skips_now = std::move(skips);
  skipped = 0;
}

SkippedSyncs::~SkippedSyncs() {
  const std::lock_guard lock(mutex);
  skips_now = nullptr;
}

std::size_t SkippedSyncs::count() { return skipped; }

}  // namespace vellum::power

extern "C" int fdatasync(int fd) {
  if (vellum::power::is_skipped(fd)) return 0;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

extern "C" int fsync(int fd) {
  if (vellum::power::is_skipped(fd)) return 0;
  return static_cast<int>(syscall(SYS_fsync, fd));
}
