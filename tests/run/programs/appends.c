/* A program that opens a file, appends to it and closes it, again and again: appends SCENARIO FILE
 * [...]. After each close(2) it checks what other processes see, by system calls that the library
 * does not replace. Exits with 1, and prints the line, if a check fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "raw_call.h"
#include "require.h"

extern char** environ;

static const char* file;
static char expected[1 << 16];
static size_t length;

/* The file on the disk. */
static size_t on_disk(const char* path, char* to, size_t room) {
  const int fd = (int)call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  const ssize_t got = call(SYS_pread64, fd, (long)to, (long)room, 0);
  REQUIRE(got >= 0 && call(SYS_close, fd, 0, 0, 0) == 0);
  return (size_t)got;
}
static void expect_on_disk(void) {
  char found[sizeof expected];
  REQUIRE(on_disk(file, found, sizeof found) == length && memcmp(found, expected, length) == 0);
}

static void append_to(const char* path, const char* text, int flags) {
  const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | flags, 0644);
  REQUIRE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}
static void append(const char* text) {
  append_to(file, text, 0);
  memcpy(expected + length, text, strlen(text));
  length += strlen(text);
}
static void rounds(int count, int flags) {
  for (int i = 0; i < count; ++i) {
    char text[16];
    snprintf(text, sizeof text, "%07d\n", i);
    append_to(file, text, flags);
    memcpy(expected + length, text, 8);
    length += 8;
    expect_on_disk();
  }
}
static void kill_run(void) {
  REQUIRE(kill(getppid(), SIGKILL) == 0);
  raise(SIGKILL);
}

/* Other ways to append, and then a change that is no append. */
static void other_ways(void) {
  append("first ");
  for (int i = 0; i < 4; ++i) {
    const int fd = open(file, O_RDWR | O_CLOEXEC);
    const int other = dup(fd);
    REQUIRE(fd >= 0 && other >= 0 && lseek(fd, 0, SEEK_END) == (off_t)length);
    REQUIRE(write(fd, "second ", 7) == 7 && close(fd) == 0);
    REQUIRE(pwrite(other, "third", 5, (off_t)length + 10) == 5);
    REQUIRE(ftruncate(other, (off_t)length + 20) == 0 && close(other) == 0);
    memcpy(expected + length, "second \0\0\0third\0\0\0\0\0", 20);
    length += 20;
    expect_on_disk();
  }
  append("tail ");
  const int again = open(file, O_WRONLY | O_CLOEXEC);
  REQUIRE(again >= 0 && pwrite(again, "TAIL", 4, (off_t)length - 5) == 4 && close(again) == 0);
  memcpy(expected + length - 5, "TAIL", 4);
  expect_on_disk();
  const int fd = open(file, O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0 && pwrite(fd, "FIRST", 5, 0) == 5 && close(fd) == 0);
  memcpy(expected, "FIRST", 5);
  expect_on_disk();
  append("after");
  expect_on_disk();
  REQUIRE(truncate(file, 4) == 0);
  length = 4;
  expect_on_disk();
  append("again");
  expect_on_disk();
  const int cut = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
  REQUIRE(cut >= 0 && write(cut, "new", 3) == 3 && close(cut) == 0);
  length = 3;
  memcpy(expected, "new", 3);
  expect_on_disk();
}

/* All reads of a file whose bytes no commit has yet. */
static void reads(void) {
  char found[64], copy[4096];
  struct stat status;
  snprintf(copy, sizeof copy, "%s.copy", file);
  for (int i = 0; i < 5; ++i) {
    append("bytes ");
    REQUIRE(stat(file, &status) == 0 && status.st_size == (off_t)length);
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    if (i == 0) REQUIRE(read(fd, found, sizeof found) == (ssize_t)length);
    if (i == 1) REQUIRE(pread(fd, found, sizeof found, 0) == (ssize_t)length);
    if (i == 2) {
      const char* const at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
      REQUIRE(at != MAP_FAILED);
      memcpy(found, at, length);
      REQUIRE(munmap((void*)(size_t)at, 4096) == 0);
    }
    if (i >= 3) {
      const int to = open(copy, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      REQUIRE(to >= 0);
      off64_t from = 0;
      REQUIRE((i == 3 ? sendfile(to, fd, NULL, length)
                      : copy_file_range(fd, &from, to, NULL, length, 0)) == (ssize_t)length);
      REQUIRE(pread(to, found, sizeof found, 0) == (ssize_t)length && close(to) == 0);
    }
    REQUIRE(memcmp(found, expected, length) == 0);
    REQUIRE(fstat(fd, &status) == 0 && status.st_size == (off_t)length);
    REQUIRE(lseek(fd, 0, SEEK_END) == (off_t)length && close(fd) == 0);
  }
}

static void await(pid_t child) {
  int status = 0;
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}
static void expect_child(const char* text) {
  memcpy(expected + length, text, strlen(text));
  length += strlen(text);
  expect_on_disk();
}
/* Programs that this one starts append to the file, too. */
static void children(void) {
  char command[8192];
  snprintf(command, sizeof command, "printf 'child ' >> '%s'", file);
  char* const words[] = {"sh", "-c", command, NULL};
  append("one ");
  REQUIRE(system(command) == 0);
  expect_child("child ");
  append("two ");
  FILE* const pipe = popen(command, "r");
  REQUIRE(pipe != NULL && pclose(pipe) == 0);
  expect_child("child ");
  append("three ");
  pid_t child = 0;
  REQUIRE(posix_spawnp(&child, "sh", NULL, NULL, words, environ) == 0);
  await(child);
  expect_child("child ");
  append("four ");
  child = vfork();
  if (child == 0) {
    execv("/bin/sh", words);
    _exit(2);
  }
  await(child);
  expect_child("child ");
  append("five ");
  child = fork();
  if (child == 0) {
    append_to(file, "child ", 0);
    _exit(0);
  }
  await(child);
  expect_child("child ");
  append("six ");
  child = fork();
  if (child == 0) {
    execv("/bin/sh", words);
    _exit(2);
  }
  await(child);
  expect_child("child ");
}

/* A process that is no child of the one that has appended, and starts before that. */
static void siblings(void) {
  int ready[2], go[2];
  char byte = 0;
  REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
  const pid_t other = fork();
  if (other == 0) {
    close(ready[1]);
    for (int i = 0; i < 3; ++i) {
      if (read(ready[0], &byte, 1) != 1) _exit(1);
      append_to(file, "sibling ", 0);
      if (write(go[1], "x", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  for (int i = 0; i < 3; ++i) {
    append("this ");
    REQUIRE(write(ready[1], "x", 1) == 1 && read(go[0], &byte, 1) == 1);
    expect_child("sibling ");
  }
  await(other);
}

/* A process that is not watched appends between two rounds. */
static void outside(void) {
  for (int i = 0; i < 3; ++i) {
    append("this ");
    const int fd = (int)call(SYS_openat, AT_FDCWD, (long)file, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    REQUIRE(fd >= 0 && call(SYS_write, fd, (long)"outside ", 8, 0) == 8 &&
            call(SYS_close, fd, 0, 0, 0) == 0);
    expect_child("outside ");
  }
  append("end");
  expect_on_disk();
}

/* fork(2) about when the file is committed, a tenth of a second after close(2). */
static void forks(void) {
  for (int i = 0; i < 20; ++i) {
    append("round ");
    const struct timespec pause = {0, 98000000 + i % 10 * 1000000};
    nanosleep(&pause, NULL);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    await(child);
  }
  expect_on_disk();
}

/* Closes the file, and keeps another one in use until a third one is there. */
static void kept_beside(const char* other, const char* end) {
  append_to(file, "0000000\n", O_DSYNC);
  append_to(other, "0000000\n", O_DSYNC);
  append_to(file, "kept", 0);
  for (int i = 0; i < 3000 && access(end, F_OK) != 0; ++i) {
    append_to(other, ".", 0);
    const struct timespec pause = {0, 10000000};
    nanosleep(&pause, NULL);
  }
}

/* Two processes that append to one file, again and again. */
static void rivals(void) {
  pid_t both[2];
  for (int i = 0; i < 2; ++i) {
    both[i] = fork();
    if (both[i] != 0) continue;
    const struct timespec pause = {0, 3000000};
    for (int k = 0; k < 40; ++k) {
      append_to(file, i == 0 ? "a" : "b", 0);
      nanosleep(&pause, NULL);
    }
    _exit(0);
  }
  for (int i = 0; i < 2; ++i) await(both[i]);
  char found[128];
  int count = 0;
  REQUIRE(on_disk(file, found, sizeof found) == 80);
  for (int i = 0; i < 80; ++i) count += found[i] == 'a';
  REQUIRE(count == 40);
}

/* Another process replaces the file. */
static void replaced(void) {
  int ready[2], done[2];
  char byte = 0, new_file[4096];
  snprintf(new_file, sizeof new_file, "%s.new", file);
  REQUIRE(pipe(ready) == 0 && pipe(done) == 0);
  const pid_t other = fork();
  if (other == 0) {
    if (read(ready[0], &byte, 1) != 1) _exit(1);
    const long fd = call(SYS_openat, AT_FDCWD, (long)new_file, O_WRONLY | O_CREAT, 0644);
    if (call(SYS_write, fd, (long)"new ", 4, 0) != 4) _exit(1);
    if (call(SYS_rename, (long)new_file, (long)file, 0, 0) != 0) _exit(1);
    _exit(write(done[1], "x", 1) == 1 ? 0 : 1);
  }
  append("old");
  REQUIRE(write(ready[1], "x", 1) == 1 && read(done[0], &byte, 1) == 1);
  length = 0;
  append_to(file, "and more", 0);
  expect_child("new and more");
  await(other);
}

static void names(void) {
  char other[4096];
  snprintf(other, sizeof other, "%s.other", file);
  const char* const first = file;
  append("one ");
  REQUIRE(rename(file, other) == 0);
  file = other;
  expect_on_disk();
  append("two ");
  REQUIRE(link(other, first) == 0);
  append("three ");
  REQUIRE(unlink(other) == 0);
  file = first;
  expect_on_disk();
  append("four ");
  expect_on_disk();
  REQUIRE(unlink(file) == 0 && access(file, F_OK) != 0);
  length = 0;
  append("five");
  expect_on_disk();
}

/* The file's times are those that the program has set, and nobody reports a change. */
static void times(void) {
  struct stat status;
  append("one ");
  const struct timespec set[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(utimensat(AT_FDCWD, file, set, 0) == 0);
  REQUIRE(stat(file, &status) == 0 && status.st_mtim.tv_sec == 1000);
  append("two ");
  REQUIRE(utimensat(AT_FDCWD, file, set, 0) == 0);
}

/* FILE is appended to, OTHER is made durable, and run and program are killed. */
static void before_a_flush(const char* other) {
  append_to(other, "made ", O_DSYNC);
  rounds(1, O_DSYNC);
  append("appended");
  const int fd = open(other, O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(fd >= 0 && write(fd, "flushed", 7) == 7 && fsync(fd) == 0);
  kill_run();
}

/* OTHER's bytes are changed, and appended to, before closes of FILE. */
static void before_a_close(const char* other) {
  append_to(other, "made ", O_DSYNC);
  rounds(1, O_DSYNC);
  const int fd = open(other, O_WRONLY | O_CLOEXEC);
  REQUIRE(fd >= 0 && pwrite(fd, "MADE", 4, 0) == 4);
  append("one ");
  REQUIRE(pwrite(fd, "appended", 8, 5) == 8);
  append("two");
  expect_on_disk();
  kill_run();
}

/* Somebody changes the bytes around the library: same size, same times. */
static void changed_around(void) {
  struct stat status;
  rounds(1, O_DSYNC);
  append("appended");
  REQUIRE(stat(file, &status) == 0);
  const int fd = (int)call(SYS_openat, AT_FDCWD, (long)file, O_WRONLY | O_CLOEXEC, 0);
  REQUIRE(fd >= 0 && call(SYS_pwrite64, fd, (long)"A", 1, (long)length - 8) == 1);
  const struct timespec set[2] = {status.st_atim, status.st_mtim};
  REQUIRE(call(SYS_utimensat, fd, 0, (long)set, 0) == 0);
  kill_run();
}

/* The store cannot take the commit of a closed file. */
static void without_store(const char* store, int killed) {
  char hidden[4096];
  snprintf(hidden, sizeof hidden, "%s.hidden", store);
  rounds(1, O_DSYNC);
  rounds(3, 0);
  REQUIRE(rename(store, hidden) == 0);
  const struct timespec delay = {0, 300000000};
  nanosleep(&delay, NULL);
  expect_on_disk();
  REQUIRE(rename(hidden, store) == 0);
  if (killed) raise(SIGKILL);
}

/* Rounds in a child that is killed just before its Nth system call after the first round. */
static void killed_rounds(int* acknowledged) {
  REQUIRE(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
  raise(SIGUSR1);
  for (int i = 0; i < 5; ++i) {
    char text[16];
    snprintf(text, sizeof text, "%07d\n", i);
    append_to(file, text, 0);
    ++*acknowledged;
    if (i == 0) raise(SIGUSR2);
    if (i == 3) {
      const int fd = open(file, O_WRONLY | O_CLOEXEC);
      REQUIRE(fd >= 0 && fsync(fd) == 0 && close(fd) == 0);
    }
  }
  _exit(0);
}
/* Returns whether the child ended by itself. */
static int trace(pid_t child, int calls) {
  int status = 0, stops = 0, counts = 0;
  for (long with = 0;;) {
    REQUIRE(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? 1 : (exit(1), 0);
    if (WIFSIGNALED(status)) return 0;
    with = 0;
    if (WSTOPSIG(status) == SIGUSR2)
      counts = 1;
    else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGUSR1)
      with = WSTOPSIG(status);
    else if (WSTOPSIG(status) == SIGTRAP && counts && ++stops == 2 * calls - 1)
      REQUIRE(kill(child, SIGKILL) == 0);
    ptrace(PTRACE_SYSCALL, child, NULL, with);
  }
}
static void kills(const char* directory, int first, int step) {
  int* const acknowledged =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(acknowledged != MAP_FAILED);
  /* A round without a commit has few calls, a commit many. */
  for (int calls = first, ended = 0; !ended; calls += calls < 100 ? step : 10 * step) {
    char name[4096];
    snprintf(name, sizeof name, "%s/%d.db", directory, calls);
    file = name;
    *acknowledged = 0;
    const pid_t child = fork();
    if (child == 0) killed_rounds(acknowledged);
    ended = trace(child, calls);
    printf("%d %d\n", calls, *acknowledged);
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  REQUIRE(argc >= 3);
  const char* const scenario = argv[1];
  file = argv[2];
  if (strcmp(scenario, "rounds") == 0) rounds(56, 0);
  if (strcmp(scenario, "rounds-dsync") == 0) rounds(8, O_DSYNC);
  if (strcmp(scenario, "other-ways") == 0) other_ways();
  if (strcmp(scenario, "reads") == 0) reads();
  if (strcmp(scenario, "children") == 0) children();
  if (strcmp(scenario, "siblings") == 0) siblings();
  if (strcmp(scenario, "rivals") == 0) rivals();
  if (strcmp(scenario, "outside") == 0) outside();
  if (strcmp(scenario, "kept-beside") == 0) kept_beside(argv[3], argv[4]);
  if (strcmp(scenario, "forks") == 0) forks();
  if (strcmp(scenario, "replaced") == 0) replaced();
  if (strcmp(scenario, "names") == 0) names();
  if (strcmp(scenario, "times") == 0) times();
  if (strcmp(scenario, "before-flush") == 0) before_a_flush(argv[3]);
  if (strcmp(scenario, "before-close") == 0) before_a_close(argv[3]);
  if (strcmp(scenario, "changed-around") == 0) changed_around();
  if (strcmp(scenario, "without-store") == 0) without_store(argv[3], 0);
  if (strcmp(scenario, "without-store-killed") == 0) without_store(argv[3], 1);
  if (strcmp(scenario, "kills") == 0) kills(argv[2], atoi(argv[3]), atoi(argv[4]));
  if (strcmp(scenario, "killed") == 0) rounds(1, O_DSYNC), rounds(5, 0), kill_run();
  return 0;
}
