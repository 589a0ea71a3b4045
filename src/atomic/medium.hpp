// atomic/medium.hpp: a file that is made durable by barriers: on a disk by system calls, in
// persistent memory by stores and fences. The seam of this layer: a test's medium decides which
// lines a crash leaves.
//
// What holds of every medium: what was written before a barrier() that returned is durable. Of what
// was written since, a crash leaves any part: checksums tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file.hpp"

namespace vellum::atomic {

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
  // Throws Errc::io: what was written since the last one may be durable or not, and a second
  // barrier() would not tell.
  virtual void barrier() = 0;
  // Makes it larger, by zeros, or cuts it. Durable after the next barrier().
  virtual void resize(std::uint64_t size_bytes) = 0;
  // Whether small writes at random places cost no more than their bytes.
  virtual bool byte_addressable() const noexcept = 0;
  // All of it in memory, for who may read it so; empty otherwise.
  virtual std::span<const std::byte> mapped() const noexcept { return {}; }
};

enum class Space {
  sparse,   // new bytes are a hole
  written,  // new bytes are zeros on the disk, so that a barrier behind a write into them flushes
            // no metadata
};

// By system calls. The File stays the caller's, and must outlive this.
std::unique_ptr<MediumFile> disk_file(base::File& file, Space space);
// Maps the file, all of it, when it lies in persistent memory (libpmem(7)): nullptr when it does
// not. Space is allocated for all of it, as a store into a hole on a full device is a SIGBUS. The
// File stays the caller's, and must outlive this. With `populate`, its page faults are taken now.
std::unique_ptr<MediumFile> pmem_file(base::File& file, bool populate);

}  // namespace vellum::atomic
