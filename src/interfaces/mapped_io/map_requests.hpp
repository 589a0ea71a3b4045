// interfaces/mapped_io/map_requests.hpp: which requests for memory of a file are refused, and the
// meaning of advice for it, in libvellum-run.so and libvellum-cards.so. Programs rely on the
// kernel's answers, so every accepted request is fulfilled.
//
// All functions return 0, or the errno value that the kernel gives.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace vellum::mapped_io {

// mmap(2) of a file, by its flags. MAP_SHARED_VALIDATE refuses unknown flags. MAP_SYNC is refused:
// a store to its memory would be durable without a call.
int refuse_map_flags(int flags) noexcept;

// mremap(2) of memory that cannot move.
int refuse_remap(const void* address, std::size_t old_bytes, std::size_t new_bytes,
                 int flags) noexcept;

// msync(2), by its address and flags.
int refuse_msync(const void* address, int flags) noexcept;

// madvise(2) and process_madvise(2) of a shared mapping of a file. In the kernel's mapping, advice
// that drops pages only evicts them; here, memory is the only copy.
enum class Advice {
  pass,     // passed to the kernel: no byte changes
  nothing,  // succeeds, without an effect
  refuse,   // EINVAL: not for a shared mapping of a file, or unknown
  hole,     // MADV_REMOVE: EOPNOTSUPP, as of a file system without holes
};
Advice advice_for_file(int advice) noexcept;

// Runs `pass()` for Advice::pass, and returns its result; otherwise 0, or -1 and errno.
int give_advice(const void* address, int advice, int (*pass)(void*, std::size_t, int),
                std::size_t length_bytes) noexcept;

// process_madvise(2) of this process, by `one()`: returns the advised bytes, or -1 and errno. (For
// other processes the kernel refuses advice that drops pages.)
ssize_t advise_pieces(const iovec* pieces, std::size_t count, int advice,
                      int (*one)(void*, std::size_t, int)) noexcept;

}  // namespace vellum::mapped_io
