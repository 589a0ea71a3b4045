/* A program that knows nothing of Vellum, and checks that its file is what files are. Run by itself
 * and under `vellum run`: file_calls SCENARIO FILE. Exits with 1, and the line, where something is
 * not so. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUIRE(holds)                                                         \
  do {                                                                         \
    if (!(holds)) {                                                            \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #holds, strerror(errno)); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

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

/* All ways to the same bytes. */
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

/* Three threads count in words of the same pages, one of them flushes: what a commit takes along,
 * or gives back to the page cache, must not take a word back. */
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

/* A program outside writes the file, too. */
static void outsider(void) {
  char command[4096];
  const int fd = open_new(2 * kPage);
  REQUIRE(pwrite(fd, "first", 5, 0) == 5 && fsync(fd) == 0);
  snprintf(command, sizeof command,
           "printf outside | env -u LD_PRELOAD dd of='%s' seek=1 bs=%d conv=notrunc 2>&1", path,
           kPage);
  REQUIRE(system(command) == 0);
  for (int i = 0; i < 3; ++i) REQUIRE(pwrite(fd, "again", 5, i) == 5 && fsync(fd) == 0);
}

/* What has been written is there for the next process, whether it was flushed or not. */
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
  /* A child that lives on has none of its locks, and may write when the parent does not. */
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

/* A number that the next program knows. */
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

/* What goes to a file behind the back of who stands in front of the C library. */
static void unseen(void) {
  REQUIRE(close(open_new(kPage)) == 0);
  const int reader = open(path, O_RDONLY | O_CLOEXEC);
  char* at = map(reader, kPage, PROT_READ, 0);
  REQUIRE(close(reader) == 0 && open(path, O_RDWR | O_CLOEXEC) == -1 && errno == EBUSY);
  REQUIRE(munmap(at, kPage) == 0);

  char name[4096];
  snprintf(name, sizeof name, "%s.other", path);
  const int other = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(other >= 0 && write(other, "renamed", 7) == 7 && rename(name, path) == 0);
  REQUIRE(open(path, O_RDWR | O_CLOEXEC) == -1 && errno == EBUSY && close(other) == 0);

  const int fd = open(path, O_RDWR | O_CLOEXEC), standard = dup(STDOUT_FILENO);
  REQUIRE(fd >= 0 && has(fd, 0, "renamed") && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
  REQUIRE(write(STDOUT_FILENO, "written", 7) == 7);
  REQUIRE(printf("past it") == 7 && fflush(stdout) == EOF);
  REQUIRE(dup2(standard, STDOUT_FILENO) == STDOUT_FILENO && has(fd, 0, "written"));
  REQUIRE(freopen(path, "w", stdin) == NULL && errno == ENOTSUP);
}

/* Only what `vellum run` refuses. */
static void refused(void) {
  const int fd = open_new(kPage);
  REQUIRE(fcntl(fd, F_DUPFD, kHanded) == kHanded);
  char* at = map(fd, kPage, PROT_READ | PROT_WRITE, 0);
  const pid_t child = fork();
  if (child == 0) {
    REQUIRE(pwrite(fd, "no", 2, 0) == -1 && errno == ENOTSUP);
    at[0] = 'c';
    REQUIRE(msync(at, kPage, MS_SYNC) == -1 && errno == ENOTSUP);
    execlp("/proc/self/exe", "file_calls", "second", path, NULL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  REQUIRE(at[0] == 0 && unlink(path) == -1 && errno == EBUSY);
  REQUIRE(rename(path, "/tmp/elsewhere") == -1 && errno == EBUSY);
  REQUIRE(mmap(NULL, kPage, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == ENOTSUP);
  REQUIRE(mmap(at, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED);
  /* A daemon closes what it does not know. */
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
/* Until it is told to end. */
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
      {"copies", copies},
      {"threads", threads},
      {"outsider", outsider},
      {"kept", kept},
      {"kept-at-exit-now", kept_at_exit_now},
      {"kept-by-close", kept_by_close},
      {"killed", killed},
      {"killed-before-a-commit", killed_before_a_commit},
      {"killed-behind-a-synchronous-write", killed_behind_a_synchronous_write},
      {"forks", forks},
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
