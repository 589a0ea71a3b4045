// Functions that return facts about files, times and the machine.
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "compiler/runtime/marked.hpp"

using vellum::msync::mark_object;
using vellum::msync::marked;
using vellum::msync::marked_count;

extern "C" {
char* __getcwd_chk(char*, size_t, size_t);
char* __realpath_chk(const char*, char*, size_t);
ssize_t __readlink_chk(const char*, char*, size_t, size_t);
ssize_t __readlinkat_chk(int, const char*, char*, size_t, size_t);
int __gethostname_chk(char*, size_t, size_t);
}

namespace {

// A failed call may have written something, of unknown length.
char* marked_path(char* to, size_t room, char* path) {
  if (to != nullptr) marked(to, path == nullptr ? room : strlen(path) + 1);
  return path;
}

}  // namespace

VELLUM_WRAP(char*, getcwd)(char* to, size_t room) {
  return marked_path(to, room, getcwd(to, room));
}
VELLUM_WRAP(char*, __getcwd_chk)(char* to, size_t room, size_t object) {
  return marked_path(to, room, __getcwd_chk(to, room, object));
}
VELLUM_WRAP(char*, realpath)(const char* path, char* to) {
  return marked_path(to, PATH_MAX, realpath(path, to));
}
VELLUM_WRAP(char*, __realpath_chk)(const char* path, char* to, size_t room) {
  return marked_path(to, PATH_MAX, __realpath_chk(path, to, room));
}
VELLUM_WRAP(ssize_t, readlink)(const char* path, char* to, size_t room) {
  return marked_count(to, readlink(path, to, room));
}
VELLUM_WRAP(ssize_t, readlinkat)(int directory, const char* path, char* to, size_t room) {
  return marked_count(to, readlinkat(directory, path, to, room));
}
VELLUM_WRAP(ssize_t, __readlink_chk)(const char* path, char* to, size_t room, size_t object) {
  return marked_count(to, __readlink_chk(path, to, room, object));
}

VELLUM_WRAP(ssize_t, __readlinkat_chk)
(int directory, const char* path, char* to, size_t room, size_t object) {
  return marked_count(to, __readlinkat_chk(directory, path, to, room, object));
}

// Functions that fill an object and return an error code.
#define FILLS(name, parameters, arguments) \
  VELLUM_WRAP(int, name) parameters {      \
    const int result = name arguments;     \
    mark_object(out);                      \
    return result;                         \
  }
FILLS(stat, (const char* path, struct stat* out), (path, out))
FILLS(lstat, (const char* path, struct stat* out), (path, out))
FILLS(fstat, (int fd, struct stat* out), (fd, out))
FILLS(fstatat, (int fd, const char* path, struct stat* out, int flags), (fd, path, out, flags))
FILLS(stat64, (const char* path, struct stat64* out), (path, out))
FILLS(lstat64, (const char* path, struct stat64* out), (path, out))
FILLS(fstat64, (int fd, struct stat64* out), (fd, out))
FILLS(fstatat64, (int fd, const char* path, struct stat64* out, int flags), (fd, path, out, flags))
FILLS(clock_gettime, (clockid_t clock, timespec* out), (clock, out))
FILLS(clock_getres, (clockid_t clock, timespec* out), (clock, out))
FILLS(uname, (utsname * out), (out))
FILLS(gettimeofday, (timeval * out, void* zone), (out, zone))

VELLUM_WRAP(time_t, time)(time_t* out) {
  const time_t now = time(out);
  mark_object(out);
  return now;
}
VELLUM_WRAP(tm*, localtime_r)(const time_t* when, tm* out) {
  tm* result = localtime_r(when, out);
  mark_object(out);
  return result;
}
VELLUM_WRAP(tm*, gmtime_r)(const time_t* when, tm* out) {
  tm* result = gmtime_r(when, out);
  mark_object(out);
  return result;
}
VELLUM_WRAP(char*, ctime_r)(const time_t* when, char* to) {
  return marked_path(to, 26, ctime_r(when, to));
}
VELLUM_WRAP(char*, asctime_r)(const tm* when, char* to) {
  return marked_path(to, 26, asctime_r(when, to));
}

VELLUM_WRAP(ssize_t, getrandom)(void* to, size_t bytes, unsigned flags) {
  return marked_count(to, getrandom(to, bytes, flags));
}
VELLUM_WRAP(int, getentropy)(void* to, size_t bytes) {
  const int result = getentropy(to, bytes);
  marked(to, bytes);
  return result;
}
VELLUM_WRAP(int, gethostname)(char* to, size_t room) {
  const int result = gethostname(to, room);
  marked(to, room);
  return result;
}
VELLUM_WRAP(int, __gethostname_chk)(char* to, size_t room, size_t object) {
  const int result = __gethostname_chk(to, room, object);
  marked(to, room);
  return result;
}
VELLUM_WRAP(const char*, inet_ntop)(int family, const void* from, char* to, socklen_t room) {
  const char* text = inet_ntop(family, from, to, room);
  marked(to, text == nullptr ? room : strlen(text) + 1);
  return text;
}
VELLUM_WRAP(int, pipe)(int* ends) {
  const int result = pipe(ends);
  marked(ends, 2 * sizeof(int));
  return result;
}
VELLUM_WRAP(int, pipe2)(int* ends, int flags) {
  const int result = pipe2(ends, flags);
  marked(ends, 2 * sizeof(int));
  return result;
}
