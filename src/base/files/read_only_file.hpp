// base/files/read_only_file.hpp: files for reading only, among them those that are held open without
// a descriptor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "vellum/error.hpp"

namespace vellum::base {

// Errc::io, naming the file, from every call that would write or lock it.
class ReadOnlyFile : public File {
 public:
  void pwrite(std::span<const std::byte>, std::uint64_t) final { refuse(); }
  void sync_data() final { refuse(); }
  void truncate(std::uint64_t) final { refuse(); }
  void allocate(std::uint64_t, std::uint64_t) final { refuse(); }
  void punch(std::uint64_t, std::uint64_t) final { refuse(); }
  bool try_lock_byte(std::uint64_t) final { refuse(); }
  bool try_lock_exclusive() final { refuse(); }
  bool try_lock_shared() final { refuse(); }

 private:
  [[noreturn]] void refuse() const { fail(Errc::io, "{}: open read-only", path()); }
};

// Returns a read-only file that holds `file` without a descriptor: a process has few of these (often
// 1,024) and many mappings (65,530). Like a descriptor, a mapping holds a file, even when its name is
// removed or belongs to another file. It is read by process_vm_readv(2), never by a load: an
// unreadable or truncated byte then gives an error number, as from pread(2), and not a SIGBUS.
//
// It may grow up to `room_bytes`; reads past that return ENODATA. Returns `file` itself if this is
// impossible (no mapping available, a test's file, a kernel that forbids process_vm_readv(2)). While
// bytes of it are pinned, the file is also open by its name. REQUIRES: `fs` outlives it.
std::unique_ptr<File> hold_by_mapping(Fs& fs, std::unique_ptr<File> file, std::uint64_t room_bytes);

// The number of descriptors that one part of the library may keep open: a share of the process's
// limit (RLIMIT_NOFILE).
std::size_t descriptor_share() noexcept;

}  // namespace vellum::base
