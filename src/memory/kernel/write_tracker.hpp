// memory/kernel/write_tracker.hpp: the two descriptors that find writes in private file mappings.
// One of each serves all mappings of a process, since thousands of files may be mapped.
#pragma once

#include <cstddef>
#include <memory>

namespace vellum::region {

class WriteTracker {
 public:
  // The process's own tracker, which lives while it is in use. Throws Errc::io without
  // /proc/self/pagemap.
  static std::shared_ptr<WriteTracker> of_process();
  WriteTracker();
  ~WriteTracker();
  WriteTracker(const WriteTracker&) = delete;
  WriteTracker& operator=(const WriteTracker&) = delete;

  int pagemap() const noexcept { return pagemap_; }
  // Asynchronous write protection of a private file mapping. False: this kernel lacks it or does
  // not permit it.
  bool add(std::byte* begin, std::size_t bytes) noexcept;
  // REQUIRES: add() has succeeded, and the mapping still exists.
  void remove(std::byte* begin, std::size_t bytes) noexcept;

 private:
  int pagemap_ = -1;
  int uffd_ = -1;  // -1: not available
};

}  // namespace vellum::region
