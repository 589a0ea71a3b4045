#include "memory/kernel/write_tracker.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/threads/per_process.hpp"
#include "memory/kernel/kernel.hpp"

namespace vellum::region {

std::shared_ptr<WriteTracker> WriteTracker::of_process() {
  static base::SharedInProcess<WriteTracker> shared;
  return shared.get([] { return std::make_shared<WriteTracker>(); });
}

WriteTracker::WriteTracker() : pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
  if (pagemap_ < 0) {
    fail(Errc::io, "cannot find the written pages: /proc/self/pagemap: {}", std::strerror(errno));
  }
  uffd_ = open_write_tracker();
}

WriteTracker::~WriteTracker() {
  if (uffd_ >= 0) close(uffd_);
  close(pagemap_);
}

bool WriteTracker::add(std::byte* begin, std::size_t bytes) noexcept {
  return uffd_ >= 0 && register_writes(uffd_, begin, bytes) == 0;
}

void WriteTracker::remove(std::byte* begin, std::size_t bytes) noexcept {
  assert(uffd_ >= 0);
  unregister_range(uffd_, begin, bytes);
}

}  // namespace vellum::region
