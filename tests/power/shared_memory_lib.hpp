// A file without a name in memory, and a shared mapping of all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vellum::power {

// Throws std::system_error for the last error of the operating system.
[[noreturn]] void fail_with_errno(const std::string& what);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }
  int get() const noexcept { return fd_; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

// Children inherit it.
Descriptor make_memory_file(const char* name, std::uint64_t size_bytes);
// The path by which another program, started by this one, opens it.
std::string path_of(const Descriptor& file);

class MappedMemory {
 public:
  explicit MappedMemory(const Descriptor& file);         // of the file's current size
  explicit MappedMemory(std::uint64_t anonymous_bytes);  // zeros, of this process only
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&&) = delete;
  ~MappedMemory();
  std::span<std::byte> bytes() const noexcept { return {data_, size_bytes_}; }

 private:
  MappedMemory(int fd, int flags, std::uint64_t size_bytes);
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace vellum::power
