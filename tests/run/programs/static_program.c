/* Statically linked: the dynamic linker does not run. Writes: static_program FILE TEXT OFFSET. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 4) return 0;
  const int fd = open(argv[1], O_WRONLY | O_CREAT, 0644);
  const ssize_t length = (ssize_t)strlen(argv[2]);
  return pwrite(fd, argv[2], (size_t)length, atol(argv[3])) == length ? 0 : 1;
}
