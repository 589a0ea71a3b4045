// syscall(2): a call by number has the same effect as the function. Calls that are not listed here
// do not concern the files of a run. (System calls that bypass the C library are not intercepted:
// see program_kind.hpp.)
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error_number.hpp"
#include "run/files/files.hpp"
#include "run/files/old_version.hpp"
#include "run/process/descriptor_limit.hpp"
#include "run/process/real.hpp"
#include "run/run/exec_environment.hpp"

extern "C" int pidfd_getfd(int process, int fd, unsigned flags) noexcept;  // <sys/pidfd.h> is C's
extern "C" ssize_t process_madvise(int process, const iovec* pieces, size_t count, int advice,
                                   unsigned flags) noexcept;  // glibc 2.36

namespace vellum::preload {
namespace {

using Arguments = std::array<long, 6>;

// Architectures that are newer than openat(2), such as arm64, lack the older calls: SYS_open is
// tested for all of them.

template <typename T>
T at(const Arguments& a, std::size_t i) noexcept {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<T>(a[i]);  // NOLINT(performance-no-int-to-ptr): as the kernel has it
  else
    return static_cast<T>(a[i]);
}

// Calls a function with as many arguments as it takes.
template <typename R, typename... A, std::size_t... I>
long call(R (*function)(A...), const Arguments& a, std::index_sequence<I...>) {
  const R result = function(at<A>(a, I)...);
  if constexpr (std::is_pointer_v<R>)
    return reinterpret_cast<long>(result);
  else
    return static_cast<long>(result);
}
template <typename R, typename... A>
long call(R (*function)(A...), const Arguments& a) {
  return call(function, a, std::index_sequence_for<A...>{});
}
template <typename R, typename... A>
long call(R (*function)(A...) noexcept, const Arguments& a) {
  return call(static_cast<R (*)(A...)>(function), a, std::index_sequence_for<A...>{});
}

// Without `resolve`, openat2(2) is openat(2). With it, the kernel has to check the path to the
// file. It does not truncate the file; neither does open_file() (open_calls.cpp).
long open_by_how(const Arguments& a) {
  const auto* const given = at<const open_how*>(a, 2);
  const auto in_kernel = [&](const open_how* how) {
    return VELLUM_REAL(syscall)(SYS_openat2, a[0], a[1], how, a[3]);
  };
  Files& files = Files::instance();
  const auto* const path = at<const char*>(a, 1);
  if (given == nullptr || path == nullptr || at<std::size_t>(a, 3) != sizeof *given)
    return in_kernel(given);
  const int directory = at<int>(a, 0), flags = static_cast<int>(given->flags);
  const bool of_version = SeenPath(directory, path, (flags & O_NOFOLLOW) == 0).is_version();
  if (given->resolve == 0 || of_version)
    return openat(directory, path, flags, static_cast<mode_t>(given->mode));
  if (!files.active() || (flags & O_PATH) != 0) return in_kernel(given);
  open_how how = *given;
  const bool cut = (flags & O_TRUNC) != 0 && FileNames::is_target(directory, path);
  if (cut) how.flags &= ~static_cast<decltype(how.flags)>(O_TRUNC);
  const long fd = in_kernel(&how);
  return fd < 0 ? fd : files.opened(static_cast<int>(fd), path, flags, cut);
}

std::optional<long> transfer(long number, const Arguments& a) {
  switch (number) {
    case SYS_read:
      return call(read, a);
    case SYS_write:
      return call(write, a);
    case SYS_pread64:
      return call(pread64, a);
    case SYS_pwrite64:
      return call(pwrite64, a);
    case SYS_readv:
      return call(readv, a);
    case SYS_writev:
      return call(writev, a);
    // The offset's upper half has a separate register, which is ignored on 64-bit machines.
    case SYS_preadv:
      return call(preadv64, a);
    case SYS_pwritev:
      return call(pwritev64, a);
    case SYS_preadv2:
      return preadv64v2(at<int>(a, 0), at<const iovec*>(a, 1), at<int>(a, 2), a[3], at<int>(a, 5));
    case SYS_pwritev2:
      return pwritev64v2(at<int>(a, 0), at<const iovec*>(a, 1), at<int>(a, 2), a[3], at<int>(a, 5));
    case SYS_recvmsg:
      return call(recvmsg, a);
    case SYS_recvmmsg:
      return call(recvmmsg, a);
    case SYS_sendfile:
      return call(sendfile64, a);
    case SYS_copy_file_range:
      return call(copy_file_range, a);
    case SYS_splice:
      return call(splice, a);
    default:
      return std::nullopt;
  }
}

std::optional<long> descriptor(long number, const Arguments& a) {
  switch (number) {
#ifdef SYS_open
    case SYS_open:
      return open(at<const char*>(a, 0), at<int>(a, 1), at<mode_t>(a, 2));
#endif
    case SYS_openat:
      return openat(at<int>(a, 0), at<const char*>(a, 1), at<int>(a, 2), at<mode_t>(a, 3));
    case SYS_openat2:
      return open_by_how(a);
#ifdef SYS_open
    case SYS_creat:
      return call(creat, a);
#endif
    case SYS_open_by_handle_at:
      return call(open_by_handle_at, a);
    case SYS_pidfd_getfd:
      return call(pidfd_getfd, a);
    case SYS_close:
      return call(close, a);
    case SYS_close_range:
      return call(close_range, a);
    case SYS_dup:
      return call(dup, a);
#ifdef SYS_open
    case SYS_dup2:
      return call(dup2, a);
#endif
    case SYS_dup3:
      return call(dup3, a);
    case SYS_fcntl:
      return fcntl(at<int>(a, 0), at<int>(a, 1), a[2]);
    case SYS_lseek:
      return call(lseek64, a);
    case SYS_flock:
      return call(flock, a);
    case SYS_ioctl:
      return ioctl(at<int>(a, 0), at<unsigned long>(a, 1), a[2]);
    default:
      return std::nullopt;
  }
}

std::optional<long> size_or_flush(long number, const Arguments& a) {
  switch (number) {
    case SYS_fsync:
      return call(fsync, a);
    case SYS_fdatasync:
      return call(fdatasync, a);
    case SYS_sync_file_range:
      return call(sync_file_range, a);
    case SYS_syncfs:
      return call(syncfs, a);
    case SYS_sync:
      return sync(), 0;
    case SYS_ftruncate:
      return call(ftruncate64, a);
    case SYS_truncate:
      return call(truncate64, a);
    case SYS_fallocate:
      return call(fallocate64, a);
    case SYS_fstat:
      return call(fstat, a);
#ifdef SYS_open
    case SYS_stat:
      return call(stat, a);
    case SYS_lstat:
      return call(lstat, a);
#endif
    case SYS_newfstatat:
      return call(fstatat, a);
    case SYS_statx:
      return call(statx, a);
    default:
      return std::nullopt;
  }
}

std::optional<long> memory(long number, const Arguments& a) {
  switch (number) {
    case SYS_mmap:
      return call(mmap64, a);
    case SYS_munmap:
      return call(munmap, a);
    case SYS_mremap:
      return reinterpret_cast<long>(mremap(at<void*>(a, 0), at<std::size_t>(a, 1),
                                           at<std::size_t>(a, 2), at<int>(a, 3), at<void*>(a, 4)));
    case SYS_mprotect:
      return call(mprotect, a);
    case SYS_pkey_mprotect:
      return call(pkey_mprotect, a);
    case SYS_remap_file_pages:
      return call(remap_file_pages, a);
    case SYS_msync:
      return call(msync, a);
    case SYS_madvise:
      return call(madvise, a);
    case SYS_process_madvise:
      return call(process_madvise, a);
    default:
      return std::nullopt;
  }
}

std::optional<long> times(long number, const Arguments& a) {
  switch (number) {
#ifdef SYS_open
    case SYS_utime:
      return call(utime, a);
    case SYS_utimes:
      return call(utimes, a);
    case SYS_futimesat:
      return call(futimesat, a);
#endif
    case SYS_utimensat:  // without a path, it is for the descriptor
      return a[1] != 0 ? call(utimensat, a) : call(futimens, {a[0], a[2]});
    default:
      return std::nullopt;
  }
}

std::optional<long> name_or_program(long number, const Arguments& a) {
  switch (number) {
#ifdef SYS_open
    case SYS_unlink:
      return call(unlink, a);
#endif
    case SYS_unlinkat:
      return call(unlinkat, a);
#ifdef SYS_open
    case SYS_rename:
      return call(rename, a);
#endif
    case SYS_renameat:
      return call(renameat, a);
    case SYS_renameat2:
      return call(renameat2, a);
#ifdef SYS_open
    case SYS_link:
      return call(link, a);
#endif
    case SYS_linkat:
      return call(linkat, a);
    case SYS_execve:
      return call(execve, a);
    case SYS_execveat:
      return call(execveat, a);
#ifdef SYS_fork
    case SYS_fork:  // in the kernel, without handlers
      return Files::instance().settle(), std::nullopt;
#endif
    case SYS_exit_group:
      _exit(at<int>(a, 0));
    default:
      return std::nullopt;
  }
}

std::optional<long> inode(long number, const Arguments& a) {
  switch (number) {
#ifdef SYS_open
    case SYS_access:
      return call(access, a);
#endif
    // Has no flags, unlike SYS_faccessat2: the kernel ignores that argument.
    case SYS_faccessat:
      return faccessat(at<int>(a, 0), at<const char*>(a, 1), at<int>(a, 2), 0);
    case SYS_faccessat2:
      return call(faccessat, a);
#ifdef SYS_open
    case SYS_chmod:
      return call(chmod, a);
#endif
    case SYS_fchmodat:
      return fchmodat(at<int>(a, 0), at<const char*>(a, 1), at<mode_t>(a, 2), 0);
#ifdef SYS_fchmodat2
    case SYS_fchmodat2:
      return call(fchmodat, a);
#endif
#ifdef SYS_open
    case SYS_chown:
      return call(chown, a);
    case SYS_lchown:
      return call(lchown, a);
#endif
    case SYS_fchownat:
      return call(fchownat, a);
    case SYS_setxattr:
      return call(setxattr, a);
    case SYS_lsetxattr:
      return call(lsetxattr, a);
    case SYS_removexattr:
      return call(removexattr, a);
    case SYS_lremovexattr:
      return call(lremovexattr, a);
    default:
      return std::nullopt;
  }
}

std::optional<long> other_name(long number, const Arguments& a) {
  switch (number) {
#ifdef SYS_open
    case SYS_symlink:
      return call(symlink, a);
#endif
    case SYS_symlinkat:
      return call(symlinkat, a);
#ifdef SYS_open
    case SYS_mknod:
      return call(mknod, a);
#endif
    case SYS_mknodat:
      return call(mknodat, a);
#ifdef SYS_open
    case SYS_mkdir:
      return call(mkdir, a);
#endif
    case SYS_mkdirat:
      return call(mkdirat, a);
    default:
      return std::nullopt;
  }
}

// io_uring(7) and Linux AIO would bypass this library, including flushes. They are refused as by a
// container's seccomp rules, for which programs have a fallback.
std::optional<long> refused(long number, const Arguments&) {
  switch (number) {
    case SYS_io_uring_setup:
    case SYS_io_setup:
      return base::as_result(EPERM);
    default:
      return std::nullopt;
  }
}

// A library after this one may call mmap(2) by number, as tcmalloc does. If this happens inside a
// call by number, it is passed to the kernel.
thread_local bool converting = false;

std::optional<long> as_function(long number, const Arguments& a) {
  // Allocators make their first calls by number, so that they are not intercepted.
  if (converting || ReentrancyGuard::is() || !environment_is_kept()) return std::nullopt;
  struct Converting {
    Converting() noexcept { converting = true; }
    ~Converting() { converting = false; }
  } const scope;
  for (const auto family : {transfer, descriptor, size_or_flush, memory, times, name_or_program,
                            inode, other_name, refused})
    if (const auto result = family(number, a)) return result;
  return std::nullopt;
}

}  // namespace
}  // namespace vellum::preload

// The entries of libaio and liburing, which make these system calls themselves.
VELLUM_PRELOAD int io_setup(int, void*) { return -EPERM; }
VELLUM_PRELOAD int io_uring_queue_init(unsigned, void*, unsigned) { return -EPERM; }
VELLUM_PRELOAD int io_uring_queue_init_params(unsigned, void*, void*) { return -EPERM; }
VELLUM_PRELOAD int io_uring_queue_init_mem(unsigned, void*, void*, void*, size_t) { return -EPERM; }

VELLUM_PRELOAD long syscall(long number, ...) noexcept {
  va_list arguments;
  va_start(arguments, number);
  vellum::preload::Arguments a;
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  if (const auto result = vellum::preload::as_function(number, a)) return *result;
  const long result = VELLUM_REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (number != SYS_userfaultfd || !vellum::preload::ReentrancyGuard::is()) return result;
  const int own = vellum::preload::moved_to_high_number(static_cast<int>(result));
  vellum::preload::Files::instance().own_descriptors().note(own, true);
  return own;
}
