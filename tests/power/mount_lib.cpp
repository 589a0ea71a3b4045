#include "power/mount_lib.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>

namespace vellum::power {

namespace {

constexpr std::uint32_t kSectorBytes = 512;

Descriptor open_file(const std::string& path, int flags) {
  Descriptor file(open(path.c_str(), flags | O_CLOEXEC));
  if (file.get() < 0) fail_with_errno(path);
  return file;
}

}  // namespace

bool make_mounts_private() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

LoopDevice::LoopDevice(const std::string& file) {
  const Descriptor control = open_file("/dev/loop-control", O_RDWR);
  const Descriptor backing = open_file(file, O_RDWR);
  for (;;) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) fail_with_errno("LOOP_CTL_GET_FREE");
    path_ = fmt::format("/dev/loop{}", number);
    device_ = open_file(path_, O_RDWR);
    loop_config config{};
    config.fd = static_cast<std::uint32_t>(backing.get());
    config.block_size = kSectorBytes;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (ioctl(device_.get(), LOOP_CONFIGURE, &config) == 0) return;
    if (errno != EBUSY) fail_with_errno("LOOP_CONFIGURE");  // EBUSY: another process was faster
  }
}

void LoopDevice::forget_pages() {
  if (ioctl(device_.get(), BLKFLSBUF) != 0) fail_with_errno("BLKFLSBUF");
}

Mount::Mount(const std::string& device, std::string directory, const MountAs& as)
    : directory_(std::move(directory)) {
  if (mount(device.c_str(), directory_.c_str(), as.type, 0, as.options) != 0) {
    fail_with_errno(fmt::format("mount as {}", as.type));
  }
}

Mount::~Mount() {
  if (mounted_) umount2(directory_.c_str(), MNT_DETACH);
}

void Mount::unmount() {
  if (umount2(directory_.c_str(), 0) != 0) fail_with_errno("umount");
  mounted_ = false;
}

}  // namespace vellum::power
