// base/scratch_file.hpp: a file without a name, for what memory has no room for.
//
// Nothing in it outlives the process, whatever kills that, so nothing is ever synced. All calls but
// the constructor are for the fault handler, too: no exception, no allocation, errno preserved;
// they return 0 or an errno.
//
// Threads: any number; positioned I/O only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vellum::base {

class ScratchFile {
 public:
  // In a directory, which must exist. Throws as base/file.hpp says.
  explicit ScratchFile(const std::string& directory);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  // ENODATA when the file ends early.
  int read(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept;
  int write(std::span<const std::byte> bytes, std::uint64_t offset_bytes) noexcept;
  // Gives a range back to the file system. Where it cannot take it, the bytes stay: no harm.
  void punch(std::uint64_t offset_bytes, std::uint64_t length_bytes) noexcept;
  std::uint64_t allocated_bytes() const noexcept;

 private:
  int fd_ = -1;
};

}  // namespace vellum::base
