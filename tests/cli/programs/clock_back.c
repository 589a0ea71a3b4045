/* Preloaded, it sets a program's clock back by VELLUM_TEST_CLOCK_BACK seconds. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  const char* const seconds = getenv("VELLUM_TEST_CLOCK_BACK");
  if (result == 0 && clock == CLOCK_REALTIME && seconds != NULL) now->tv_sec -= atoll(seconds);
  return result;
}
