// A file system of a few megabytes, mounted for the duration of a test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/temp_directory.hpp"

namespace vellum::test {

class SmallDisk {
 public:
  explicit SmallDisk(std::uint64_t bytes) {
    const std::string options = "size=" + std::to_string(bytes);
    mounted_ = ::mount("vellum-test", directory_.path().c_str(), "tmpfs", 0, options.c_str()) == 0;
    if (!mounted_) reason_ = std::string("cannot mount a tmpfs: ") + std::strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) umount2(directory_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::string& reason() const { return reason_; }
  std::string operator/(const std::string& name) const { return directory_ / name; }

  void make_read_only() const {
    ASSERT_EQ(::mount(nullptr, directory_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr),
              0)
        << std::strerror(errno);
  }

  // Fills all but `left_bytes` of the free space.
  void fill(std::uint64_t left_bytes) const {
    struct statvfs info{};
    ASSERT_EQ(statvfs(directory_.path().c_str(), &info), 0);
    const std::uint64_t free = info.f_bavail * info.f_frsize;
    if (free <= left_bytes) return;
    const int fd = ::open((directory_ / "ballast").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(posix_fallocate(fd, 0, static_cast<off_t>(free - left_bytes)), 0);
    close(fd);
  }
  void make_room() const { unlink((directory_ / "ballast").c_str()); }

 private:
  TempDirectory directory_;
  bool mounted_ = false;
  std::string reason_;
};

}  // namespace vellum::test
