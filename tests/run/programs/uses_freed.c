/* A program with an error for AddressSanitizer, after a write to FILE: uses_freed FILE. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;
  char* const byte = malloc(3);
  if (fd < 0 || byte == NULL || write(fd, "x", 1) != 1 || fsync(fd) != 0) return 2;
  free(byte);
  return byte[1];
}
