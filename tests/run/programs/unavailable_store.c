/* The store of this program is temporarily renamed, so that nothing can be made durable meanwhile:
 * unavailable_store SCENARIO FILE STORE. The first write is committed before. Exits with 1, and
 * prints the line, if a check fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "require.h"

static const char* store;
static char hidden[4096];

static void hide_store(void) { REQUIRE(rename(store, hidden) == 0); }
static void show_store(void) { REQUIRE(rename(hidden, store) == 0); }

/* The next fsync(2) commits the writes of a failed one. Nothing else does: the program is killed. */
static void flushes_again(int fd) {
  hide_store();
  REQUIRE(fsync(fd) == -1);
  show_store();
  REQUIRE(fsync(fd) == 0);
  raise(SIGKILL);
}

/* A file that cannot be committed when it is closed is committed at the end. */
static void closes(int fd) {
  hide_store();
  close(fd);
  show_store();
}

int main(int argc, char** argv) {
  REQUIRE(argc == 4);
  store = argv[3];
  snprintf(hidden, sizeof hidden, "%s.hidden", store);
  const int fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(fd >= 0 && ftruncate(fd, 8192) == 0 && pwrite(fd, "first", 5, 0) == 5 && fsync(fd) == 0);
  REQUIRE(pwrite(fd, "second", 6, 5000) == 6);
  if (strcmp(argv[1], "flushes-again") == 0) flushes_again(fd);
  if (strcmp(argv[1], "closes") == 0) closes(fd);
  return 0;
}
