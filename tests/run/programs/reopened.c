/* Threads that write, close and reopen files while another one flushes its own: reopened DIRECTORY.
 * Exits with 1 if an opening is refused. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "require.h"

enum { kRounds = 40 };
static const char* directory;
static atomic_int stop;

static int open_at(const char* name, long thread, int round, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%ld-%d", directory, name, thread, round);
  const int fd = open(path, O_RDWR | O_CREAT | flags, 0644);
  REQUIRE(fd >= 0);
  return fd;
}

static void* flush(void* given) {
  static const char bytes[8192] = "flushed";
  const int fd = open_at("flushed", (long)given, 0, 0);
  for (long at = 0; !stop; at = (at + 4096) % 65536)
    REQUIRE(pwrite(fd, bytes, sizeof bytes, at) == sizeof bytes && fsync(fd) == 0);
  close(fd);
  return NULL;
}

static void* write_again(void* given) {
  static const char bytes[3000] = "written";
  for (int round = 0; round < kRounds; ++round) {
    int fd = open_at("written", (long)given, round, 0);
    REQUIRE(write(fd, bytes, sizeof bytes) == sizeof bytes);
    close(fd);
    fd = open_at("written", (long)given, round, O_APPEND);
    REQUIRE(fsync(fd) == 0);
    close(fd);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  directory = argv[1];
  pthread_t flusher, writers[2];
  REQUIRE(pthread_create(&flusher, NULL, flush, NULL) == 0);
  for (long i = 0; i < 2; ++i)
    REQUIRE(pthread_create(&writers[i], NULL, write_again, (void*)i) == 0);
  for (int i = 0; i < 2; ++i) pthread_join(writers[i], NULL);
  stop = 1;
  pthread_join(flusher, NULL);
  return 0;
}
