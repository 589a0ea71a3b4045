// bench/fams/mapping.hpp: files and memory at fixed addresses, for several peers.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/report.hpp"

namespace fams {

// A new file of that many zeros, all of them written: overwriting them changes no metadata. The
// page cache has it in folios as large as the writes, and ext4 writes back whole folios.
inline void make_dense_file(const std::string& path, std::uint64_t size_bytes,
                            std::size_t piece_bytes = 1 << 20) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  bench::check(file >= 0, path.c_str());
  const std::vector<char> zeros(piece_bytes);
  for (std::uint64_t at = 0; at < size_bytes;) {
    const std::size_t length = std::min<std::uint64_t>(zeros.size(), size_bytes - at);
    bench::check(::write(file, zeros.data(), length) == static_cast<ssize_t>(length), path.c_str());
    at += length;
  }
  bench::check(::fsync(file) == 0, path.c_str());
  ::close(file);
}

class Mapping {
 public:
  // file -1: anonymous memory.
  Mapping(std::uint64_t address, std::uint64_t size_bytes, int file) : size_bytes_(size_bytes) {
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    address_ = ::mmap(reinterpret_cast<void*>(address), size_bytes, PROT_READ | PROT_WRITE,
                      flags | MAP_FIXED_NOREPLACE, file, 0);
    bench::check(address_ != MAP_FAILED, "mmap");
  }
  ~Mapping() { ::munmap(address_, size_bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  void* data() const { return address_; }

 private:
  void* address_;
  std::uint64_t size_bytes_;
};

}  // namespace fams
