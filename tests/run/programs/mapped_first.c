/* A program that maps a file for reading, and opens it for writing afterwards, as Lucene does to
 * flush it: mapped_first SCENARIO FILE. Exits with 1, and prints the line, if the mapping does not
 * show the content of the file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "require.h"

enum { kPage = 4096, kPages = 6, kBytes = kPage * kPages - 1000 };

static const char* path;
static const char* view; /* of all pages */

static int open_to(int flags) {
  const int fd = open(path, flags | O_CLOEXEC, 0644);
  REQUIRE(fd >= 0);
  return fd;
}

static void make_and_map(void) {
  static char content[kBytes];
  memset(content, 'a', sizeof content);
  int fd = open_to(O_RDWR | O_CREAT | O_TRUNC);
  REQUIRE(write(fd, content, sizeof content) == kBytes && fsync(fd) == 0 && close(fd) == 0);
  fd = open_to(O_RDONLY);
  view = mmap(NULL, kPage * kPages, PROT_READ, MAP_SHARED, fd, 0);
  REQUIRE(view != MAP_FAILED && close(fd) == 0 && view[kBytes - 1] == 'a' && view[kBytes] == 0);
}

static void put(int fd, const char* text, off_t at) {
  const size_t length = strlen(text);
  REQUIRE(pwrite(fd, text, length, at) == (ssize_t)length);
  REQUIRE(memcmp(view + at, text, length) == 0);
}

/* Lucene: FileChannel.open(path, WRITE), force(), close(). */
static void flush_only(void) {
  make_and_map();
  for (int i = 0; i < 3; ++i) {
    const int fd = open_to(O_WRONLY);
    REQUIRE(fsync(fd) == 0 && close(fd) == 0 && view[0] == 'a' && view[kBytes - 1] == 'a');
  }
}

static void writes(void) {
  make_and_map();
  int fd = open_to(O_RDWR);
  put(fd, "first", 0);
  put(fd, "over two pages", kPage - 5);
  put(fd, "at the end, and behind it", kBytes - 10);
  REQUIRE(fsync(fd) == 0 && memcmp(view, "first", 5) == 0);
  put(fd, "again", 0);
  REQUIRE(madvise((void*)view, kPage * kPages, MADV_DONTNEED) == 0);
  REQUIRE(memcmp(view, "again", 5) == 0 && close(fd) == 0);
  REQUIRE(memcmp(view, "again", 5) == 0 && memcmp(view + kPage - 5, "over two pages", 14) == 0);
  fd = open_to(O_RDWR | O_APPEND);
  REQUIRE(write(fd, "appended", 8) == 8 && memcmp(view + kBytes + 15, "appended", 8) == 0);
  REQUIRE(mprotect((void*)view, kPage, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
  REQUIRE(close(fd) == 0);
}

static void cuts(void) {
  make_and_map();
  const int fd = open_to(O_RDWR);
  REQUIRE(ftruncate(fd, 100) == 0 && view[99] == 'a' && view[100] == 0 && view[kPage - 1] == 0);
  REQUIRE(ftruncate(fd, 3 * kPage) == 0 && view[100] == 0 && view[2 * kPage] == 0);
  put(fd, "grown", 2 * kPage);
  REQUIRE(fallocate(fd, FALLOC_FL_ZERO_RANGE, 10, 20) == 0 && view[9] == 'a' && view[10] == 0);
  REQUIRE(view[30] == 'a' && fsync(fd) == 0 && view[10] == 0 && close(fd) == 0 && view[10] == 0);
}

/* The addresses of an unmapped range are reused. */
static void unmaps(void) {
  make_and_map();
  const int fd = open_to(O_RDWR);
  put(fd, "first", kPage);
  REQUIRE(munmap((void*)(view + 2 * kPage), 2 * kPage) == 0);
  char* const other = mmap((void*)(view + 2 * kPage), 2 * kPage, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  REQUIRE(other == view + 2 * kPage);
  static char text[kPage * 4];
  memset(text, 'x', sizeof text);
  REQUIRE(pwrite(fd, text, sizeof text, kPage) == sizeof text);
  REQUIRE(view[2 * kPage - 1] == 'x' && other[0] == 0 && other[2 * kPage - 1] == 0);
  REQUIRE(view[4 * kPage] == 'x' && view[5 * kPage - 1] == 'x' && view[5 * kPage] == 'a');
  REQUIRE(mmap((void*)view, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == view);
  REQUIRE(pwrite(fd, "y", 1, 0) == 1 && view[0] == 0 && close(fd) == 0 && view[0] == 0);
  REQUIRE(other[0] == 0 && view[kPage] == 'x');
}

/* It loses its name while it is open, and remains usable. */
static void renamed(void) {
  char other[4096];
  make_and_map();
  int fd = open_to(O_RDWR);
  put(fd, "named", 0);
  snprintf(other, sizeof other, "%s.other", path);
  REQUIRE(rename(path, other) == 0 && memcmp(view, "named", 5) == 0);
  put(fd, "other", 0);
  put(fd, "last", kBytes - 4);
  REQUIRE(close(fd) == 0 && rename(other, path) == 0 && memcmp(view, "other", 5) == 0);
  fd = open_to(O_RDWR);
  put(fd, "here again", 100);
  REQUIRE(close(fd) == 0);
}

static void forks(void) {
  make_and_map();
  const int fd = open_to(O_RDWR);
  put(fd, "before", 0);
  const pid_t child = fork();
  if (child == 0) _exit(memcmp(view, "before", 6) == 0 ? 0 : 1);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  put(fd, "after", 0);
  REQUIRE(close(fd) == 0);
}

/* Only under `vellum run`: stores to a mapping would be visible in no view. */
static void refused(void) {
  make_and_map();
  int fd = open_to(O_RDWR);
  REQUIRE(mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  REQUIRE(errno == EBUSY);
  char* const reads = mmap(NULL, kPage, PROT_READ, MAP_SHARED, fd, 0);
  REQUIRE(reads != MAP_FAILED && mprotect(reads, kPage, PROT_READ | PROT_WRITE) == -1);
  REQUIRE(errno == EBUSY && munmap(reads, kPage) == 0);
  REQUIRE(munmap((void*)view, kPage * kPages) == 0);
  char* const stores = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(stores != MAP_FAILED);
  stores[0] = 'S';
  REQUIRE(munmap(stores, kPage) == 0 && close(fd) == 0);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } scenarios[] = {{"flush-only", flush_only}, {"writes", writes},   {"cuts", cuts},
                   {"unmaps", unmaps},         {"renamed", renamed}, {"forks", forks},
                   {"refused", refused}};
  if (argc != 3) return 2;
  path = argv[2];
  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; ++i)
    if (strcmp(argv[1], scenarios[i].name) == 0) return scenarios[i].run(), 0;
  return 2;
}
