/* Ends at once, and leaves a process running: leaves_running SCENARIO FILE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "require.h"

static void put(int file, const char* text) {
  REQUIRE(write(file, text, strlen(text)) == (ssize_t)strlen(text));
}

/* It is killed with uncommitted content, while `vellum run` waits only for this process. */
static void be_killed(int file) {
  usleep(500000);
  put(file, " late");
  REQUIRE(fsync(file) == 0);
  put(file, " unflushed");
  raise(SIGKILL);
}

int main(int argc, char** argv) {
  int ready[2];
  char byte;
  if (argc != 3 || pipe(ready) != 0) return 2;
  if (fork() != 0) {
    close(ready[1]);
    return read(ready[0], &byte, 1) == 1 ? 0 : 1;
  }
  setsid();
  const int holds = strcmp(argv[1], "holds-nothing") != 0;
  const int file = holds ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
  if (strcmp(argv[1], "ignores") == 0) signal(SIGTERM, SIG_IGN);
  if (holds) put(file, "early");
  if (holds) REQUIRE(fsync(file) == 0);
  REQUIRE(write(ready[1], "", 1) == 1);
  if (strcmp(argv[1], "is-killed") == 0) be_killed(file);
  for (;;) pause();
}
