/* A program without any code for Vellum, which creates, writes, renames and removes files with a
 * few names in an order that depends on a seed: name_sequences DIRECTORY SEED STEPS. It prints the
 * result of each call, and the content of all names and all descriptors after it. Run by itself and
 * under `vellum run`, it has to print the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kNames = 7, kDescriptors = 5, kMaxBytes = 20000 };

static const char* const names[kNames] = {"a.db",     "b.db",      "c.tmp",    "d.tmp",
                                          "sub/e.db", "sub2/e.db", "sub/f.tmp"};
static int descriptors[kDescriptors] = {-1, -1, -1, -1, -1};
static uint64_t state;

static unsigned chosen(unsigned count) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % count;
}
static const char* any_name(void) { return names[chosen(kNames)]; }
static int any_descriptor(void) { return descriptors[chosen(kDescriptors)]; }

/* FNV-1a. */
static uint64_t hash_of(int fd, off_t size) {
  static unsigned char bytes[kMaxBytes];
  const ssize_t got = pread(fd, bytes, sizeof bytes, 0);
  uint64_t hash = 1469598103934665603u ^ (uint64_t)size;
  for (ssize_t i = 0; i < got; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

static void print_file(const char* what, int fd) {
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) {
    printf(" %s:-", what);
    return;
  }
  const int reads = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY;
  printf(" %s:%lld,%u,%016llx", what, (long long)status.st_size, (unsigned)status.st_nlink,
         reads ? (unsigned long long)hash_of(fd, status.st_size) : 0u);
}

static void print_all(void) {
  for (int i = 0; i < kNames; ++i) {
    struct stat status;
    const int fd = open(names[i], O_RDONLY | O_CLOEXEC);
    print_file(names[i], fd);
    if (fd >= 0 && (stat(names[i], &status) != 0 || close(fd) != 0)) printf("?");
  }
  for (int i = 0; i < kDescriptors; ++i) {
    char number[8];
    snprintf(number, sizeof number, "%d", i);
    print_file(number, descriptors[i]);
  }
  printf("\n");
}

static void done(const char* what, long result) {
  printf("%s %ld %d |", what, result, result < 0 ? errno : 0);
  print_all();
}

static void open_one(void) {
  static const int flags[] = {O_RDWR,
                              O_RDWR | O_CREAT,
                              O_RDWR | O_CREAT | O_TRUNC,
                              O_RDWR | O_CREAT | O_EXCL,
                              O_WRONLY | O_CREAT | O_APPEND,
                              O_WRONLY | O_TRUNC,
                              O_RDONLY};
  const unsigned slot = chosen(kDescriptors), kind = chosen(sizeof flags / sizeof *flags);
  const char* const name = any_name();
  if (descriptors[slot] >= 0) close(descriptors[slot]);
  descriptors[slot] = open(name, flags[kind] | O_CLOEXEC, 0644);
  printf("open %s %u -> %d\n", name, kind, descriptors[slot] < 0 ? errno : 0);
  done("open", 0);
}

static void write_some(void) {
  char text[3000];
  const size_t length = 1 + chosen(sizeof text);
  memset(text, 'a' + (int)chosen(26), length);
  const int fd = any_descriptor();
  const int appends = fd >= 0 && (fcntl(fd, F_GETFL) & O_APPEND) != 0;
  if (appends || chosen(2) == 0) return done("write", write(fd, text, length));
  done("pwrite", pwrite(fd, text, length, chosen(12000)));
}

/* As in programs that write a temporary file first, such as git for its objects. */
static void link_and_unlink(void) {
  const char *const from = any_name(), *const to = any_name();
  const long linked = link(from, to);
  if (linked == 0) unlink(from);
  printf("link %s %s\n", from, to);
  done("link", linked);
}

static void rename_one(unsigned flags) {
  const char *const from = any_name(), *const to = any_name();
  printf("rename %u %s %s\n", flags, from, to);
  done("rename", flags == 0 ? rename(from, to) : renameat2(AT_FDCWD, from, AT_FDCWD, to, flags));
}

static void rename_directory(void) {
  done("exchange", renameat2(AT_FDCWD, "sub", AT_FDCWD, "sub2", RENAME_EXCHANGE));
}

static void remove_one(void) {
  const char* const name = any_name();
  printf("remove %s\n", name);
  done("remove", chosen(2) == 0 ? unlink(name) : remove(name));
}

static void step(void) {
  switch (chosen(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return open_one();
    case 4:
    case 5:
    case 6:
    case 7:
      return write_some();
    case 8:
      return done("ftruncate", ftruncate(any_descriptor(), chosen(15000)));
    case 9:
      return done("truncate", truncate(any_name(), chosen(15000)));
    case 10:
      return done("fsync", fsync(any_descriptor()));
    case 11:
      return rename_one(0);
    case 12:
      return rename_one(chosen(2) == 0 ? RENAME_EXCHANGE : RENAME_NOREPLACE);
    case 13:
      return chosen(4) == 0 ? rename_directory() : link_and_unlink();
    default:
      return remove_one();
  }
}

int main(int argc, char** argv) {
  if (argc != 4 || chdir(argv[1]) != 0 || mkdir("sub", 0755) != 0 || mkdir("sub2", 0755) != 0)
    return 2;
  state = strtoull(argv[2], NULL, 10);
  const long steps = strtol(argv[3], NULL, 10);
  for (long i = 0; i < steps; ++i) {
    printf("%ld ", i);
    step();
  }
  return 0;
}
