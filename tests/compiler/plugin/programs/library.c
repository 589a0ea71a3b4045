/* Library functions that write memory, called by name and through pointers. As in stores.c, they write
 * nonzero bytes over zeros; where a function writes a 0, the check is not exact. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "tracked.h"

static char text[400];
static wchar_t wide[400];
static int fd;
static FILE* file;

/* The statement, with its own address `at`. Calls through volatile pointers use the address that was
 * taken in this file. */
#define CHECK(name, ...)                                     \
  do {                                                       \
    for (unsigned round = 0; round < 12; ++round) {          \
      char* at = tracked_begin() + 8 * tracked_random(2000); \
      const unsigned n = tracked_random(300) + 1;            \
      (void)n;                                               \
      __VA_ARGS__;                                           \
      tracked_check(#name, exact);                           \
    }                                                        \
  } while (0)
#define PTR(function) __typeof__(&function) volatile function##_pointer = function

static int by_value(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
static int by_value_r(const void* a, const void* b, void* c) {
  (void)c;
  return by_value(a, b);
}
static void fill(char* at, unsigned n) {
  for (unsigned i = 0; i < n; ++i) ((int*)at)[i] = (int)tracked_random(1000) + 1;
}
static int formatted(char* at, size_t room, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(at, room, format, values);
  va_end(values);
  return length;
}

static void memory(void) {
  int exact = 1;
  PTR(memcpy);
  PTR(memmove);
  PTR(memset);
  PTR(mempcpy);
  PTR(memccpy);
  CHECK(memcpy, memcpy_pointer(at, text, n));
  CHECK(memmove, memmove_pointer(at, text, n));
  CHECK(memset, memset_pointer(at, 3, n));
  CHECK(mempcpy, mempcpy_pointer(at, text, n));
  CHECK(memccpy, memccpy_pointer(at, text, text[n], 300));
  CHECK(memccpy_none, memccpy(at, text, 0, n));
  CHECK(swab, swab(text, at, (ssize_t)(n & ~1u)));
  CHECK(wmemcpy, wmemcpy(((wchar_t*)at), wide, n));
  CHECK(wmemmove, wmemmove(((wchar_t*)at), wide, n));
  CHECK(wmemset, wmemset(((wchar_t*)at), 0x01010101, n));
  CHECK(wmempcpy, wmempcpy(((wchar_t*)at), wide, n));
  CHECK(bcopy, bcopy(text, at, n));
  exact = 0;
  CHECK(bzero, memset(at, 1, 400); tracked_commit("bzero"); bzero(at, n));
  CHECK(explicit_bzero, memset(at, 1, 400); tracked_commit("bzero"); explicit_bzero(at, n));
  CHECK(qsort, fill(at, n); tracked_commit("qsort"); qsort(at, n, 4, by_value));
  CHECK(qsort_r, fill(at, n); tracked_commit("qsort_r"); qsort_r(at, n, 4, by_value_r, NULL));
}

static void strings(void) {
  int exact = 0;
  PTR(strcpy);
  PTR(stpcpy);
  CHECK(strcpy, strcpy_pointer(at, text + n));
  CHECK(stpcpy, *stpcpy_pointer(at, text + n) = 'x');
  CHECK(strncpy, strncpy(at, text + 300, n));
  CHECK(strncpy_cut, strncpy(at, text, n));
  CHECK(stpncpy, stpncpy(at, text + 300, n));
  CHECK(strcat, strcpy(at, "begins"); tracked_commit("strcat"); strcat(at, text + n));
  CHECK(strncat, strcpy(at, "begins"); tracked_commit("strncat"); strncat(at, text, n));
  CHECK(strxfrm, strxfrm(at, text + n, 400));
  CHECK(strtok, strcpy(at, "one,two;three"); tracked_commit("strtok"); strtok(at, ",");
        strtok(NULL, ";"));
  CHECK(strtok_r, strcpy(at, "one,two;three"); tracked_commit("strtok_r");
        strtok_r(at, ",", (char**)(at + 800)));
  CHECK(strsep, strcpy(at, "one,two"); *(char**)(at + 800) = at; tracked_commit("strsep");
        strsep((char**)(at + 800), ","));
  CHECK(wcscpy, wcscpy((wchar_t*)at, wide + n));
  CHECK(wcpcpy, wcpcpy((wchar_t*)at, wide + n));
  CHECK(wcsncpy, wcsncpy((wchar_t*)at, wide, n));
  CHECK(wcscat, *(wchar_t*)at = 'x'; tracked_commit("wcscat"); wcscat((wchar_t*)at, wide + n));
  CHECK(wcsncat, *(wchar_t*)at = 'x'; tracked_commit("wcsncat"); wcsncat((wchar_t*)at, wide, n));
  CHECK(mbstowcs, mbstowcs((wchar_t*)at, text + n, 400));
  CHECK(wcstombs, wcstombs(at, wide + n, 400));
}

static void formats(void) {
  int exact = 0;
  PTR(snprintf);
  CHECK(sprintf, sprintf(at, "%s %u", text + n, n));
  CHECK(snprintf, snprintf_pointer(at, n, "%s %u", text + n, n));
  CHECK(snprintf_nothing, snprintf(at, 0, "%s %u", text + n, n));
  CHECK(vsnprintf, formatted(at, 400, "%s", text + n));
  CHECK(swprintf, swprintf((wchar_t*)at, 100, L"%d and %d", (int)n, (int)n));
  CHECK(strftime, const time_t now = 1000000; strftime(at, 100, "%F %T", gmtime(&now)));
  CHECK(strtol, strtol("12x", (char**)at, 10); strtod("1.5x", (char**)(at + 80));
        strtoull("7", (char**)(at + 160), 0));
  CHECK(frexp, frexp(n + 0.3, (int*)at); modf(n + 0.3, (double*)(at + 80));
        modff((float)n + 0.3f, (float*)(at + 160)));
  CHECK(sincos, sincos(n, (double*)at, (double*)(at + 80)));
}

static void files(void) {
  int exact = 0;
  PTR(read);
  CHECK(read, lseek(fd, 0, SEEK_SET); if (read_pointer(fd, at, n) < 0) abort());
  CHECK(pread, if (pread(fd, at, 5000, 7) < 0) abort());
  CHECK(readv, struct iovec two[2] = {{at, n}, {at + 2000, 400}}; lseek(fd, 0, SEEK_SET);
        if (readv(fd, two, 2) < 0) abort());
  CHECK(preadv, struct iovec two[2] = {{at, n}, {at + 2000, 400}};
        if (preadv(fd, two, 2, 1) < 0) abort());
  CHECK(fread, rewind(file); if (fread(at, 7, n, file) == 0) abort());
  CHECK(fgets, rewind(file); if (!fgets(at, (int)n + 1, file)) abort());
  CHECK(fstat, fstat(fd, (struct stat*)at); stat("/", (struct stat*)(at + 300));
        lstat("/", (struct stat*)(at + 600)));
  CHECK(fstatat, fstatat(AT_FDCWD, "/", (struct stat*)at, 0));
  CHECK(getcwd, if (!getcwd(at, 4096)) abort());
  CHECK(realpath, if (!realpath("/usr/lib/..", at)) abort());
  CHECK(readlink, if (readlink("/proc/self/exe", at, 300) < 0) abort());
  CHECK(recv, int ends[2]; if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
        if (write(ends[0], text, n) < 0 || recv(ends[1], at, 400, 0) < 0) abort();
        struct iovec piece = {at + 500, 400}; struct msghdr* message = (struct msghdr*)(at + 1000);
        message->msg_iov = &piece; message->msg_iovlen = 1; tracked_commit("recv");
        if (write(ends[0], text, n) < 0 || recvmsg(ends[1], message, 0) < 0) abort();
        if (write(ends[0], text, n) < 0 || recvfrom(ends[1], at + 2000, 400, 0, NULL, NULL) < 0)
            abort();
        close(ends[0]); close(ends[1]));
}

static void machine(void) {
  int exact = 0;
  CHECK(time, time((time_t*)at); gettimeofday((struct timeval*)(at + 80), NULL);
        clock_gettime(CLOCK_REALTIME, (struct timespec*)(at + 160)));
  CHECK(gmtime_r, const time_t now = 1000000000; gmtime_r(&now, (struct tm*)at);
        localtime_r(&now, (struct tm*)(at + 100)); ctime_r(&now, at + 200));
  CHECK(getrandom, if (getrandom(at, n, 0) < 0 || getentropy(at + 400, 100)) abort());
  CHECK(uname, uname((struct utsname*)at); gethostname(at + 500, 64));
  CHECK(inet_ntop, const uint32_t address = 0x01020304; inet_ntop(AF_INET, &address, at, 100));
  CHECK(pipe, if (pipe((int*)at)) abort(); close(((int*)at)[0]); close(((int*)at)[1]));
}

int main(void) {
  for (unsigned i = 0; i < 399; ++i) {
    text[i] = (char)('a' + tracked_random(26));
    wide[i] = L'a' + (wchar_t)tracked_random(26);
  }
  fd = open("/usr/include/stdio.h", O_RDONLY);
  file = fdopen(dup(fd), "r");
  if (fd < 0 || file == NULL) return 2;
  memory();
  strings();
  formats();
  files();
  machine();
  return tracked_end();
}
