/* The less common functions of the C library that access a file, also those for old programs. Run
 * by itself and under `vellum run`: call_family SCENARIO FILE. Exits with 1, and prints the line,
 * if a call does not behave as for a plain file. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "require.h"

/* Programs that were built with a glibc before 2.33 import these; headers no longer name them. */
int old_fxstat(int, int, struct stat*);
int old_fxstat64(int, int, struct stat64*);
int old_xstat(int, const char*, struct stat*);
int old_xstat64(int, const char*, struct stat64*);
int old_lxstat(int, const char*, struct stat*);
int old_lxstat64(int, const char*, struct stat64*);
int old_fxstatat(int, int, const char*, struct stat*, int);
int old_fxstatat64(int, int, const char*, struct stat64*, int);
__asm__(".symver old_fxstat,__fxstat@GLIBC_2.2.5");
__asm__(".symver old_fxstat64,__fxstat64@GLIBC_2.2.5");
__asm__(".symver old_xstat,__xstat@GLIBC_2.2.5");
__asm__(".symver old_xstat64,__xstat64@GLIBC_2.2.5");
__asm__(".symver old_lxstat,__lxstat@GLIBC_2.2.5");
__asm__(".symver old_lxstat64,__lxstat64@GLIBC_2.2.5");
__asm__(".symver old_fxstatat,__fxstatat@GLIBC_2.4");
__asm__(".symver old_fxstatat64,__fxstatat64@GLIBC_2.4");

off64_t old_llseek(int, off64_t, int);
__asm__(".symver old_llseek,llseek@GLIBC_2.2.5");
int __open(const char*, int, ...);
int __open64(const char*, int, ...);
int __close(int);
ssize_t __read(int, void*, size_t);
ssize_t __write(int, const void*, size_t);
ssize_t __pread64(int, void*, size_t, off_t);
ssize_t __pwrite64(int, const void*, size_t, off_t);
off_t __lseek(int, off_t, int);
int __fcntl(int, int, ...);
int __dup2(int, int);
FILE* _IO_fopen(const char*, const char*);
FILE* _IO_fdopen(int, const char*);

static const char* path;

static int open_new(int flags) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0644);
  REQUIRE(fd >= 0);
  return fd;
}
static off_t size_of(int fd) {
  struct stat status;
  REQUIRE(fstat(fd, &status) == 0);
  return status.st_size;
}
static int has(int fd, off_t at, const char* text) {
  char found[64];
  const size_t n = strlen(text);
  return pread(fd, found, n, at) == (ssize_t)n && memcmp(found, text, n) == 0;
}

/* preadv2(2) and pwritev2(2), by both names. */
static void flags(void) {
  const int fd = open_new(0);
  const struct iovec one[] = {{"one ", 4}, {"two", 3}};
  REQUIRE(pwritev2(fd, one, 2, 0, 0) == 7 && has(fd, 0, "one two"));
  REQUIRE(pwritev64v2(fd, one, 2, -1, RWF_DSYNC) == 7 && lseek(fd, 0, SEEK_CUR) == 7);
  REQUIRE(pwritev2(fd, one, 1, 2, RWF_APPEND) == 4 && size_of(fd) == 11 && has(fd, 7, "one "));
  REQUIRE(lseek(fd, 0, SEEK_CUR) == 7);
  REQUIRE(pwritev2(fd, one, 2, -1, RWF_APPEND | RWF_SYNC) == 7 && size_of(fd) == 18);
  REQUIRE(lseek(fd, 0, SEEK_CUR) == 18);
  char first[4], second[8];
  const struct iovec places[] = {{first, 4}, {second, 3}};
  REQUIRE(preadv2(fd, places, 2, 11, 0) == 7 && memcmp(second, "two", 3) == 0);
  REQUIRE(lseek(fd, 0, SEEK_SET) == 0 && preadv64v2(fd, places, 2, -1, 0) == 7);
  REQUIRE(lseek(fd, 0, SEEK_CUR) == 7);
  REQUIRE(pwritev2(fd, one, 2, 0, 0x4000) == -1 && errno == EOPNOTSUPP);
  REQUIRE(preadv2(fd, places, 2, 0, 0x4000) == -1 && errno == EOPNOTSUPP);
  REQUIRE(pwritev2(fd, one, 2, -2, 0) == -1 && errno == EINVAL);
  REQUIRE(pwritev(fd, one, 2, -1) == -1 && errno == EINVAL);
}

/* A descriptor with O_APPEND appends, whatever the offset of the write. */
static void append(void) {
  const int fd = open_new(O_APPEND);
  REQUIRE(pwrite(fd, "first", 5, 100) == 5 && size_of(fd) == 5);
  REQUIRE(pwrite64(fd, "second", 6, 0) == 6 && has(fd, 0, "firstsecond"));
  const struct iovec pieces[] = {{"three", 5}, {"four", 4}};
  REQUIRE(pwritev(fd, pieces, 2, 3) == 9 && has(fd, 0, "firstsecondthreefour"));
  REQUIRE(lseek(fd, 0, SEEK_CUR) == 0);
  REQUIRE(write(fd, "five", 4) == 4 && lseek(fd, 0, SEEK_CUR) == 24);
  const int other = dup(fd);
  REQUIRE(fcntl(other, F_SETFL, 0) == 0 && pwrite(fd, "F", 1, 0) == 1 && size_of(fd) == 24);
  REQUIRE(fcntl(fd, F_SETFL, O_APPEND) == 0 && pwrite(other, "!", 1, 0) == 1 && size_of(fd) == 25);
  REQUIRE(has(fd, 0, "Firstsecondthreefourfive!"));
}

/* These are not addresses. */
static void faults(void) {
  const int fd = open_new(0);
  REQUIRE(pwrite(fd, "content", 7, 0) == 7);
  char* const pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0);
  char* const none = pages + 4096;
  void* volatile null = NULL, * volatile low = (void*)8; /* hidden from the compiler */
  volatile int too_few = -1, too_many = 100000;
  REQUIRE(pwrite(fd, none, 10, 0) == -1 && errno == EFAULT && size_of(fd) == 7);
  REQUIRE(pwrite(fd, none, 10, 100) == -1 && errno == EFAULT && ftruncate(fd, 7) == 0);
  REQUIRE(write(fd, null, 10) == -1 && errno == EFAULT && lseek(fd, 0, SEEK_CUR) == 0);
  REQUIRE(pread(fd, none, 7, 0) == -1 && errno == EFAULT);
  REQUIRE(read(fd, low, 7) == -1 && errno == EFAULT && lseek(fd, 0, SEEK_CUR) == 0);
  const struct iovec pieces[] = {{"abc", 3}, {none, 5}};
  REQUIRE(pwritev(fd, pieces, 2, 0) == 3 && has(fd, 0, "abctent"));
  REQUIRE(writev(fd, (const struct iovec*)none, 2) == -1 && errno == EFAULT);
  REQUIRE(preadv(fd, (const struct iovec*)none, 2, 0) == -1 && errno == EFAULT);
  REQUIRE(pwritev(fd, pieces, too_few, 0) == -1 && errno == EINVAL);
  REQUIRE(preadv(fd, pieces, too_many, 0) == -1 && errno == EINVAL);
  memset(pages, 'x', 4096);
  REQUIRE(pwrite(fd, none - 3, 10, 4096) == 3 && size_of(fd) == 4099 && has(fd, 4096, "xxx"));
  REQUIRE(pread(fd, none - 3, 7, 0) == 3 && memcmp(none - 3, "abc", 3) == 0);
  char* const constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pread(fd, constant, 7, 0) == -1 && errno == EFAULT);
  REQUIRE(fsync(fd) == 0);
}

/* Before a write has been flushed, when the file on the disk is still longer, or shorter. */
static void old_stats(void) {
  const int fd = open_new(0);
  for (int round = 0; round < 2; ++round) {
    const off_t size = round == 0 ? 1234567 : 17;
    REQUIRE(pwrite(fd, "z", 1, size - 1) == 1 && ftruncate(fd, size) == 0);
    struct stat s;
    struct stat64 l;
    s.st_size = -1;
    REQUIRE(old_fxstat(1, fd, &s) == 0 && s.st_size == size);
    l.st_size = -1;
    REQUIRE(old_fxstat64(1, fd, &l) == 0 && l.st_size == size);
    s.st_size = -1;
    REQUIRE(old_xstat(1, path, &s) == 0 && s.st_size == size);
    l.st_size = -1;
    REQUIRE(old_xstat64(1, path, &l) == 0 && l.st_size == size);
    s.st_size = -1;
    REQUIRE(old_lxstat(0, path, &s) == 0 && s.st_size == size);
    l.st_size = -1;
    REQUIRE(old_lxstat64(1, path, &l) == 0 && l.st_size == size);
    s.st_size = -1;
    REQUIRE(old_fxstatat(1, AT_FDCWD, path, &s, 0) == 0 && s.st_size == size);
    l.st_size = -1;
    REQUIRE(old_fxstatat64(1, fd, "", &l, AT_EMPTY_PATH) == 0 && l.st_size == size);
    REQUIRE(old_fxstat(7, fd, &s) == -1 && errno == EINVAL);
    REQUIRE(fstat64(fd, &l) == 0 && l.st_size == size && stat64(path, &l) == 0);
    REQUIRE(lstat64(path, &l) == 0 && l.st_size == size);
    REQUIRE(fstatat64(AT_FDCWD, path, &l, 0) == 0 && l.st_size == size);
  }
}

/* The C library's other names: each must reach the same bytes. */
static void names(void) {
  const int keep = open_new(0);
  int fd = __open(path, O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0 && __write(fd, "written", 7) == 7 && has(keep, 0, "written"));
  REQUIRE(__pwrite64(fd, "W", 1, 0) == 1 && has(keep, 0, "Written"));
  char text[8];
  REQUIRE(__lseek(fd, 1, SEEK_SET) == 1 && __read(fd, text, 2) == 2 && memcmp(text, "ri", 2) == 0);
  REQUIRE(__pread64(fd, text, 3, 4) == 3 && memcmp(text, "ten", 3) == 0);
  REQUIRE(old_llseek(fd, -1, SEEK_END) == 6);
  const int copy = __fcntl(fd, F_DUPFD_CLOEXEC, 100);
  REQUIRE(copy >= 100 && __close(fd) == 0 && pwrite(copy, "X", 1, 6) == 1 && has(keep, 6, "X"));
  REQUIRE(__dup2(copy, 200) == 200 && close(copy) == 0 && pwrite(200, "Y", 1, 6) == 1);
  REQUIRE(has(keep, 6, "Y") && close(200) == 0);
  fd = __open64(path, O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0 && has(fd, 0, "WritteY"));
  FILE* stream = _IO_fopen(path, "r+");
  REQUIRE(stream != NULL && fputs("Str", stream) >= 0 && fclose(stream) == 0);
  REQUIRE(has(keep, 0, "Strtte"));
  stream = _IO_fdopen(dup(keep), "r+");
  REQUIRE(stream != NULL && fseek(stream, 3, SEEK_SET) == 0 && fputs("eam", stream) >= 0);
  REQUIRE(fclose(stream) == 0 && has(fd, 0, "StreamY"));
  char link[4096];
  snprintf(link, sizeof link, "%s.link", path);
  unlink(link);
  REQUIRE(symlink(path, link) == 0 && (stream = fopen(link, "r+")) != NULL);
  REQUIRE(fputs("Link", stream) >= 0 && fclose(stream) == 0 && has(fd, 0, "LinkamY"));
  sync();
  REQUIRE(syncfs(fd) == 0);
}

static volatile sig_atomic_t signals;
static void note(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  if (info->si_value.sival_int == 42) ++signals;
}

/* aio(7): the C library's threads do the work. */
static void jobs(void) {
  const int fd = open_new(0);
  char text[8] = "";
  struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
  REQUIRE(sigaction(SIGUSR2, &action, NULL) == 0);
  struct aiocb job = {.aio_fildes = fd, .aio_buf = "written", .aio_nbytes = 7, .aio_offset = 3};
  job.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
  job.aio_sigevent.sigev_signo = SIGUSR2;
  job.aio_sigevent.sigev_value.sival_int = 42;
  const struct aiocb* waited[] = {&job};
  REQUIRE(aio_write(&job) == 0);
  while (aio_error(&job) == EINPROGRESS) aio_suspend(waited, 1, NULL);
  REQUIRE(aio_return(&job) == 7 && has(fd, 3, "written"));
  while (signals == 0) usleep(1000);
  struct aiocb reads = {.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 3, .aio_offset = 3};
  reads.aio_lio_opcode = LIO_READ;
  struct aiocb writes = {.aio_fildes = fd, .aio_buf = "abc", .aio_nbytes = 3, .aio_offset = 0};
  writes.aio_lio_opcode = LIO_WRITE;
  struct aiocb* list[] = {&reads, NULL, &writes};
  REQUIRE(lio_listio(LIO_WAIT, list, 3, NULL) == 0);
  REQUIRE(aio_return(&reads) == 3 && memcmp(text, "wri", 3) == 0 && aio_return(&writes) == 3);
  REQUIRE(has(fd, 0, "abcwritten"));
  struct aiocb flush = {.aio_fildes = fd};
  waited[0] = &flush;
  REQUIRE(aio_fsync(O_DSYNC, &flush) == 0);
  while (aio_error(&flush) == EINPROGRESS) aio_suspend(waited, 1, NULL);
  REQUIRE(aio_return(&flush) == 0);
}

/* A descriptor received through a socket; here from this process itself. */
static void received(void) {
  const int fd = open_new(0);
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
  struct iovec byte = {"!", 1};
  struct msghdr message = {
      .msg_iov = &byte, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(part), &fd, sizeof fd);
  REQUIRE(sendmsg(ends[0], &message, 0) == 1);
  char got;
  byte = (struct iovec){&got, 1};
  memset(room, 0, sizeof room);
  REQUIRE(recvmsg(ends[1], &message, 0) == 1 && (part = CMSG_FIRSTHDR(&message)) != NULL);
  int other;
  memcpy(&other, CMSG_DATA(part), sizeof other);
  REQUIRE(other != fd && pwrite(fd, "same bytes", 10, 0) == 10 && has(other, 0, "same bytes"));
  REQUIRE(pwrite(other, "S", 1, 0) == 1 && has(fd, 0, "Same bytes"));
}

extern int malloc_guard_armed __attribute__((weak)); /* malloc_guard.c */

/* The library does not handle other files: it does not even allocate memory for them. */
static void unwatched(void) {
  char other[4096], link[4096], text[16];
  snprintf(other, sizeof other, "%s.other", path);
  snprintf(link, sizeof link, "%s.link", path);
  unlink(other), unlink(link);
  REQUIRE(symlink(other, link) == 0);
  struct stat status;
  struct stat64 large;
  struct statx extended;
  const struct iovec piece = {text, sizeof text};
  if (&malloc_guard_armed != NULL) malloc_guard_armed = 1;
  int fd = open(other, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  REQUIRE(fd >= 0 && write(fd, "0123456789abcdef", 16) == 16 && lseek(fd, 0, SEEK_END) == 16);
  REQUIRE(pwrite(fd, "x", 1, 0) == 1 && pread(fd, text, 4, 0) == 4 && text[0] == 'x');
  REQUIRE(preadv(fd, &piece, 1, 0) == 16 && pwritev2(fd, &piece, 1, 0, RWF_DSYNC) == 16);
  REQUIRE(fstat(fd, &status) == 0 && stat(other, &status) == 0 && lstat(link, &status) == 0);
  REQUIRE(stat64(link, &large) == 0 && old_fxstat(1, fd, &status) == 0);
  REQUIRE(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &extended) == 0 && extended.stx_size == 16);
  REQUIRE(ftruncate(fd, 8192) == 0 && truncate(other, 4096) == 0 && fallocate(fd, 0, 0, 8192) == 0);
  REQUIRE(fsync(fd) == 0 && fdatasync(fd) == 0 && sync_file_range(fd, 0, 1, 0) == 0);
  const int copy = dup(fd), last = fcntl(fd, F_DUPFD_CLOEXEC, 300);
  REQUIRE(dup2(fd, 200) == 200 && dup3(fd, 201, O_CLOEXEC) == 201 && last >= 300);
  REQUIRE(fcntl(fd, F_SETFL, O_APPEND) == 0 && flock(copy, LOCK_SH) == 0);
  char* at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(at != MAP_FAILED && msync(at, 8192, MS_SYNC) == 0 && mprotect(at, 4096, PROT_READ) == 0);
  REQUIRE(madvise(at, 4096, MADV_DONTNEED) == 0 && munmap(at, 8192) == 0);
  REQUIRE(close(copy) == 0 && close_range(200, 201, 0) == 0 && close(last) == 0);
  const int by_link = open(link, O_RDWR | O_TRUNC | O_CLOEXEC), again = creat(other, 0644);
  REQUIRE(by_link >= 0 && again >= 0 && openat(AT_FDCWD, "no such file", O_RDONLY) == -1);
  REQUIRE(sendfile(by_link, fd, NULL, 1) >= 0 &&
          copy_file_range(fd, NULL, by_link, NULL, 1, 0) <= 1);
  char* const words[] = {(char*)"none", NULL};
  REQUIRE(execve("/no such program", words, words) == -1);
  REQUIRE(close(fd) == 0 && close(by_link) == 0 && close(again) == 0);
  if (&malloc_guard_armed != NULL) malloc_guard_armed = 0;
  fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(fd >= 0 && pwrite(fd, "watched", 7, 0) == 7 && close(fd) == 0);
}

/* A file that no process has open is changed by its path. Each call is the last one of a separate
 * process. */
static void leave(const char* content) {
  const int fd = open_new(0);
  REQUIRE(write(fd, content, strlen(content)) == (ssize_t)strlen(content) && close(fd) == 0);
}
static int is(const char* content) {
  char found[64];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  const ssize_t got = read(fd, found, sizeof found);
  REQUIRE(close(fd) == 0);
  return got == (ssize_t)strlen(content) && memcmp(found, content, (size_t)got) == 0;
}
static void cut(void) {
  leave("0123456789");
  REQUIRE(truncate(path, -1) == -1 && errno == EINVAL && truncate("/", 1) == -1 && errno == EISDIR);
  REQUIRE(truncate("/no such file", 1) == -1 && errno == ENOENT);
  REQUIRE(truncate(path, 4) == 0 && is("0123"));
}
static void lengthened(void) {
  struct stat status;
  leave("0123");
  REQUIRE(truncate64(path, 100000) == 0 && stat(path, &status) == 0 && status.st_size == 100000);
}
static void cut_by_link(void) {
  char link[4096];
  snprintf(link, sizeof link, "%s.link", path);
  unlink(link);
  leave("0123456789");
  REQUIRE(symlink(path, link) == 0 && truncate(link, 3) == 0 && unlink(link) == 0 && is("012"));
}
static void cut_while_read(void) {
  leave("0123456789");
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  REQUIRE(truncate(path, 5) == 0 && size_of(fd) == 5 && has(fd, 0, "01234") && close(fd) == 0);
}
static void cut_by_number(void) {
  leave("0123456789");
  REQUIRE(syscall(SYS_truncate, path, 6L) == 0 && is("012345"));
}
static void cut_by_opening(void) {
  leave("0123456789");
  REQUIRE(close(open(path, O_WRONLY | O_TRUNC)) == 0 && is(""));
}
static void cut_by_opening_so(void) {
  struct open_how how = {.flags = O_WRONLY | O_TRUNC, .resolve = RESOLVE_NO_MAGICLINKS};
  leave("0123456789");
  const int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  REQUIRE(fd >= 0 && write(fd, "how", 3) == 3 && close(fd) == 0 && is("how"));
}
static void cut_by_stream(void) {
  leave("0123456789");
  FILE* const stream = fopen(path, "w");
  REQUIRE(stream != NULL && fclose(stream) == 0 && is(""));
}
static void added_to_table(void) {
  leave("");
  FILE* const table = setmntent(path, "a");
  const struct mntent mount = {(char*)"a", (char*)"/b", (char*)"c", (char*)"d", 0, 0};
  REQUIRE(table != NULL && addmntent(table, &mount) == 0 && endmntent(table) == 1);
  REQUIRE(is("a /b c d 0 0\n"));
}
static void replaced_by_number(void) {
  char other[4096];
  leave("old");
  snprintf(other, sizeof other, "%s.other", path);
  const int fd = creat(other, 0644);
  REQUIRE(fd >= 0 && write(fd, "new", 3) == 3 && close(fd) == 0);
  REQUIRE(syscall(SYS_renameat2, AT_FDCWD, other, AT_FDCWD, path, 0) == 0 && is("new"));
}
static void linked_by_number(void) {
  char other[4096];
  unlink(path);
  snprintf(other, sizeof other, "%s.other", path);
  const int fd = creat(other, 0644);
  REQUIRE(fd >= 0 && write(fd, "linked", 6) == 6 && close(fd) == 0);
  REQUIRE(syscall(SYS_linkat, AT_FDCWD, other, AT_FDCWD, path, 0) == 0 && unlink(other) == 0);
}
static void ended_by_number(void) {
  leave("0123456789");
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0 && pwrite(fd, "at the end", 10, 0) == 10);
  syscall(SYS_exit_group, 0);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } scenarios[] = {{"flags", flags},
                   {"append", append},
                   {"faults", faults},
                   {"old-stats", old_stats},
                   {"names", names},
                   {"jobs", jobs},
                   {"received", received},
                   {"unwatched", unwatched},
                   {"cut", cut},
                   {"lengthened", lengthened},
                   {"cut-by-link", cut_by_link},
                   {"cut-while-read", cut_while_read},
                   {"cut-by-number", cut_by_number},
                   {"cut-by-opening", cut_by_opening},
                   {"cut-by-opening-so", cut_by_opening_so},
                   {"cut-by-stream", cut_by_stream},
                   {"added-to-table", added_to_table},
                   {"replaced-by-number", replaced_by_number},
                   {"linked-by-number", linked_by_number},
                   {"ended-by-number", ended_by_number}};
  if (argc != 3) return 2;
  path = argv[2];
  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; ++i)
    if (strcmp(argv[1], scenarios[i].name) == 0) return scenarios[i].run(), 0;
  return 2;
}
