/* A program that makes its system calls itself, like Go's programs, and has the note of Go's
 * linker: raw_calls FILE TEXT. With a third argument it opens and flushes the file with the C
 * library, but its writes bypass it, like those of io_uring and Linux AIO. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw_call.h"

static const struct {
  unsigned name_bytes, content_bytes, type;
  char name[4], content[4];
} go_note __attribute__((section(".note.go.buildid"), used)) = {4, 4, 4, "Go\0", "test"};

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int flags = O_RDWR | O_CREAT;
  const long fd = argc > 3 ? open(argv[1], flags, 0644)
                           : call(SYS_openat, AT_FDCWD, (long)argv[1], flags, 0644);
  const long length = (long)strlen(argv[2]);
  if (argc > 3 && (write((int)fd, "by the library", 14) != 14 || fsync((int)fd) != 0)) return 1;
  if (call(SYS_pwrite64, fd, (long)argv[2], length, 20) != length) return 1;
  return argc > 3 && fsync((int)fd) != 0;
}
