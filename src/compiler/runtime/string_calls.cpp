// Functions that write strings: marks include the terminating zero.
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "compiler/runtime/marked.hpp"

using vellum::msync::mark_object;
using vellum::msync::marked;

extern "C" {
char* __stpcpy_chk(char*, const char*, size_t);
char* __strncpy_chk(char*, const char*, size_t, size_t);
char* __stpncpy_chk(char*, const char*, size_t, size_t);
char* __strcat_chk(char*, const char*, size_t);
char* __strncat_chk(char*, const char*, size_t, size_t);
}

namespace {

// `end`: the position of the terminating zero.
char* marked_to(char* begin, char* end) {
  return marked(begin, static_cast<size_t>(end - begin) + 1);
}
wchar_t* marked_to(wchar_t* begin, wchar_t* end) {
  return marked(begin, (static_cast<size_t>(end - begin) + 1) * sizeof(wchar_t));
}
// Marks from the old terminating zero to the new one.
char* marked_appended(char* to, size_t old_length) {
  marked_to(to + old_length, to + old_length + strlen(to + old_length));
  return to;
}
wchar_t* marked_appended(wchar_t* to, size_t old_length) {
  marked_to(to + old_length, to + old_length + wcslen(to + old_length));
  return to;
}
// A token ends in a zero that has been written, unless it is the last one.
char* marked_token(char* token) {
  if (token != nullptr) marked(token + strlen(token), 1);
  return token;
}

}  // namespace

VELLUM_WRAP(char*, strcpy)(char* to, const char* from) { return marked_to(to, stpcpy(to, from)); }
VELLUM_WRAP(char*, stpcpy)(char* to, const char* from) {
  char* end = stpcpy(to, from);
  marked_to(to, end);
  return end;
}
VELLUM_WRAP(char*, strncpy)(char* to, const char* from, size_t bytes) {
  return marked(strncpy(to, from, bytes), bytes);
}
VELLUM_WRAP(char*, stpncpy)(char* to, const char* from, size_t bytes) {
  char* end = stpncpy(to, from, bytes);
  marked(to, bytes);
  return end;
}
VELLUM_WRAP(char*, strcat)(char* to, const char* from) {
  const size_t length = strlen(to);
  marked_to(to + length, stpcpy(to + length, from));
  return to;
}
VELLUM_WRAP(char*, strncat)(char* to, const char* from, size_t bytes) {
  const size_t length = strlen(to);
  return marked_appended(strncat(to, from, bytes), length);
}
VELLUM_WRAP(size_t, strxfrm)(char* to, const char* from, size_t bytes) {
  const size_t length = strxfrm(to, from, bytes);
  marked(to, length < bytes ? length + 1 : bytes);
  return length;
}

VELLUM_WRAP(char*, strtok)(char* text, const char* between) {
  return marked_token(strtok(text, between));
}
VELLUM_WRAP(char*, strtok_r)(char* text, const char* between, char** rest) {
  char* token = strtok_r(text, between, rest);
  mark_object(rest);
  return marked_token(token);
}
VELLUM_WRAP(char*, __strtok_r)(char* text, const char* between, char** rest) {
  return vellum_wrap_strtok_r(text, between, rest);
}
VELLUM_WRAP(char*, strsep)(char** rest, const char* between) {
  char* token = strsep(rest, between);
  mark_object(rest);
  return marked_token(token);
}

VELLUM_WRAP(wchar_t*, wcscpy)(wchar_t* to, const wchar_t* from) {
  return marked_to(to, wcpcpy(to, from));
}
VELLUM_WRAP(wchar_t*, wcpcpy)(wchar_t* to, const wchar_t* from) {
  wchar_t* end = wcpcpy(to, from);
  marked_to(to, end);
  return end;
}
VELLUM_WRAP(wchar_t*, wcsncpy)(wchar_t* to, const wchar_t* from, size_t count) {
  return marked(wcsncpy(to, from, count), count * sizeof(wchar_t));
}
VELLUM_WRAP(wchar_t*, wcscat)(wchar_t* to, const wchar_t* from) {
  const size_t length = wcslen(to);
  return marked_appended(wcscat(to, from), length);
}
VELLUM_WRAP(wchar_t*, wcsncat)(wchar_t* to, const wchar_t* from, size_t count) {
  const size_t length = wcslen(to);
  return marked_appended(wcsncat(to, from, count), length);
}
// Counts exclude the zero, which is written if there is room. After a failed conversion the number
// of written characters is unknown.
VELLUM_WRAP(size_t, mbstowcs)(wchar_t* to, const char* from, size_t count) {
  const size_t got = mbstowcs(to, from, count);
  if (to != nullptr) marked(to, (got < count ? got + 1 : count) * sizeof(wchar_t));
  return got;
}
VELLUM_WRAP(size_t, wcstombs)(char* to, const wchar_t* from, size_t bytes) {
  const size_t got = wcstombs(to, from, bytes);
  if (to != nullptr) marked(to, got < bytes ? got + 1 : bytes);
  return got;
}

VELLUM_WRAP(char*, __strcpy_chk)(char* to, const char* from, size_t room) {
  return marked_to(to, __stpcpy_chk(to, from, room));
}
VELLUM_WRAP(char*, __stpcpy_chk)(char* to, const char* from, size_t room) {
  char* end = __stpcpy_chk(to, from, room);
  marked_to(to, end);
  return end;
}
VELLUM_WRAP(char*, __strncpy_chk)(char* to, const char* from, size_t bytes, size_t room) {
  return marked(__strncpy_chk(to, from, bytes, room), bytes);
}
VELLUM_WRAP(char*, __stpncpy_chk)(char* to, const char* from, size_t bytes, size_t room) {
  char* end = __stpncpy_chk(to, from, bytes, room);
  marked(to, bytes);
  return end;
}
VELLUM_WRAP(char*, __strcat_chk)(char* to, const char* from, size_t room) {
  const size_t length = strlen(to);
  return marked_appended(__strcat_chk(to, from, room), length);
}
VELLUM_WRAP(char*, __strncat_chk)(char* to, const char* from, size_t bytes, size_t room) {
  const size_t length = strlen(to);
  return marked_appended(__strncat_chk(to, from, bytes, room), length);
}
