#include "power/file_systems_lib.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace vellum::power {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// Small ones: an image is compared with its expected state after each cut. The journal has the
// smallest size, and wraps.
constexpr const char* kMakeExt4 =
    "mkfs.ext4 -q -F -b 4096 -N 1024 -J size=4 -O ^resize_inode -E "
    "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
// xfsprogs' own tests use these variables to allow less than 300 MB.
constexpr const char* kMakeXfs = "TEST_DIR=1 TEST_DEV=1 QA_CHECK_FS=1 mkfs.xfs -q -f -K -l size=6m";
constexpr const char* kMakeBtrfs = "mkfs.btrfs -q -f -K";

bool kernel_has(const std::string& type) {
  // The kernel may load the module only on demand.
  [[maybe_unused]] const int ignored =
      std::system(fmt::format("modprobe -q {} 2>/dev/null", type).c_str());
  std::ifstream file("/proc/filesystems");
  const std::vector<std::string> words{std::istream_iterator<std::string>(file), {}};
  return std::find(words.begin(), words.end(), type) != words.end();
}

bool has_program(const char* make) {
  const std::string command = make;
  const std::size_t at = command.find("mkfs.");
  const std::string program = command.substr(at, command.find(' ', at) - at);
  return std::system(
             fmt::format("PATH=$PATH:/usr/sbin:/sbin command -v {} >/dev/null", program).c_str()) ==
         0;
}

}  // namespace

const std::vector<FileSystem>& file_systems() {
  static const std::vector<FileSystem> all{
      {"ext4_ordered", {"ext4", "data=ordered"}, 48 * kMiB, kMakeExt4, 1024, 1024},
      {"ext4_journal", {"ext4", "data=journal"}, 48 * kMiB, kMakeExt4, 1024, 1024},
      {"ext4_writeback", {"ext4", "data=writeback"}, 48 * kMiB, kMakeExt4, 1024, 1024},
      {"xfs", {"xfs", ""}, 96 * kMiB, kMakeXfs},
      {"btrfs", {"btrfs", "nodiscard"}, 128 * kMiB, kMakeBtrfs, 64 << 10, 4096}};
  return all;
}

Descriptor make_disk(const FileSystem& system) {
  Descriptor disk = make_memory_file("disk", system.disk_bytes);
  const std::string command = fmt::format("export PATH=$PATH:/usr/sbin:/sbin; {} {} >/dev/null",
                                          system.make, path_of(disk));
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  return disk;
}

std::string why_not(const FileSystem& system) {
  if (geteuid() != 0) return "mounting takes root";
  for (const char* device : {"/dev/fuse", "/dev/loop-control"}) {
    if (access(device, R_OK | W_OK) != 0) return fmt::format("{} cannot be opened", device);
  }
  if (!has_program(system.make)) return fmt::format("{} cannot be created: no mkfs", system.name);
  if (!kernel_has(system.mount_as.type)) {
    return fmt::format("the kernel has no {}", system.mount_as.type);
  }
  return "";
}

}  // namespace vellum::power
