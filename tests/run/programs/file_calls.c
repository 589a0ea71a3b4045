/* A program without any code for Vellum, which checks that its file behaves like a plain file. Run
 * by itself and under `vellum run`: file_calls SCENARIO FILE. Exits with 1, and prints the line, if
 * a check fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include "require.h"

enum { kPage = 4096 };
static const char* path;

static off_t size_of(int fd) {
  struct stat status;
  REQUIRE(fstat(fd, &status) == 0);
  return status.st_size;
}
static int open_new(off_t bytes) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  REQUIRE(fd >= 0 && size_of(fd) == 0 && ftruncate(fd, bytes) == 0);
  return fd;
}
static char* map(int fd, size_t bytes, int protection, off_t offset) {
  char* at = mmap(NULL, bytes, protection, MAP_SHARED, fd, offset);
  REQUIRE(at != MAP_FAILED);
  return at;
}
static int has(int fd, off_t at, const char* text) {
  char found[64];
  const size_t n = strlen(text);
  return pread(fd, found, n, at) == (ssize_t)n && memcmp(found, text, n) == 0;
}

/* All calls access the same bytes. */
static void coherent(void) {
  const int fd = open_new(5 * kPage);
  const int reader = open(path, O_RDONLY | O_CLOEXEC);
  char* all = map(fd, 5 * kPage, PROT_READ | PROT_WRITE, 0);
  char* part = map(reader, 2 * kPage, PROT_READ, 3 * kPage);
  strcpy(all + 3 * kPage + 10, "stored");
  REQUIRE(strcmp(part + 10, "stored") == 0 && has(reader, 3 * kPage + 10, "stored"));
  REQUIRE(pwrite(fd, "written", 7, 100) == 7 && memcmp(all + 100, "written", 7) == 0);
  REQUIRE(lseek(fd, 200, SEEK_SET) == 200 && write(fd, "seq", 3) == 3 && write(fd, "uel", 3) == 3);
  REQUIRE(has(reader, 200, "sequel") && lseek(fd, 0, SEEK_CUR) == 206);
  const struct iovec pieces[] = {{"one ", 4}, {"two", 3}};
  REQUIRE(pwritev(fd, pieces, 2, 300) == 7 && has(reader, 300, "one two"));
  char first[4], second[8];
  const struct iovec places[] = {{first, 4}, {second, 8}};
  REQUIRE(preadv(reader, places, 2, 300) == 12 && memcmp(second, "two", 4) == 0);
  const int copy = dup(fd);
  REQUIRE(copy >= 0 && pwrite(copy, "dup", 3, 400) == 3 && close(copy) == 0 && has(fd, 400, "dup"));
  REQUIRE(pread(reader, first, 4, 5 * kPage - 2) == 2 && pread(reader, first, 4, 5 * kPage) == 0);
  REQUIRE(mprotect(part, kPage, PROT_READ) == 0 && munmap(part, 2 * kPage) == 0);
  char* longer = mremap(all, 5 * kPage, 9 * kPage, MREMAP_MAYMOVE);
  REQUIRE(longer != MAP_FAILED && ftruncate(fd, 9 * kPage) == 0);
  longer[9 * kPage - 1] = 'z';
  REQUIRE(has(reader, 9 * kPage - 1, "z") && madvise(longer, kPage, MADV_DONTNEED) == 0);
  REQUIRE(has(fd, 100, "written"));
  REQUIRE(flock(fd, LOCK_EX | LOCK_NB) == 0 && flock(fd, LOCK_UN) == 0);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 2};
  REQUIRE(fcntl(fd, F_SETLK, &lock) == 0);
  REQUIRE(munmap(longer, 9 * kPage) == 0 && has(fd, 300, "one two"));
}

static void sizes(void) {
  const int fd = open_new(10);
  REQUIRE(size_of(fd) == 10 && lseek(fd, 0, SEEK_END) == 10);
  const int appender = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(appender >= 0 && write(appender, "tail", 4) == 4 && size_of(fd) == 14);
  REQUIRE(pwrite(fd, "far", 3, 20000) == 3 && size_of(appender) == 20003);
  char hole[8];
  REQUIRE(pread(fd, hole, 8, 15000) == 8 && memcmp(hole, "\0\0\0\0\0\0\0", 8) == 0);
  REQUIRE(ftruncate(fd, 12) == 0 && size_of(fd) == 12 && has(fd, 10, "ta"));
  struct stat status;
  REQUIRE(stat(path, &status) == 0 && status.st_size == 12);
  REQUIRE(lstat(path, &status) == 0 && status.st_size == 12);
  REQUIRE(fstatat(AT_FDCWD, path, &status, 0) == 0 && status.st_size == 12);
  struct statx extended;
  REQUIRE(statx(AT_FDCWD, path, 0, STATX_SIZE, &extended) == 0 && extended.stx_size == 12);
  REQUIRE(ftruncate(fd, 30000) == 0 && pread(fd, hole, 8, 20000) == 8 && hole[0] == 0);
  REQUIRE(posix_fallocate(fd, 0, 100) == 0 && size_of(fd) == 30000);
  REQUIRE(fallocate(fd, 0, 30000, 5) == 0 && size_of(fd) == 30005);
  REQUIRE(truncate(path, 17) == 0 && size_of(fd) == 17 && lseek(fd, -7, SEEK_END) == 10);
  REQUIRE(fsync(fd) == 0 && close(fd) == 0 && close(appender) == 0);
  REQUIRE(stat(path, &status) == 0 && status.st_size == 17);
  REQUIRE(close(open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)) == 0);
  REQUIRE(stat(path, &status) == 0 && status.st_size == 0);
}

/* syscall(2) makes the same calls. */
static void by_number(void) {
  struct stat status;
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  REQUIRE(fd >= 0 && syscall(SYS_write, fd, "first", 5L) == 5);
  REQUIRE(syscall(SYS_pwrite64, fd, "number", 6L, (long)kPage) == 6 && size_of(fd) == kPage + 6);
  REQUIRE(syscall(SYS_fstat, fd, &status) == 0 && status.st_size == kPage + 6);
  REQUIRE(syscall(SYS_fsync, fd) == 0 && has(fd, kPage, "number"));
  char* at =
      (char*)syscall(SYS_mmap, NULL, (long)kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
  REQUIRE(at != MAP_FAILED && memcmp(at, "first", 5) == 0);
  strcpy(at + 50, "stored");
  REQUIRE(syscall(SYS_msync, at, (long)kPage, MS_SYNC) == 0 && has(fd, 50, "stored"));
  REQUIRE(syscall(SYS_ftruncate, fd, 100L) == 0 && syscall(SYS_lseek, fd, 0L, SEEK_END) == 100);
  REQUIRE(syscall(SYS_read, fd, at, 10L) == 0 && syscall(SYS_munmap, at, (long)kPage) == 0);
  REQUIRE(syscall(SYS_pread64, -1, at, 1L, 0L) == -1 && errno == EBADF);
  REQUIRE(syscall(SYS_close, fd) == 0 && syscall(SYS_getpid) == getpid());
}

static void copies(void) {
  const int fd = open_new(3 * kPage);
  REQUIRE(pwrite(fd, "copied", 6, 2 * kPage) == 6);
  char name[4096];
  snprintf(name, sizeof name, "%s.other", path);
  const int other = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  off_t at = 2 * kPage;
  while (at < 3 * kPage) REQUIRE(sendfile(other, fd, &at, (size_t)(3 * kPage - at)) > 0);
  REQUIRE(has(other, 0, "copied") && size_of(other) == kPage);
  off64_t from = 0, to = kPage;
  REQUIRE(copy_file_range(other, &from, fd, &to, 6, 0) == 6 && from == 6 && to == kPage + 6);
  REQUIRE(has(fd, kPage, "copied"));
  char* mapped = map(fd, 3 * kPage, PROT_READ, 0);
  REQUIRE(pwrite(other, mapped + kPage, 6, 5000) == 6 && has(other, 5000, "copied"));
  FILE* stream = fopen(path, "r+");
  REQUIRE(stream != NULL && fseek(stream, kPage + 2, SEEK_SET) == 0 && fgetc(stream) == 'p');
  REQUIRE(fseek(stream, 50, SEEK_SET) == 0 && fputs("stream", stream) >= 0 && fclose(stream) == 0);
  REQUIRE(has(fd, 50, "stream") && unlink(name) == 0);
}

/* Descriptors and mappings keep referring to the file, whatever happens to its name. */
static void names(void) {
  char other[4096], third[4096];
  snprintf(other, sizeof other, "%s.other", path);
  snprintf(third, sizeof third, "%s.third", path);
  const int fd = open_new(3 * kPage);
  const int appender = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  char* at = map(fd, 2 * kPage, PROT_READ | PROT_WRITE, kPage);
  strcpy(at, "stored");
  REQUIRE(pwrite(fd, "written", 7, 100) == 7 && unlink(path) == 0 && access(path, F_OK) == -1);
  REQUIRE(has(fd, kPage, "stored") && has(fd, 100, "written") && strcmp(at, "stored") == 0);
  const int newer = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  REQUIRE(newer >= 0 && size_of(newer) == 0 && size_of(fd) == 3 * kPage);
  REQUIRE(pwrite(newer, "made", 4, 0) == 4 && pwrite(fd, "old", 3, 0) == 3 &&
          has(newer, 0, "made"));
  strcpy(at + kPage, "nameless");
  REQUIRE(has(fd, 2 * kPage, "nameless") && size_of(newer) == 4);
  REQUIRE(write(appender, "tail", 4) == 4 && has(fd, 3 * kPage, "tail") && fsync(fd) == 0);
  REQUIRE(ftruncate(fd, 5) == 0 && size_of(fd) == 5 && size_of(newer) == 4);
  REQUIRE(msync(at, kPage, MS_SYNC) == 0 && munmap(at, 2 * kPage) == 0);
  REQUIRE(close(fd) == 0 && close(appender) == 0);

  /* The name is removed and restored; the file can be read and written all the time. */
  REQUIRE(rename(path, other) == 0 && pwrite(newer, "gone", 4, 4) == 4 &&
          has(newer, 0, "madegone"));
  REQUIRE(access(path, F_OK) == -1 && rename(other, path) == 0);
  REQUIRE(pwrite(newer, "back", 4, 8) == 4 && fsync(newer) == 0);
  const int reader = open(path, O_RDONLY | O_CLOEXEC);
  REQUIRE(has(reader, 0, "madegoneback") && pwrite(newer, "A", 1, 0) == 1 &&
          has(reader, 0, "Aade"));

  /* Another file gets the name, open for writing or not. */
  const int next = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(next >= 0 && write(next, "next", 4) == 4 && rename(other, path) == 0);
  REQUIRE(has(newer, 0, "Aade") && has(reader, 0, "Aade") && write(next, "more", 4) == 4);
  const int found = open(path, O_RDWR | O_CLOEXEC);
  REQUIRE(found >= 0 && has(found, 0, "nextmore") && pwrite(found, "N", 1, 0) == 1);
  REQUIRE(has(next, 0, "Nextmore"));

  /* Two files exchange their names, and RENAME_NOREPLACE replaces no name. */
  const int last = open(third, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(last >= 0 && write(last, "third", 5) == 5);
  REQUIRE(renameat2(AT_FDCWD, third, AT_FDCWD, path, RENAME_NOREPLACE) == -1 && errno == EEXIST);
  REQUIRE(pwrite(found, "n", 1, 0) == 1 && has(next, 0, "nextmore"));
  REQUIRE(renameat2(AT_FDCWD, third, AT_FDCWD, path, RENAME_EXCHANGE) == 0);
  REQUIRE(pwrite(last, "T", 1, 0) == 1 && pwrite(next, "N", 1, 0) == 1 && has(found, 0, "Next"));
  const int second = open(path, O_RDONLY | O_CLOEXEC);
  REQUIRE(has(second, 0, "Third") && size_of(second) == 5);
  REQUIRE(unlink(third) == 0 && fsync(last) == 0);
}

/* Sparse-aware copies search for data: bytes that are only in memory are data. */
static void holes(void) {
  const int fd = open_new(0);
  REQUIRE(pwrite(fd, "data", 4, 100) == 4 && lseek(fd, 0, SEEK_HOLE) == 104);
  REQUIRE(lseek(fd, 50, SEEK_DATA) <= 100 && lseek(fd, 100, SEEK_DATA) == 100);
  REQUIRE(lseek(fd, 0, SEEK_CUR) == 100 && lseek(fd, 104, SEEK_HOLE) == -1 && errno == ENXIO);
  REQUIRE(lseek(fd, 104, SEEK_DATA) == -1 && errno == ENXIO);
  REQUIRE(lseek(fd, -1, SEEK_HOLE) == -1 && errno == ENXIO && lseek(fd, 0, SEEK_CUR) == 100);
  REQUIRE(ftruncate(fd, 40 * kPage) == 0 && pwrite(fd, "far", 3, 30 * kPage) == 3);
  char name[4096], piece[kPage];
  snprintf(name, sizeof name, "%s.copy", path);
  const int copy = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  REQUIRE(ftruncate(copy, size_of(fd)) == 0);
  for (off_t at = 0, end; (at = lseek(fd, at, SEEK_DATA)) >= 0; at = end) {
    end = lseek(fd, at, SEEK_HOLE);
    for (off_t from = at; from < end; from += kPage) {
      const ssize_t got = pread(fd, piece, kPage, from);
      REQUIRE(got > 0 && pwrite(copy, piece, (size_t)got, from) == got);
    }
  }
  REQUIRE(has(copy, 100, "data") && has(copy, 30 * kPage, "far") && unlink(name) == 0);
  /* Ranges that are punched, or zeroed. */
  REQUIRE(ftruncate(fd, 3 * kPage) == 0 && pwrite(fd, "one two three", 13, kPage - 4) == 13);
  REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kPage, 4) == 0);
  REQUIRE(has(fd, kPage - 4, "one ") && pread(fd, piece, 9, kPage) == 9);
  REQUIRE(memcmp(piece, "\0\0\0\0three", 9) == 0 && size_of(fd) == 3 * kPage);
  REQUIRE(fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, kPage - 4, 2 * kPage) == 0 ||
          errno == EOPNOTSUPP);
  REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kPage - 4, 9 * kPage) == 0);
  REQUIRE(pread(fd, piece, 4, kPage - 4) == 4 && memcmp(piece, "\0\0\0", 4) == 0);
  REQUIRE(size_of(fd) == 3 * kPage && fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 5) == -1);
  REQUIRE(errno == EOPNOTSUPP);
  REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 0) == -1 && errno == EINVAL);
  const int reader = open(path, O_RDONLY | O_CLOEXEC);
  REQUIRE(fallocate(reader, 0, 0, 5) == -1 && errno == EBADF);
  REQUIRE(pwrite(fd, "left", 4, 0) == 4 && fsync(fd) == 0);
}

/* Not a call of this program's C library: the kernel's own view of the file. */
static off_t kernels_size(void) {
  struct statx status;
#if defined(__x86_64__)
  register long flags __asm__("rdx") = 0;
  register long mask __asm__("r10") = STATX_SIZE;
  register struct statx* to __asm__("r8") = &status;
  long result = SYS_statx;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"((long)AT_FDCWD), "S"(path), "r"(flags), "r"(mask), "r"(to)
                   : "rcx", "r11", "memory");
  REQUIRE(result == 0);
#else
  REQUIRE(syscall(SYS_statx, AT_FDCWD, path, 0, STATX_SIZE, &status) == 0);
#endif
  return (off_t)status.stx_size;
}
static void exact_sizes(void) {
  const int fd = open_new(0);
  char piece[1000];
  memset(piece, 'p', sizeof piece);
  REQUIRE(fsync(fd) == 0); /* a commit makes it shorter */
  for (int i = 1; i <= 3000; ++i) {
    REQUIRE(write(fd, piece, sizeof piece) == sizeof piece);
    REQUIRE(kernels_size() == i * 1000);
    if (i % 1000 == 0) REQUIRE(fsync(fd) == 0 && kernels_size() == i * 1000);
  }
  REQUIRE(ftruncate(fd, 5000001) == 0 && kernels_size() == 5000001);
  char* at = map(fd, 6000000, PROT_READ | PROT_WRITE, 0);
  at[5000000] = 'm';
  REQUIRE(pwrite(fd, piece, 10, 5000001) == 10 && kernels_size() == 5000011);
  REQUIRE(msync(at, 6000000, MS_SYNC) == 0 && kernels_size() == 5000011);
}

/* The truncated bytes of a file, and those of a hole, do not reappear when the file grows; nor do
 * they in a version. */
static void cut_and_longer(void) {
  const int fd = open_new(3 * kPage);
  REQUIRE(pwrite(fd, "gone", 4, 2 * kPage + 7) == 4 && fsync(fd) == 0);
  REQUIRE(ftruncate(fd, 10) == 0 && ftruncate(fd, 3 * kPage) == 0 && fsync(fd) == 0);
  REQUIRE(!has(fd, 2 * kPage + 7, "gone"));
  REQUIRE(pwrite(fd, "gone", 4, kPage + 7) == 4 && fsync(fd) == 0);
  REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kPage, kPage) == 0);
  REQUIRE(fsync(fd) == 0 && !has(fd, kPage + 7, "gone"));
}

/* The program sets its file's times itself, and no other process has changed it. */
static void times(void) {
  const int fd = open_new(kPage);
  struct stat status;
  const struct timespec both[2] = {{1000000000, 5}, {1100000000, 7}};
  for (int i = 0; i < 6; ++i) {
    REQUIRE(pwrite(fd, &i, sizeof i, i * 8) == sizeof i);
    const struct timeval old[2] = {{1000000000, 0}, {1200000000 + i, 0}};
    if (i == 0) REQUIRE(utime(path, NULL) == 0);
    if (i == 1) REQUIRE(utimes(path, old) == 0);
    if (i == 2) REQUIRE(futimes(fd, old) == 0);
    if (i == 3) REQUIRE(utimensat(AT_FDCWD, path, both, 0) == 0);
    if (i == 4) REQUIRE(chmod(path, 0600) == 0 && fchmod(fd, 0644) == 0);
    if (i == 5) REQUIRE(futimens(fd, both) == 0);
    if (i % 2 == 0) REQUIRE(fsync(fd) == 0);
  }
  REQUIRE(stat(path, &status) == 0 && status.st_mtim.tv_sec == 1100000000);
  REQUIRE(close(fd) == 0 && stat(path, &status) == 0 && status.st_mtim.tv_sec == 1100000000);
  REQUIRE(status.st_mtim.tv_nsec == 7);
}

/* A program that does not use LMDB writes the beginning of an LMDB file. */
static void like_lmdb(void) {
  const int fd = open_new(4 * kPage);
  const uint32_t meta[] = {0xbeefc0de, 1};
  const uint32_t page = kPage;
  for (off_t at = 0; at <= kPage; at += kPage)
    REQUIRE(pwrite(fd, meta, 8, at + 16) == 8 && pwrite(fd, &page, 4, at + 40) == 4);
  REQUIRE(fsync(fd) == 0 && pwrite(fd, "flushed", 7, 2 * kPage) == 7 && fsync(fd) == 0);
  REQUIRE(pwrite(fd, "synchronous", 11, 3 * kPage) == 11 && fdatasync(fd) == 0);
  kill(getpid(), SIGKILL);
}

/* A child's stores would be lost. */
static void stores_of_a_child(void) {
  const int fd = open_new(2 * kPage);
  char* at = map(fd, 2 * kPage, PROT_READ | PROT_WRITE, 0);
  strcpy(at, "parent");
  for (int turn = 0; turn < 2; ++turn) {
    const pid_t child = fork();
    if (child == 0) {
      REQUIRE(strcmp(at, "parent") == 0 && at[kPage] == 0);
      at[turn * kPage] = 'c';
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    REQUIRE(WTERMSIG(status) == SIGSEGV);
  }
  REQUIRE(strcmp(at, "parent") == 0);
}

/* Three threads count in words of the same pages, and one of them flushes: neither the commit nor
 * the release of pages to the page cache may revert a word. */
enum { kWords = 8, kRounds = 400 };
static int counted_file;
static const volatile uint64_t* counted;

static void* count(void* argument) {
  const uint64_t thread = (uint64_t)(uintptr_t)argument;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (uint64_t i = 0; i < kWords; ++i) {
      const uint64_t word = i * kPage / 8 + thread;
      REQUIRE(pwrite(counted_file, &round, 8, (off_t)word * 8) == 8);
      REQUIRE(counted[word] == round);
    }
    if (thread == 2) REQUIRE(fdatasync(counted_file) == 0);
  }
  return NULL;
}

static void threads(void) {
  counted_file = open_new(kWords * kPage);
  counted = (const volatile uint64_t*)map(counted_file, kWords * kPage, PROT_READ, 0);
  pthread_t ids[3];
  for (uintptr_t i = 0; i < 3; ++i) REQUIRE(pthread_create(&ids[i], NULL, count, (void*)i) == 0);
  for (int i = 0; i < 3; ++i) REQUIRE(pthread_join(ids[i], NULL) == 0);
  for (int i = 0; i < 3 * kWords; ++i) REQUIRE(counted[i / 3 * kPage / 8 + i % 3] == kRounds);
}

/* Another program also writes the file: the static one, in the same directory as this one. */
static void outsider(void) {
  char command[16384], programs[2048];
  const ssize_t length = readlink("/proc/self/exe", programs, sizeof programs - 1);
  REQUIRE(length > 0);
  programs[length] = '\0';
  *strrchr(programs, '/') = '\0';
  const int fd = open_new(2 * kPage);
  REQUIRE(pwrite(fd, "first", 5, 0) == 5 && fsync(fd) == 0);
  snprintf(command, sizeof command, "'%s/static_program' '%s' outside %d", programs, path, kPage);
  REQUIRE(system(command) == 0);
  for (int i = 0; i < 3; ++i) REQUIRE(pwrite(fd, "again", 5, i) == 5 && fsync(fd) == 0);
}

/* The next process reads all writes, whether they were flushed or not. */
static void kept(void) {
  const int fd = open_new(kPage);
  REQUIRE(pwrite(fd, "not flushed", 11, 7) == 11);
  char* at = map(fd, kPage, PROT_READ | PROT_WRITE, 0);
  strcpy(at + 100, "nor this");
}
static void kept_at_exit_now(void) {
  kept();
  _exit(0);
}
static void kept_by_close(void) {
  const int fd = open_new(kPage);
  REQUIRE(pwrite(fd, "closed", 6, 7) == 6 && close(fd) == 0);
  kill(getpid(), SIGKILL);
}

static void killed(void) {
  const int fd = open_new(2 * kPage);
  char* at = map(fd, 2 * kPage, PROT_READ | PROT_WRITE, 0);
  strcpy(at, "first");
  strcpy(at + kPage, "first");
  REQUIRE(msync(at, 2 * kPage, MS_SYNC) == 0);
  strcpy(at, "other");
  REQUIRE(pwrite(fd, "other", 5, kPage) == 5);
  kill(getpid(), SIGKILL);
}
static void killed_before_a_commit(void) {
  const int fd = open_new(2 * kPage);
  REQUIRE(pwrite(fd, "new", 3, kPage) == 3);
  kill(getpid(), SIGKILL);
}
static void killed_behind_a_synchronous_write(void) {
  const int fd = open_new(kPage);
  const int synchronous = open(path, O_WRONLY | O_DSYNC | O_CLOEXEC);
  REQUIRE(pwrite(fd, "before", 6, 0) == 6 && pwrite(synchronous, "with", 4, 100) == 4);
  kill(getpid(), SIGKILL);
}

static void forks(void) {
  const int fd = open_new(kPage);
  char* at = map(fd, kPage, PROT_READ | PROT_WRITE, 0);
  strcpy(at, "parent");
  const pid_t child = fork();
  if (child == 0) {
    char found[6];
    REQUIRE(strcmp(at, "parent") == 0 && pread(fd, found, 6, 0) == 6);
    _exit(close(fd));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  REQUIRE(pwrite(fd, "still", 5, 100) == 5 && fsync(fd) == 0);
  REQUIRE(system("exit 3") == 3 << 8);
  REQUIRE(pwrite(fd, "there", 5, 200) == 5 && fsync(fd) == 0 && has(fd, 100, "still"));
  /* A surviving child has none of the locks, and may write when the parent does not. */
  int tell[2];
  REQUIRE(pipe(tell) == 0);
  const pid_t longer = fork();
  if (longer == 0) {
    char word;
    REQUIRE(strcmp(at, "parent") == 0 && read(tell[0], &word, 1) == 1);
    REQUIRE(munmap(at, kPage) == 0 && close(fd) == 0);
    const int own = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(own >= 0 && has(own, 300, "again") && pwrite(own, "child", 5, 400) == 5);
    exit(close(own));
  }
  REQUIRE(munmap(at, kPage) == 0 && close(fd) == 0);
  const int again = open(path, O_RDWR | O_CLOEXEC);
  REQUIRE(again >= 0 && pwrite(again, "again", 5, 300) == 5 && close(again) == 0);
  REQUIRE(write(tell[1], "c", 1) == 1 && waitpid(longer, &status, 0) == longer && status == 0);
}

/* This is process 1 of a namespace, and so is its child, which temporarily shares its memory. */
static void process_one(void) {
  const int fd = open_new(kPage);
  REQUIRE(getpid() == 1 && unshare(CLONE_NEWPID) == 0);
  const pid_t child = vfork();
  if (child == 0) _exit(getpid() == 1 ? close(fd) : 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  REQUIRE(pwrite(fd, "still", 5, 100) == 5 && fsync(fd) == 0 && has(fd, 100, "still"));
}

/* A descriptor number that the next program expects. */
enum { kHanded = 100 };
static void hands_down(void) {
  const int fd = open_new(kPage);
  REQUIRE(fcntl(fd, F_DUPFD, kHanded) == kHanded && pwrite(fd, "before", 6, 0) == 6);
  execl("/proc/self/exe", "file_calls", "handed-down", path, NULL);
  REQUIRE(0);
}
static void handed_down(void) {
  REQUIRE(has(kHanded, 0, "before") && pwrite(kHanded, "behind", 6, 100) == 6);
  REQUIRE(fsync(kHanded) == 0 && has(kHanded, 100, "behind"));
}

static void streams(void) {
  FILE* stream = fopen(path, "w+");
  REQUIRE(stream != NULL && fprintf(stream, "line %d\n", 1) == 7 && fflush(stream) == 0);
  REQUIRE(fileno(stream) >= 0 && fsync(fileno(stream)) == 0);
  REQUIRE(dprintf(fileno(stream), "line %d\n", 2) == 7);
  REQUIRE(fseek(stream, 0, SEEK_END) == 0 && ftell(stream) == 14);
  REQUIRE(ftruncate(fileno(stream), 13) == 0 && fclose(stream) == 0);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  REQUIRE(has(fd, 0, "line 1\nline 2") && size_of(fd) == 13);
}

/* A library in front of the C library cannot intercept these uses of a file. */
static void unseen(void) {
  REQUIRE(close(open_new(kPage)) == 0);
  const int reader = open(path, O_RDONLY | O_CLOEXEC);
  char* at = mmap(NULL, kPage, PROT_READ, MAP_PRIVATE, reader, 0);
  REQUIRE(at != MAP_FAILED);
  REQUIRE(close(reader) == 0 && open(path, O_RDWR | O_CLOEXEC) == -1 && errno == EBUSY);
  REQUIRE(munmap(at, kPage) == 0);

  char name[4096];
  snprintf(name, sizeof name, "%s.other", path);
  const int other = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(other >= 0 && write(other, "renamed", 7) == 7 && rename(name, path) == 0);
  const int fd = open(path, O_RDWR | O_CLOEXEC), standard = dup(STDOUT_FILENO);
  REQUIRE(fd >= 0 && has(fd, 0, "renamed") && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
  REQUIRE(write(STDOUT_FILENO, "written", 7) == 7);
  REQUIRE(printf("past it") == 7 && fflush(stdout) == EOF);
  REQUIRE(dup2(standard, STDOUT_FILENO) == STDOUT_FILENO && has(fd, 0, "written"));
  REQUIRE(freopen(path, "w", stdin) == NULL && errno == ENOTSUP);
}

/* Only `vellum run` refuses this. */
static void refused(void) {
  const int fd = open_new(kPage);
  REQUIRE(fcntl(fd, F_DUPFD, kHanded) == kHanded);
  char* at = map(fd, kPage, PROT_READ | PROT_WRITE, 0);
  const pid_t child = fork();
  if (child == 0) {
    REQUIRE(pwrite(fd, "no", 2, 0) == -1 && errno == ENOTSUP);
    REQUIRE(msync(at, kPage, MS_SYNC) == -1 && errno == ENOTSUP);
    execlp("/proc/self/exe", "file_calls", "second", path, NULL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  REQUIRE(at[0] == 0);
  REQUIRE(mmap(NULL, kPage, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == ENOTSUP);
  REQUIRE(mmap(at, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED);
  /* A daemon closes unknown descriptors. */
  for (int i = 3; i < 1000; ++i)
    if (i != fd) close(i);
  if (fd > 3) close_range(3, (unsigned)fd - 1, 0);
  close_range((unsigned)fd + 1, ~0U, 0);
  strcpy(at, "kept");
  REQUIRE(fsync(fd) == 0);
  kill(getpid(), SIGKILL);
}
static void second(void) {
  REQUIRE(open(path, O_RDWR | O_CLOEXEC) == -1 && errno == EBUSY);
  REQUIRE(open(path, O_RDONLY | O_CLOEXEC) >= 0);
  REQUIRE(pwrite(kHanded, "no", 2, 0) == -1 && errno == EBADF);
}

static void hundred_commits(void) {
  const int fd = open_new(kPage);
  for (int i = 0; i < 100; ++i) REQUIRE(pwrite(fd, &i, sizeof i, i * 4) == 4 && fsync(fd) == 0);
}
/* Runs until its input ends. */
static void waits(void) {
  const int fd = open_new(kPage);
  REQUIRE(pwrite(fd, "waits", 5, 0) == 5 && fsync(fd) == 0);
  puts("ready");
  fflush(stdout);
  getchar();
}
static void reads(void) {
  char text[6] = "";
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0 && pread(fd, text, 5, 0) == 5);
  puts(text);
  REQUIRE(open(path, O_RDWR | O_CLOEXEC) == -1 && errno == EROFS);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } scenarios[] = {
      {"coherent", coherent},
      {"sizes", sizes},
      {"by-number", by_number},
      {"copies", copies},
      {"names", names},
      {"holes", holes},
      {"exact-sizes", exact_sizes},
      {"cut-and-longer", cut_and_longer},
      {"times", times},
      {"like-lmdb", like_lmdb},
      {"stores-of-a-child", stores_of_a_child},
      {"threads", threads},
      {"outsider", outsider},
      {"kept", kept},
      {"kept-at-exit-now", kept_at_exit_now},
      {"kept-by-close", kept_by_close},
      {"killed", killed},
      {"killed-before-a-commit", killed_before_a_commit},
      {"killed-behind-a-synchronous-write", killed_behind_a_synchronous_write},
      {"forks", forks},
      {"process-one", process_one},
      {"hands-down", hands_down},
      {"handed-down", handed_down},
      {"streams", streams},
      {"unseen", unseen},
      {"refused", refused},
      {"second", second},
      {"hundred-commits", hundred_commits},
      {"waits", waits},
      {"reads", reads},
  };
  REQUIRE(argc == 3);
  path = argv[2];
  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; ++i) {
    if (strcmp(argv[1], scenarios[i].name) != 0) continue;
    scenarios[i].run();
    return 0;
  }
  return 2;
}
