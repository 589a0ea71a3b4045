/* A program that locks its own file: with the C library, and with its own system calls, as Rust's
 * rustix does. locks FILE. Exits with 1 if a free lock is refused. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "require.h"

static long raw(long number, long a, long b, long c) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#endif
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
  REQUIRE(fd >= 0 && write(fd, "x", 1) == 1);
  REQUIRE(flock(fd, LOCK_EX | LOCK_NB) == 0);
  /* The lock is effective: another open file does not get it, a child that shares this one does. */
  const int other = open(argv[1], O_RDONLY);
  REQUIRE(other >= 0 && flock(other, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK);
  REQUIRE(raw(SYS_flock, other, LOCK_SH | LOCK_NB, 0) == -EWOULDBLOCK);
  const pid_t child = fork();
  if (child == 0) _exit(flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : 1);
  int status = 1;
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  REQUIRE(flock(fd, LOCK_UN) == 0 && flock(other, LOCK_SH | LOCK_NB) == 0);
  close(other);
  REQUIRE(raw(SYS_flock, fd, LOCK_EX | LOCK_NB, 0) == 0 && raw(SYS_flock, fd, LOCK_UN, 0) == 0);
  struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  REQUIRE(raw(SYS_fcntl, fd, F_OFD_SETLK, (long)&all) == 0);
  all.l_type = F_UNLCK;
  REQUIRE(fcntl(fd, F_OFD_SETLK, &all) == 0);
  all.l_type = F_WRLCK;
  REQUIRE(fcntl(fd, F_SETLK, &all) == 0 && lockf(fd, F_ULOCK, 0) == 0);
  return 0;
}
