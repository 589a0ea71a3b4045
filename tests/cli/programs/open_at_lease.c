/* Preloaded, it opens VELLUM_TEST_OPEN just before the program takes its write lease number
   VELLUM_TEST_LEASE: as if another program had opened it at this moment. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int at_fcntl(int file, int command, long argument) {
  static int leases = 0;
  const char* const opened = getenv("VELLUM_TEST_OPEN");
  const char* const lease = getenv("VELLUM_TEST_LEASE");
  if (opened != NULL && lease != NULL && command == F_SETLEASE && argument == F_WRLCK &&
      ++leases == atoi(lease))
    (void)!open(opened, O_RDONLY | O_CLOEXEC);
  return (int)syscall(SYS_fcntl, file, command, argument);
}

#define PASS_ON                             \
  va_list rest;                             \
  va_start(rest, command);                  \
  const long argument = va_arg(rest, long); \
  va_end(rest);                             \
  return at_fcntl(file, command, argument)

int fcntl(int file, int command, ...) { PASS_ON; }
int fcntl64(int file, int command, ...) { PASS_ON; }
