// interfaces/atomic_file/medium.hpp: a file that barriers make durable: on a disk by system calls, in
// persistent memory by stores and fences. This is the seam of this layer: a test's medium decides
// which lines a crash leaves.
//
// Every medium guarantees that writes before a completed barrier() are durable. A crash leaves any
// part of later writes; checksums tell.
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
  // Within the size.
  virtual void write(std::span<const std::byte> bytes, std::uint64_t offset_bytes) = 0;
  // Throws Errc::io. Writes since the last barrier may then be durable or not, and a second
  // barrier() would not tell.
  virtual void barrier() = 0;
  // Extends it by zeros, or cuts it. Durable after the next barrier().
  virtual void resize(std::uint64_t size_bytes) = 0;
  // Whether small writes at random places cost no more than their bytes.
  virtual bool byte_addressable() const noexcept = 0;
  // The whole file in memory, for reading; empty where that is not possible.
  virtual std::span<const std::byte> mapped() const noexcept { return {}; }
};

enum class Space {
  sparse,   // new bytes are a hole
  written,  // new bytes are zeros on the disk: a barrier after a write into them flushes
            // no metadata
};

// Uses system calls. The caller keeps the File, which must outlive this.
std::unique_ptr<MediumFile> disk_file(base::File& file, Space space);
// Maps the whole file when it lies in persistent memory (libpmem(7)); nullptr when it does not.
// Allocates space for all of it, since a store into a hole on a full device raises SIGBUS. The
// caller keeps the File, which must outlive this. With `populate`, takes the page faults now.
std::unique_ptr<MediumFile> pmem_file(base::File& file, bool populate);

}  // namespace vellum::atomic_file
