// interfaces/atomic_file/medium.hpp: a file that barriers make durable: on a disk by system calls,
// in persistent memory by stores and fences. This is the seam of this layer: a test's medium
// decides which lines a crash leaves.
//
// Every medium guarantees that writes before a completed barrier() are durable. After a crash any
// part of later writes may exist; checksums detect it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/files/file.hpp"

namespace vellum::atomic_file {

class MediumFile {
 public:
  virtual ~MediumFile() = default;
  MediumFile() = default;
  MediumFile(const MediumFile&) = delete;
  MediumFile& operator=(const MediumFile&) = delete;

  virtual const std::string& path() const noexcept = 0;
  virtual std::uint64_t size_bytes() const = 0;
  virtual void read(std::span<std::byte> out, std::uint64_t offset_bytes) const = 0;
  // REQUIRES: within the size, as for read().
  virtual void write(std::span<const std::byte> bytes, std::uint64_t offset_bytes) = 0;
  // Throws Errc::io. Writes since the last barrier may then be durable or not, and a second
  // barrier() would not report it.
  virtual void barrier() = 0;
  // Extends it by zeros, or cuts it. Durable after the next barrier().
  virtual void resize(std::uint64_t size_bytes) = 0;
  // Whether small writes at random places cost no more than their bytes.
  virtual bool byte_addressable() const noexcept = 0;
  // The whole file in memory, for reading; empty if the medium has no mapping.
  virtual std::span<const std::byte> mapped() const noexcept { return {}; }
};

enum class Space {
  sparse,   // new bytes are a hole
  written,  // new bytes are zeros on the disk: a barrier after a write into them flushes
            // no metadata
};

// Uses system calls. REQUIRES: `file` outlives the result.
std::unique_ptr<MediumFile> disk_file(base::File& file, Space space);
// Maps the whole file when it is in persistent memory (libpmem(7)); nullptr when it is not.
// Allocates space for all of it, since a store into a hole on a full device raises SIGBUS.
// REQUIRES: `file` outlives the result. With `populate`, the page faults happen now.
std::unique_ptr<MediumFile> pmem_file(base::File& file, bool populate);

}  // namespace vellum::atomic_file
