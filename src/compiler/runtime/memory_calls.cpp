// Functions that write a given number of bytes.
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include <strings.h>
#include <unistd.h>

#include "compiler/runtime/marked.hpp"

using vellum::msync::marked;

extern "C" {
void* __memcpy_chk(void*, const void*, size_t, size_t);
void* __memmove_chk(void*, const void*, size_t, size_t);
void* __memset_chk(void*, int, size_t, size_t);
void* __mempcpy_chk(void*, const void*, size_t, size_t);
void __explicit_bzero_chk(void*, size_t, size_t);
}

VELLUM_WRAP(void*, memcpy)(void* to, const void* from, size_t bytes) {
  return marked(memcpy(to, from, bytes), bytes);
}
VELLUM_WRAP(void*, memmove)(void* to, const void* from, size_t bytes) {
  return marked(memmove(to, from, bytes), bytes);
}
VELLUM_WRAP(void*, memset)(void* to, int value, size_t bytes) {
  return marked(memset(to, value, bytes), bytes);
}
VELLUM_WRAP(void*, mempcpy)(void* to, const void* from, size_t bytes) {
  return static_cast<char*>(marked(memcpy(to, from, bytes), bytes)) + bytes;
}
VELLUM_WRAP(void*, memccpy)(void* to, const void* from, int last, size_t bytes) {
  void* end = memccpy(to, from, last, bytes);
  const auto written = static_cast<char*>(end) - static_cast<char*>(to);
  marked(to, end == nullptr ? bytes : static_cast<size_t>(written));
  return end;
}
VELLUM_WRAP(void, bzero)(void* to, size_t bytes) { marked(memset(to, 0, bytes), bytes); }
VELLUM_WRAP(void, bcopy)(const void* from, void* to, size_t bytes) {
  marked(memmove(to, from, bytes), bytes);
}
VELLUM_WRAP(void, explicit_bzero)(void* to, size_t bytes) {
  explicit_bzero(to, bytes);
  marked(to, bytes);
}
VELLUM_WRAP(void, swab)(const void* from, void* to, ssize_t bytes) {
  swab(from, to, bytes);
  if (bytes > 0) marked(to, static_cast<size_t>(bytes));
}

VELLUM_WRAP(wchar_t*, wmemcpy)(wchar_t* to, const wchar_t* from, size_t count) {
  return marked(wmemcpy(to, from, count), count * sizeof(wchar_t));
}
VELLUM_WRAP(wchar_t*, wmemmove)(wchar_t* to, const wchar_t* from, size_t count) {
  return marked(wmemmove(to, from, count), count * sizeof(wchar_t));
}
VELLUM_WRAP(wchar_t*, wmemset)(wchar_t* to, wchar_t value, size_t count) {
  return marked(wmemset(to, value, count), count * sizeof(wchar_t));
}
VELLUM_WRAP(wchar_t*, wmempcpy)(wchar_t* to, const wchar_t* from, size_t count) {
  return marked(wmemcpy(to, from, count), count * sizeof(wchar_t)) + count;
}

VELLUM_WRAP(void*, __memcpy_chk)(void* to, const void* from, size_t bytes, size_t room) {
  return marked(__memcpy_chk(to, from, bytes, room), bytes);
}
VELLUM_WRAP(void*, __memmove_chk)(void* to, const void* from, size_t bytes, size_t room) {
  return marked(__memmove_chk(to, from, bytes, room), bytes);
}
VELLUM_WRAP(void*, __memset_chk)(void* to, int value, size_t bytes, size_t room) {
  return marked(__memset_chk(to, value, bytes, room), bytes);
}
VELLUM_WRAP(void*, __mempcpy_chk)(void* to, const void* from, size_t bytes, size_t room) {
  void* end = __mempcpy_chk(to, from, bytes, room);
  marked(to, bytes);
  return end;
}
VELLUM_WRAP(void, __explicit_bzero_chk)(void* to, size_t bytes, size_t room) {
  __explicit_bzero_chk(to, bytes, room);
  marked(to, bytes);
}

namespace {

// Marks in the destructor, also after a comparison has thrown.
class Sorting {
 public:
  Sorting(void* at, size_t bytes) noexcept : at_(at), bytes_(bytes) {}
  ~Sorting() { marked(at_, bytes_); }
  Sorting(const Sorting&) = delete;
  Sorting& operator=(const Sorting&) = delete;

 private:
  void* at_;
  size_t bytes_;
};

}  // namespace

VELLUM_WRAP(void, qsort)(void* at, size_t count, size_t bytes,
                         int (*compare)(const void*, const void*)) {
  const Sorting sorting(at, count * bytes);
  qsort(at, count, bytes, compare);
}
VELLUM_WRAP(void, qsort_r)(void* at, size_t count, size_t bytes,
                           int (*compare)(const void*, const void*, void*), void* argument) {
  const Sorting sorting(at, count * bytes);
  qsort_r(at, count, bytes, compare, argument);
}
