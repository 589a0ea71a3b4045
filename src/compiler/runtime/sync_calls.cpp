// Calls that make files durable (interfaces/mapped_io/durable.hpp), except msync(2). Each is also
// passed to the kernel, which flushes writes that bypassed the mapping: from stdio, or from
// uninstrumented code.
#include <aio.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error_number.hpp"
#include "compiler/runtime/mapped_calls.hpp"
#include "compiler/runtime/marked.hpp"
#include "interfaces/atomic_file/mapped_files.hpp"
#include "interfaces/mapped_io/durable.hpp"

using vellum::atomic_file::MappedFiles;
using vellum::base::as_result;
using vellum::msync::any_atomic_files;
using vellum::msync::is_mapped;

namespace {

// False, and errno: the file is mapped atomically and its commit has failed.
bool commit(int fd) {
  return !is_mapped(fd) || as_result(MappedFiles::instance().sync_file(fd)) == 0;
}

// For files on other file systems than the given one this is harmless.
void commit_all() {
  if (any_atomic_files()) MappedFiles::instance().sync_all();
}

}  // namespace

VELLUM_WRAP(int, fsync)(int fd) { return commit(fd) ? fsync(fd) : -1; }
VELLUM_WRAP(int, fdatasync)(int fd) { return commit(fd) ? fdatasync(fd) : -1; }
VELLUM_WRAP(int, syncfs)(int fd) {
  commit_all();
  return syncfs(fd);
}
VELLUM_WRAP(void, sync)(void) {
  commit_all();
  sync();
}
VELLUM_WRAP(int, sync_file_range)(int fd, off64_t offset, off64_t bytes, unsigned flags) {
  const bool valid = vellum::mapped_io::refuse_sync_range(offset, bytes, flags) == 0;
  if (valid && vellum::mapped_io::range_waits(flags) && !commit(fd)) return -1;
  return sync_file_range(fd, offset, bytes, flags);
}
// The job then completes as for a plain file.
VELLUM_WRAP(int, aio_fsync)(int how, aiocb* job) {
  return job == nullptr || commit(job->aio_fildes) ? aio_fsync(how, job) : -1;
}
VELLUM_WRAP(int, aio_fsync64)(int how, aiocb64* job) {
  return job == nullptr || commit(job->aio_fildes) ? aio_fsync64(how, job) : -1;
}
