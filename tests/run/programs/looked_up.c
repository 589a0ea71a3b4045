/* A program that calls functions that it has looked up, as foreign function interfaces do:
 * looked_up HOW FILE. Writes and flushes with these functions, reports that, and is killed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "require.h"

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif

static const char* how;

static void* library(void) {
  if (strcmp(how, "dlmopen") == 0) return dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
  if (strcmp(how, "program") == 0) return dlopen(NULL, RTLD_NOW);
  return dlopen("libc.so.6", RTLD_NOW);
}
static void* function(const char* name) {
  static void* from = NULL;
  if (strcmp(how, "default") == 0) return dlsym(RTLD_DEFAULT, name);
  if (strcmp(how, "next") == 0) return dlsym(RTLD_NEXT, name);
  if (from == NULL) from = library();
  REQUIRE(from != NULL);
  if (strcmp(how, "dlvsym") == 0) return dlvsym(from, name, OLDEST);
  if (strcmp(how, "twice") == 0) {
    void* (*look)(void*, const char*) = (void* (*)(void*, const char*))dlsym(from, "dlsym");
    return look(from, name);
  }
  return dlsym(from, name);
}

/* The program's own abs(3) is the first, and the C library's the next after the program's. */
int abs(int value) { return value + 1000; }

static void answers_as_from_here(void) {
  void* const libc = dlopen("libc.so.6", RTLD_NOW);
  REQUIRE(dlsym(RTLD_DEFAULT, "abs") == (void*)abs);
  REQUIRE(dlsym(RTLD_NEXT, "abs") != (void*)abs && dlsym(RTLD_NEXT, "abs") == dlsym(libc, "abs"));
  REQUIRE(dlsym(RTLD_NEXT, "fdatasync") == (void*)fdatasync);
  REQUIRE(dlsym(RTLD_DEFAULT, "fdatasync") == (void*)fdatasync);
  REQUIRE(dlsym(libc, "fdatasync") == (void*)fdatasync);
  REQUIRE(dlsym(libc, "no_such_function") == NULL && dlerror() != NULL);
  REQUIRE(dlvsym(libc, "fdatasync", "GLIBC_0.1") == NULL && dlerror() != NULL);
  REQUIRE(dlvsym(RTLD_NEXT, "fdatasync", "GLIBC_0.1") == NULL ||
          dlvsym(RTLD_NEXT, "fdatasync", OLDEST) == (void*)fdatasync);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  how = argv[1];
  if (strcmp(how, "answers") == 0) return answers_as_from_here(), 0;
  int (*flush)(int) = (int (*)(int))function("fdatasync");
  int (*sync_map)(void*, size_t, int) = (int (*)(void*, size_t, int))function("msync");
  ssize_t (*put)(int, const void*, size_t, off_t) =
      (ssize_t(*)(int, const void*, size_t, off_t))function("pwrite");
  ssize_t (*get)(int, void*, size_t, off_t) =
      (ssize_t(*)(int, void*, size_t, off_t))function("pread");
  void* (*map)(void*, size_t, int, int, int, off_t) =
      (void* (*)(void*, size_t, int, int, int, off_t))function("mmap");
  REQUIRE(flush != NULL && sync_map != NULL && put != NULL && get != NULL && map != NULL);
  char found[8] = "";
  const int fd = open(argv[2], O_RDWR | O_CREAT, 0644);
  REQUIRE(fd >= 0 && ftruncate(fd, 65536) == 0);
  REQUIRE(pwrite(fd, "own", 3, 0) == 3 && get(fd, found, 3, 0) == 3 &&
          memcmp(found, "own", 3) == 0);
  REQUIRE(put(fd, "put", 3, 0) == 3 && pread(fd, found, 3, 0) == 3 && memcmp(found, "put", 3) == 0);
  REQUIRE(pwrite(fd, "flushed", 7, 4096) == 7 && flush(fd) == 0);
  char* const at = map(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(at != MAP_FAILED);
  strcpy(at + 8192, "acknowledged");
  REQUIRE(sync_map(at, 65536, MS_SYNC) == 0);
  return raise(SIGKILL);
}
