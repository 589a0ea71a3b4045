/* A program that writes one file without a flush, makes another one durable, and is killed:
 * write_order SCENARIO DIRECTORY. FIRST.db has the first writes; MADE.db and SECOND.db show the
 * later ones. Exits with 1, and prints the line, if a check fails. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "require.h"

static int open_new(const char* name) {
  const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  REQUIRE(fd >= 0);
  return fd;
}
static void put(int fd, const char* text) {
  REQUIRE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}
/* A file with this content, closed. */
static void make(const char* name, const char* text) {
  const int fd = open_new(name);
  put(fd, text);
  REQUIRE(close(fd) == 0);
}
static char* map(int fd) {
  char* const at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(at != MAP_FAILED);
  return at;
}

/* The second step. Creating a file would be such a change itself. */
static int open_made(int flags) {
  const int fd = open("MADE.db", O_RDWR | O_CLOEXEC | flags);
  REQUIRE(fd >= 0);
  put(fd, "after");
  return fd;
}
static void closes(void) { REQUIRE(close(open_made(0)) == 0); }
static void unmaps(void) {
  const int fd = open_made(0);
  char* const at = map(fd);
  REQUIRE(close(fd) == 0 && munmap(at, 4096) == 0);
}
static void flushes(void) { REQUIRE(fsync(open_made(0)) == 0); }
static void flushes_data(void) { REQUIRE(fdatasync(open_made(0)) == 0); }
static void writes_through(void) { open_made(O_DSYNC); }
static void syncs_mapping(void) {
  char* const at = map(open_made(0));
  memcpy(at, "AFTER", 5);
  REQUIRE(msync(at, 4096, MS_SYNC) == 0);
}
static void sets_times(void) {
  const struct timespec times[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(futimens(open_made(0), times) == 0);
}
static void creates(void) { open_new("SECOND.db"); }
static void renames(void) { REQUIRE(rename("MADE.db", "SECOND.db") == 0); }
static void links(void) { REQUIRE(link("MADE.db", "SECOND.db") == 0); }
static void removes(void) { REQUIRE(unlink("MADE.db") == 0); }
static void moves_directory(void) { REQUIRE(rename("made", "second") == 0); }

static const struct {
  const char* name;
  void (*run)(void);
} seconds[] = {{"close", closes},           {"munmap", unmaps},
               {"fsync", flushes},          {"fdatasync", flushes_data},
               {"O_DSYNC", writes_through}, {"msync", syncs_mapping},
               {"futimens", sets_times},    {"open", creates},
               {"rename", renames},         {"link", links},
               {"unlink", removes},         {"rename directory", moves_directory}};

/* The first change by a call other than write(2) at the end. */
static void writes_first(int fd) { put(fd, "earlier"); }
static void shortens(int fd) {
  put(fd, "earlier and more");
  REQUIRE(fsync(fd) == 0 && ftruncate(fd, 7) == 0);
}
static void clears(int fd) {
  put(fd, "earlierXX");
  REQUIRE(fsync(fd) == 0);
  REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 7, 2) == 0);
}
static void writes_while_mapped(int fd) {
  put(fd, "before ");
  REQUIRE(fsync(fd) == 0);
  map(fd);
  REQUIRE(pwrite(fd, "earlier", 7, 0) == 7);
}
static void stores(int fd) {
  put(fd, "flushed");
  char* const at = map(fd);
  REQUIRE(msync(at, 4096, MS_SYNC) == 0);
  memcpy(at, "earlier", 7);
}

static const struct {
  const char* name;
  void (*run)(int fd);
} firsts[] = {{"write", writes_first},
              {"ftruncate", shortens},
              {"fallocate", clears},
              {"write beside a mapping", writes_while_mapped},
              {"store", stores}};

/* The names, in the order in which the files on the disk change when the last is closed. */
static void prints_order(void) {
  const char* const names[] = {"a.db", "b.db", "c.db", "d.db"};
  const int order[] = {2, 0, 3, 1};
  int fds[4];
  for (int i = 0; i < 4; ++i) {
    fds[i] = open_new(names[i]);
    REQUIRE(ftruncate(fds[i], 4096) == 0 && fsync(fds[i]) == 0);
  }
  const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  for (int i = 0; i < 4; ++i) put(fds[order[i]], "x");
  put(fds[2], "again");
  REQUIRE(inotify_add_watch(events, ".", IN_MODIFY) >= 0);
  REQUIRE(close(fds[3]) == 0);
  char room[16384] __attribute__((aligned(8)));
  char last[256] = "";
  const ssize_t got = read(events, room, sizeof room);
  REQUIRE(got > 0);
  for (ssize_t at = 0; at < got;) {
    const struct inotify_event* const event = (const struct inotify_event*)(room + at);
    at += (ssize_t)(sizeof *event + event->len);
    const char* const dot = strrchr(event->name, '.');
    if (dot == NULL || strcmp(dot, ".db") != 0 || strcmp(last, event->name) == 0) continue;
    snprintf(last, sizeof last, "%s", event->name);
    puts(last);
  }
}

int main(int argc, char** argv) {
  REQUIRE(argc >= 3 && chdir(argv[2]) == 0);
  if (strcmp(argv[1], "order") == 0) return prints_order(), 0;
  REQUIRE(argc == 4 && mkdir("made", 0755) == 0);
  make("MADE.db", "later");
  make("made/MADE.db", "later");
  const int fd = open_new("FIRST.db");
  for (size_t i = 0; i < sizeof firsts / sizeof *firsts; ++i)
    if (strcmp(argv[1], firsts[i].name) == 0) firsts[i].run(fd);
  for (size_t i = 0; i < sizeof seconds / sizeof *seconds; ++i)
    if (strcmp(argv[3], seconds[i].name) == 0) seconds[i].run();
  return raise(SIGKILL);
}
