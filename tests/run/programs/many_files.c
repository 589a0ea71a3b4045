/* many_files COUNT PREFIX [soft]: has COUNT files open for writing at once, PREFIX.0 and so on, and
 * checks that all of them have their content when they are closed. Prints the resources of a
 * thousand of them: descriptors, mappings, and KiB of memory. With `soft` it keeps its soft limit
 * of descriptors. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void fail(const char* what, int number) {
  fprintf(stderr, "%s %d: %s\n", what, number, strerror(errno));
  exit(1);
}

struct use {
  long descriptors, mappings, resident_kib;
};

static struct use used(void) {
  struct use out = {0, 0, 0};
  DIR* const all = opendir("/proc/self/fd");
  while (all != NULL && readdir(all) != NULL) ++out.descriptors;
  if (all != NULL) closedir(all);
  char* line = NULL;
  size_t room = 0;
  FILE* file = fopen("/proc/self/maps", "r");
  while (file != NULL && getline(&line, &room, file) > 0) ++out.mappings;
  if (file != NULL) fclose(file);
  file = fopen("/proc/self/status", "r");
  while (file != NULL && getline(&line, &room, file) > 0)
    sscanf(line, "VmRSS: %ld", &out.resident_kib);
  if (file != NULL) fclose(file);
  free(line);
  return out;
}

static int open_one(const char* prefix, int i) {
  char path[4096], text[32];
  snprintf(path, sizeof path, "%s.%d", prefix, i);
  const int length = snprintf(text, sizeof text, "content of %d", i);
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail("open", i);
  if (file > i + 20) { /* the lower numbers are free for the program, as select(2) needs */
    errno = ERANGE;
    fail("number", i);
  }
  if (pwrite(file, text, (size_t)length, 5000) != length) fail("write", i);
  return file;
}

static void check(int file, int i) {
  char text[32], found[32] = "";
  const int length = snprintf(text, sizeof text, "content of %d", i);
  if (pread(file, found, sizeof found, 5000) != length) fail("read", i);
  if (memcmp(found, text, (size_t)length) != 0) fail("compare", i);
  if (i % 100 == 0 && fsync(file) != 0) fail("sync", i);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = atoi(argv[1]);
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
  limit.rlim_cur = limit.rlim_max;
  if (argc == 3) setrlimit(RLIMIT_NOFILE, &limit);
  int* const files = calloc((size_t)count, sizeof(int));
  if (count > 0) files[0] = open_one(argv[2], 0); /* resources that are shared by all */
  const struct use before = used();
  for (int i = 1; i < count; ++i) files[i] = open_one(argv[2], i);
  const struct use after = used();
  for (int i = 0; i < count; ++i) check(files[i], i);
  for (int i = 0; i < count; ++i)
    if (close(files[i]) != 0) fail("close", i);
  const int more = count > 1 ? count - 1 : 1;
  printf("{\"descriptors\": %ld, \"mappings\": %ld, \"resident_kib\": %ld}\n",
         (after.descriptors - before.descriptors) * 1000 / more,
         (after.mappings - before.mappings) * 1000 / more,
         (after.resident_kib - before.resident_kib) * 1000 / more);
  return 0;
}
