// base/files/scratch_file.hpp: an unnamed file for data that does not fit into memory.
//
// Its content never outlives the process, hence it is never synced. The fault handler may use every
// call except the constructor: no exception, no allocation, errno preserved. They return 0 or an
// errno.
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
  // In a directory, which must exist. Throws Errc::not_found, read_only, no_space or io.
  explicit ScratchFile(const std::string& directory);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  // ENODATA when the file ends early.
  int read(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept;
  int write(std::span<const std::byte> bytes, std::uint64_t offset_bytes) noexcept;
  // Starts read-ahead of the range, without waiting.
  void will_need(std::uint64_t offset_bytes, std::uint64_t length_bytes) const noexcept;
  // Frees the space of a range. If that fails, the bytes remain, which is harmless.
  void punch(std::uint64_t offset_bytes, std::uint64_t length_bytes) noexcept;
  std::uint64_t allocated_bytes() const noexcept;

 private:
  int fd_ = -1;
};

}  // namespace vellum::base
