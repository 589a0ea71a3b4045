/* A program that depends on the kernel's results, and makes its file durable with one of the
 * possible calls: run by itself, under `vellum run`, and compiled with vellum-clang.
 *
 *   kernels_answers refuses FILE             requests that a plain file does not support are refused
 *   kernels_answers advice FILE              no advice discards a stored byte
 *   kernels_answers durable FILE KIND MAP    writes "acknowledged" at 8192, makes it durable, and is
 *                                            killed. MAP: none, read or write, the file is mapped */
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "require.h"

enum { kPage = 4096, kBytes = 16 * kPage };

static int refused(void* at, int error) { return at == MAP_FAILED && errno == error; }

static void refuses(int fd) {
  const int both = PROT_READ | PROT_WRITE;
  REQUIRE(refused(mmap(NULL, kBytes, both, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0), EOPNOTSUPP));
  REQUIRE(refused(mmap(NULL, kBytes, both, MAP_SHARED_VALIDATE | 1 << 24, fd, 0), EOPNOTSUPP));
  REQUIRE(refused(mmap(NULL, kBytes, both, MAP_SHARED | MAP_HUGETLB, fd, 0), EINVAL));
  char* const at = mmap(NULL, kBytes, both, MAP_SHARED | MAP_POPULATE, fd, 0);
  REQUIRE(at != MAP_FAILED);
  REQUIRE(
      refused((void*)syscall(SYS_mmap, NULL, kBytes, both, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0),
              EOPNOTSUPP));
  REQUIRE(msync(at, kBytes, MS_SYNC | MS_ASYNC) == -1 && errno == EINVAL);
  REQUIRE(msync(at, kBytes, 64) == -1 && errno == EINVAL);
  REQUIRE(msync(at + 1, kPage, MS_SYNC) == -1 && errno == EINVAL);
  REQUIRE(msync(at, kBytes, MS_INVALIDATE) == 0 && msync(at, kBytes, MS_SYNC) == 0);
  REQUIRE(refused(mremap(at, kBytes, kBytes, 64), EINVAL));
  REQUIRE(refused(mremap(at, kBytes, kBytes, MREMAP_FIXED, at + 2 * kBytes), EINVAL));
  REQUIRE(refused(mremap(at + 1, kPage, kPage, MREMAP_MAYMOVE), EINVAL));
  REQUIRE(sync_file_range(fd, 0, 0, 64) == -1 && errno == EINVAL);
  REQUIRE(sync_file_range(fd, -1, 0, 7) == -1 && errno == EINVAL);
}

static void advice(int fd) {
  char* const at = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(at != MAP_FAILED);
  static const struct {
    int number, error;
  } kinds[] = {{MADV_DONTNEED, 0},    {MADV_COLD, 0},
               {MADV_PAGEOUT, 0},     {24, 0},
               {MADV_FREE, EINVAL},   {MADV_WIPEONFORK, EINVAL},
               {MADV_DONTFORK, 0},    {MADV_DOFORK, 0},
               {MADV_SEQUENTIAL, 0},  {MADV_WILLNEED, 0},
               {9999, EINVAL},        {MADV_DONTDUMP, 0},
               {MADV_KEEPONFORK, -1}, {MADV_POPULATE_WRITE, 0}};
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    memset(at, 'a' + (int)i, kBytes);
    errno = 0;
    const int result = madvise(at + kPage, 2 * kPage, kinds[i].number);
    if (kinds[i].error >= 0 && (result == 0 ? 0 : errno) != kinds[i].error) {
      fprintf(stderr, "advice %d: %s\n", kinds[i].number, strerror(errno));
      exit(1);
    }
    madvise(at, kBytes, MADV_PAGEOUT); /* discards pages that MADV_FREE has released */
    for (int page = 0; page < 16; ++page) REQUIRE(at[page * kPage + 100] == 'a' + (int)i);
    char found = 0;
    REQUIRE(pread(fd, &found, 1, kPage + 100) == 1 && found == 'a' + (int)i);
  }
  REQUIRE(madvise(at + 1, kPage, MADV_DONTNEED) == -1 && errno == EINVAL);
#if __GLIBC_PREREQ(2, 36)
  /* Linux 6.13 permits it for the own process; before that, it is refused. */
  const int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  const struct iovec piece = {at, kBytes};
  memset(at, 'z', kBytes);
  process_madvise(self, &piece, 1, MADV_DONTNEED, 0);
  for (int page = 0; page < 16; ++page) REQUIRE(at[page * kPage] == 'z');
#endif
}

static int flags_of(const char* kind) {
  return strcmp(kind, "O_DSYNC") == 0 ? O_DSYNC : strcmp(kind, "O_SYNC") == 0 ? O_SYNC : 0;
}

static void durable(const char* path, int fd, const char* kind, const char* how) {
  static const char text[] = "acknowledged";
  const ssize_t bytes = sizeof text - 1;
  const struct iovec piece = {(void*)text, sizeof text - 1};
  const int access = how[0] == 'w' ? PROT_READ | PROT_WRITE : PROT_READ;
  if (how[0] != 'n') REQUIRE(mmap(NULL, kBytes, access, MAP_SHARED, fd, 0) != MAP_FAILED);
  const int flags = flags_of(kind);
  const int second = flags != 0 ? open(path, O_WRONLY | flags) : fd;
  REQUIRE(second >= 0);
  if (strcmp(kind, "RWF_DSYNC") == 0 || strcmp(kind, "RWF_SYNC") == 0) {
    const int call = strcmp(kind, "RWF_SYNC") == 0 ? RWF_SYNC : RWF_DSYNC;
    REQUIRE(pwritev2(fd, &piece, 1, 8192, call) == bytes);
  } else {
    REQUIRE(pwrite(second, text, sizeof text - 1, 8192) == bytes);
  }
  if (strcmp(kind, "fsync") == 0) REQUIRE(fsync(fd) == 0);
  if (strcmp(kind, "fdatasync") == 0) REQUIRE(fdatasync(fd) == 0);
  if (strcmp(kind, "syncfs") == 0) REQUIRE(syncfs(fd) == 0);
  if (strcmp(kind, "sync") == 0) sync();
  if (strcmp(kind, "sync_file_range") == 0) REQUIRE(sync_file_range(fd, 0, 0, 7) == 0);
  if (strcmp(kind, "aio_fsync") == 0) {
    struct aiocb job = {.aio_fildes = fd};
    const struct aiocb* const jobs[] = {&job};
    REQUIRE(aio_fsync(O_DSYNC, &job) == 0);
    while (aio_error(&job) == EINPROGRESS) aio_suspend(jobs, 1, NULL);
    REQUIRE(aio_return(&job) == 0);
  }
  raise(SIGKILL);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int fd = open(argv[2], O_RDWR | O_CREAT, 0644);
  REQUIRE(fd >= 0 && ftruncate(fd, kBytes) == 0);
  if (strcmp(argv[1], "refuses") == 0) refuses(fd);
  if (strcmp(argv[1], "advice") == 0) advice(fd);
  if (strcmp(argv[1], "durable") == 0 && argc > 4) durable(argv[2], fd, argv[3], argv[4]);
  return 0;
}
