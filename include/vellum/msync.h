/* vellum/msync.h: mmap(2) and msync(2) of a plain file, failure-atomic.
 *
 *   void* p = vellum_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
 *   strcpy(p, "both or none"); ...
 *   vellum_msync(p, bytes, MS_SYNC);        // all stores since the last one, or nothing
 *   vellum_munmap(p, bytes);
 *
 * A program compiled with vellum-clang or vellum-clang++ need not call these functions: its mmap(),
 * msync(), munmap(), mremap(), ftruncate(), fsync() and fdatasync() do the same, for the files that
 * the environment names:
 *
 *   VELLUM_ATOMIC_FILES=PATTERN[:PATTERN...]
 *       fnmatch(3) patterns. One with a slash is compared with the file's whole path, one without
 *       with its name.
 *   VELLUM_ATOMIC_TRACKER=cards_and_pages
 *       How stores are found (vellum/atomic_file.hpp): pages, cards or cards_and_pages. The
 *       default is cards_and_pages: code that was not compiled with vellum-clang loses nothing.
 *       cards is the fast one; run the program's tests first, with VELLUM_VERIFY_CARDS=1.
 *   VELLUM_VERIFY_CARDS=1
 *       Fails an msync() that would miss a store, and prints its address on standard error.
 *
 * Differences from the kernel's functions:
 *  - The file is written only by msync() and equivalent calls, by munmap() of its last mapping, and
 *    by exit(3). Other processes that read it see no store before that, and a killed process loses
 *    its stores since the last msync(): that is the purpose.
 *  - msync() of any range of a file commits all of the file. MS_ASYNC is MS_SYNC.
 *  - All mappings of one file in a process are parts of one mapping: two mappings share addresses,
 *    all can be written, and mprotect(2) of one affects the other. MAP_FIXED is refused (ENOTSUP),
 *    an address hint is ignored.
 *  - The file is opened once more, and closed with its last mapping, which ends the process's
 *    fcntl(2) record locks on it, as every close does. A file that is renamed while it is mapped
 *    keeps its journal under the old name.
 *  - No call for such a file may be made from a signal handler; for other files nothing changes.
 *  - One process at a time may have a file mapped in this way (EBUSY). A child of fork() has a copy
 *    of its own, and its msync() is refused (ENOTSUP).
 *  - In programs compiled by vellum-clang, every call that makes a file durable acts as msync():
 *    fsync(2), fdatasync(2), aio_fsync(3), sync_file_range(2) that waits, sync(2) and syncfs(2),
 *    writes with O_SYNC, O_DSYNC, RWF_SYNC or RWF_DSYNC. madvise(2) drops nothing. MAP_SYNC is
 *    refused.
 *  - In programs compiled by vellum-clang, read(2), write(2) and equivalent calls by descriptor use
 *    the memory, and are thus as coherent as the kernel's. In other programs, and through stdio,
 *    they use the file, not the mapping.
 *
 * After a crash the next vellum_mmap() of the file recovers it; for programs that do not use
 * Vellum, `vellum recover FILE` does.
 *
 * Threads: as the functions that they replace. Errors: -1 (MAP_FAILED) and errno; a line on
 * standard error gives details.
 */
#ifndef VELLUM_MSYNC_H
#define VELLUM_MSYNC_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maps a regular file that is open for reading and writing, with MAP_SHARED. EINVAL: another type
 * of mapping, no length, or an offset that is not a multiple of 4096. ENODEV: not a regular file.
 * EACCES: not open for reading and writing; a file that is mapped already may be mapped again by a
 * descriptor that only reads. Stores are found by pages, unless VELLUM_ATOMIC_TRACKER is set. */
void* vellum_mmap(void* address, size_t length_bytes, int protection, int flags, int fd,
                  off_t offset_bytes);
/* EINVAL: the range was not mapped by vellum_mmap(). */
int vellum_msync(void* address, size_t length_bytes, int flags);
int vellum_munmap(void* address, size_t length_bytes);
/* Makes the mapping longer or shorter in place. */
void* vellum_mremap(void* address, size_t old_bytes, size_t new_bytes, int flags);
/* For a file mapped in this way, or any other. */
int vellum_ftruncate(int fd, off_t size_bytes);

#ifdef __cplusplus
}
#endif

#endif /* VELLUM_MSYNC_H */
