// The names that _FORTIFY_SOURCE gives to functions of wide characters. Those of other functions
// are next to the functions.
#include <cstdarg>
#include <cstdlib>
#include <cwchar>

#include "compiler/runtime/marked.hpp"

using vellum::msync::marked;

extern "C" {
wchar_t* __wmemcpy_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wmemmove_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wmempcpy_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wmemset_chk(wchar_t*, wchar_t, size_t, size_t);
wchar_t* __wcscpy_chk(wchar_t*, const wchar_t*, size_t);
wchar_t* __wcpcpy_chk(wchar_t*, const wchar_t*, size_t);
wchar_t* __wcsncpy_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wcpncpy_chk(wchar_t*, const wchar_t*, size_t, size_t);
wchar_t* __wcscat_chk(wchar_t*, const wchar_t*, size_t);
wchar_t* __wcsncat_chk(wchar_t*, const wchar_t*, size_t, size_t);
int __vswprintf_chk(wchar_t*, size_t, int, size_t, const wchar_t*, va_list);
size_t __mbstowcs_chk(wchar_t*, const char*, size_t, size_t);
size_t __wcstombs_chk(char*, const wchar_t*, size_t, size_t);
}

namespace {

wchar_t* marked_characters(wchar_t* at, size_t count) {
  return marked(at, count * sizeof(wchar_t));
}
// Marks from `begin` to the terminating zero.
void mark_string(wchar_t* begin) { marked_characters(begin, wcslen(begin) + 1); }

}  // namespace

#define COPIES(name)                                                                          \
  VELLUM_WRAP(wchar_t*, name)(wchar_t * to, const wchar_t* from, size_t count, size_t room) { \
    wchar_t* result = name(to, from, count, room);                                            \
    marked_characters(to, count);                                                             \
    return result;                                                                            \
  }
COPIES(__wmemcpy_chk)
COPIES(__wmemmove_chk)
COPIES(__wmempcpy_chk)
COPIES(__wcsncpy_chk)
COPIES(__wcpncpy_chk)

VELLUM_WRAP(wchar_t*, __wmemset_chk)(wchar_t* to, wchar_t value, size_t count, size_t room) {
  return marked_characters(__wmemset_chk(to, value, count, room), count);
}
VELLUM_WRAP(wchar_t*, wcpncpy)(wchar_t* to, const wchar_t* from, size_t count) {
  wchar_t* result = wcpncpy(to, from, count);
  marked_characters(to, count);
  return result;
}
VELLUM_WRAP(wchar_t*, __wcscpy_chk)(wchar_t* to, const wchar_t* from, size_t room) {
  __wcscpy_chk(to, from, room);
  mark_string(to);
  return to;
}
VELLUM_WRAP(wchar_t*, __wcpcpy_chk)(wchar_t* to, const wchar_t* from, size_t room) {
  wchar_t* end = __wcpcpy_chk(to, from, room);
  mark_string(to);
  return end;
}
VELLUM_WRAP(wchar_t*, __wcscat_chk)(wchar_t* to, const wchar_t* from, size_t room) {
  wchar_t* old_end = to + wcslen(to);
  __wcscat_chk(to, from, room);
  mark_string(old_end);
  return to;
}
VELLUM_WRAP(wchar_t*, __wcsncat_chk)(wchar_t* to, const wchar_t* from, size_t count, size_t room) {
  wchar_t* old_end = to + wcslen(to);
  __wcsncat_chk(to, from, count, room);
  mark_string(old_end);
  return to;
}

VELLUM_WRAP(int, __vswprintf_chk)
(wchar_t* to, size_t room, int flag, size_t object, const wchar_t* format, va_list values) {
  const int length = __vswprintf_chk(to, room, flag, object, format, values);
  if (room != 0) marked_characters(to, length < 0 ? room : static_cast<size_t>(length) + 1);
  return length;
}
VELLUM_WRAP(int, __swprintf_chk)
(wchar_t* to, size_t room, int flag, size_t object, const wchar_t* format, ...) {
  va_list values;
  va_start(values, format);
  const int length = vellum_wrap___vswprintf_chk(to, room, flag, object, format, values);
  va_end(values);
  return length;
}
VELLUM_WRAP(size_t, __mbstowcs_chk)(wchar_t* to, const char* from, size_t count, size_t room) {
  const size_t got = __mbstowcs_chk(to, from, count, room);
  if (to != nullptr) marked_characters(to, got < count ? got + 1 : count);
  return got;
}
VELLUM_WRAP(size_t, __wcstombs_chk)(char* to, const wchar_t* from, size_t bytes, size_t room) {
  const size_t got = __wcstombs_chk(to, from, bytes, room);
  if (to != nullptr) marked(to, got < bytes ? got + 1 : bytes);
  return got;
}
