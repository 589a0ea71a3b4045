// interfaces/mapped_io/map_requests.hpp: which requests for memory of a file are refused, and what advice for it
// means, in libvellum-run.so and libvellum-cards.so. Programs decide by the kernel's answers, so what
// is granted here is kept.
//
// All return 0, or the errno value that the kernel gives.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace vellum::mapped_io {

// mmap(2) of a file, by its flags. MAP_SHARED_VALIDATE refuses what is not known. MAP_SYNC is
// refused: a store to such memory would be durable without a call.
int refuse_map_flags(int flags) noexcept;

// mremap(2) of memory that cannot move.
int refuse_remap(const void* address, std::size_t old_bytes, std::size_t new_bytes,
                 int flags) noexcept;

// msync(2), by its address and flags.
int refuse_msync(const void* address, int flags) noexcept;

// madvise(2) and process_madvise(2) of a shared mapping of a file. There, what drops pages only lets
// them leave memory; here, memory is the only copy.
enum class Advice {
  pass,     // the kernel may have it: no byte changes
  nothing,  // succeeds, and nothing is done
  refuse,   // EINVAL: not for a shared mapping of a file, or unknown
  hole,     // MADV_REMOVE: EOPNOTSUPP, as of a file system without holes
};
Advice advice_for_file(int advice) noexcept;

// Runs `pass()` where the kernel may have the advice, and gives its result; else 0, or -1 and errno.
int give_advice(const void* address, int advice, int (*pass)(void*, std::size_t, int),
                std::size_t length_bytes) noexcept;

// process_madvise(2) of this process, by `one()`: returns the bytes that were advised, or -1 and errno.
// (The kernel takes what drops pages for no other process.)
ssize_t advise_pieces(const iovec* pieces, std::size_t count, int advice,
                      int (*one)(void*, std::size_t, int)) noexcept;

}  // namespace vellum::mapped_io
