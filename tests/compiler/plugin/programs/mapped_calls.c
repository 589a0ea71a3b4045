/* Everything that a program does to a mapped file, other than storing: run with the file's name in
 * VELLUM_ATOMIC_FILES. Exits with the line of what is wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REQUIRE(holds)                                    \
  do {                                                    \
    if (!(holds)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #holds); \
      return 1;                                           \
    }                                                     \
  } while (0)

enum { kBytes = 3 * 4096 };

static off_t size_of(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? status.st_size : -1;
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  const int fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0 && ftruncate(fd, kBytes) == 0);
  char* at = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(at != MAP_FAILED);
  char name[4096];
  snprintf(name, sizeof name, "%s.vellum-journal", argv[1]);
  REQUIRE(access(name, F_OK) == 0);

  /* On a shared mapping, stored bytes stay. */
  strcpy(at + 100, "kept");
  REQUIRE(madvise(at, kBytes, MADV_DONTNEED) == 0 && strcmp(at + 100, "kept") == 0);
  REQUIRE(madvise(at, kBytes, MADV_REMOVE) == -1 && errno == EOPNOTSUPP);
  REQUIRE(madvise(at, kBytes, MADV_RANDOM) == 0);

  /* The file grows behind its mapping; these calls never shrink it. */
  REQUIRE(posix_fallocate(fd, 0, 100) == 0 && size_of(fd) == kBytes);
  REQUIRE(posix_fallocate(fd, 4 * 4096, 4096) == 0 && size_of(fd) == 5 * 4096);
  at[5 * 4096 - 1] = 'g';
  REQUIRE(fallocate(fd, 0, 0, 6 * 4096) == 0 && size_of(fd) == 6 * 4096);
  REQUIRE(posix_fallocate(fd, -1, 4096) == EINVAL && posix_fallocate(fd, 0, 0) == EINVAL);
  REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == -1);
  REQUIRE(errno == EOPNOTSUPP && strcmp(at + 100, "kept") == 0);

  /* By descriptor: reads return the content of memory, also at the end; a read-only descriptor cannot
   * write. */
  char read_back[8] = "";
  REQUIRE(pread(fd, read_back, 5, 100) == 5 && strcmp(read_back, "kept") == 0);
  const int appender = open(argv[1], O_RDWR | O_APPEND | O_CLOEXEC);
  REQUIRE(write(appender, "end", 3) == 3 && size_of(fd) == 6 * 4096 + 3);
  REQUIRE(memcmp(at + 6 * 4096, "end", 3) == 0);
  const int reader = open(argv[1], O_RDONLY | O_CLOEXEC);
  REQUIRE(pwrite(reader, "no", 2, 0) == -1 && errno == EBADF && at[0] == 0);
  REQUIRE(pwrite(fd, "", 0, 100 * 4096) == 0 && size_of(fd) == 6 * 4096 + 3);
  REQUIRE(pwrite(fd, "at", 2, 200) == 2 && memcmp(at + 200, "at", 2) == 0);

  /* As in the kernel: O_APPEND overrides an offset, an offset is not negative, and a write-only
   * descriptor cannot read. */
  REQUIRE(pwrite(appender, "!", 1, 0) == 1 && size_of(fd) == 6 * 4096 + 4 && at[0] == 0);
  REQUIRE(at[6 * 4096 + 3] == '!' && lseek(appender, 0, SEEK_CUR) == 6 * 4096 + 3);
  REQUIRE(pwrite(fd, "no", 2, -1) == -1 && errno == EINVAL && pread(fd, read_back, 1, -1) == -1);
  const int writer = open(argv[1], O_WRONLY | O_CLOEXEC);
  REQUIRE(read(writer, read_back, 1) == -1 && errno == EBADF);
  REQUIRE(close(writer) == 0 && ftruncate(fd, 6 * 4096 + 3) == 0);

  /* When a later buffer does not fit, the earlier ones are written, and the offset is after them. */
  const struct iovec pieces[] = {{"piece", 5}, {at, 1ULL << 50}};
  REQUIRE(lseek(fd, 300, SEEK_SET) == 300 && writev(fd, pieces, 2) == 5);
  REQUIRE(memcmp(at + 300, "piece", 5) == 0 && lseek(fd, 0, SEEK_CUR) == 305);

  REQUIRE(fsync(fd) == 0 && fdatasync(fd) == 0);
  REQUIRE(munmap(at, 64 * 4096) == 0 && access(name, F_OK) != 0);
  REQUIRE(pread(fd, read_back, 5, 100) == 5 && strcmp(read_back, "kept") == 0);
  REQUIRE(pread(fd, read_back, 1, 5 * 4096 - 1) == 1 && read_back[0] == 'g');
  return 0;
}
