// Functions that convert values to text, and text to values.
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cwchar>

#include "compiler/runtime/marked.hpp"

using vellum::msync::mark_object;
using vellum::msync::marked;

extern "C" {
int __vsprintf_chk(char*, int, size_t, const char*, va_list);
int __vsnprintf_chk(char*, size_t, int, size_t, const char*, va_list);
void sincos(double, double*, double*);
void sincosf(float, float*, float*);
void sincosl(long double, long double*, long double*);
}

namespace {

// `length` is that of the whole text. At most `room` bytes of it have been written, including the
// terminating zero. If it is negative, the call has failed, and part of the text may have been
// written.
int marked_text(char* at, size_t room, int length) {
  if (room == 0) return length;
  const size_t written = length < 0 ? strnlen(at, room) : static_cast<size_t>(length);
  marked(at, written < room ? written + 1 : room);
  return length;
}
constexpr size_t kNoLimit = static_cast<size_t>(-1);

int wide_text(wchar_t* at, size_t room, int length) {
  if (room != 0)
    marked(at, (length < 0 ? room : static_cast<size_t>(length) + 1) * sizeof(wchar_t));
  return length;
}

}  // namespace

VELLUM_WRAP(int, vsprintf)(char* to, const char* format, va_list values) {
  return marked_text(to, kNoLimit, vsprintf(to, format, values));
}
VELLUM_WRAP(int, vsnprintf)(char* to, size_t room, const char* format, va_list values) {
  return marked_text(to, room, vsnprintf(to, room, format, values));
}
VELLUM_WRAP(int, __vsprintf_chk)(char* to, int flag, size_t room, const char* format,
                                 va_list values) {
  return marked_text(to, room, __vsprintf_chk(to, flag, room, format, values));
}
VELLUM_WRAP(int, __vsnprintf_chk)
(char* to, size_t room, int flag, size_t object, const char* format, va_list values) {
  return marked_text(to, room, __vsnprintf_chk(to, room, flag, object, format, values));
}
VELLUM_WRAP(int, vswprintf)(wchar_t* to, size_t room, const wchar_t* format, va_list values) {
  return wide_text(to, room, vswprintf(to, room, format, values));
}

// The same with the values after the format.
#define WITH_VALUES(call)    \
  va_list values;            \
  va_start(values, format);  \
  const int length = (call); \
  va_end(values);            \
  return length

VELLUM_WRAP(int, sprintf)(char* to, const char* format, ...) {
  WITH_VALUES(vellum_wrap_vsprintf(to, format, values));
}
VELLUM_WRAP(int, snprintf)(char* to, size_t room, const char* format, ...) {
  WITH_VALUES(vellum_wrap_vsnprintf(to, room, format, values));
}
VELLUM_WRAP(int, __sprintf_chk)(char* to, int flag, size_t room, const char* format, ...) {
  WITH_VALUES(vellum_wrap___vsprintf_chk(to, flag, room, format, values));
}
VELLUM_WRAP(int, __snprintf_chk)
(char* to, size_t room, int flag, size_t object, const char* format, ...) {
  WITH_VALUES(vellum_wrap___vsnprintf_chk(to, room, flag, object, format, values));
}
VELLUM_WRAP(int, swprintf)(wchar_t* to, size_t room, const wchar_t* format, ...) {
  WITH_VALUES(vellum_wrap_vswprintf(to, room, format, values));
}

// strftime(3) returns 0 if the buffer is too small, but may have written part of it.
VELLUM_WRAP(size_t, strftime)(char* to, size_t room, const char* format, const struct tm* when) {
  const size_t length = strftime(to, room, format, when);
  marked(to, length == 0 ? room : length + 1);
  return length;
}

#define TEXT_TO_INTEGER(type, name)                                 \
  VELLUM_WRAP(type, name)(const char* text, char** end, int base) { \
    const type value = name(text, end, base);                       \
    mark_object(end);                                               \
    return value;                                                   \
  }
#define TEXT_TO_REAL(type, name)                          \
  VELLUM_WRAP(type, name)(const char* text, char** end) { \
    const type value = name(text, end);                   \
    mark_object(end);                                     \
    return value;                                         \
  }
TEXT_TO_INTEGER(long, strtol)
TEXT_TO_INTEGER(long long, strtoll)
TEXT_TO_INTEGER(unsigned long, strtoul)
TEXT_TO_INTEGER(unsigned long long, strtoull)
TEXT_TO_REAL(float, strtof)
TEXT_TO_REAL(double, strtod)
TEXT_TO_REAL(long double, strtold)

#define TWO_PARTS(type, name, second)                  \
  VELLUM_WRAP(type, name)(type value, second * part) { \
    const type other = name(value, part);              \
    mark_object(part);                                 \
    return other;                                      \
  }
TWO_PARTS(double, frexp, int)
TWO_PARTS(float, frexpf, int)
TWO_PARTS(long double, frexpl, int)
TWO_PARTS(double, modf, double)
TWO_PARTS(float, modff, float)
TWO_PARTS(long double, modfl, long double)

#define SINE_AND_COSINE(type, name)                                 \
  VELLUM_WRAP(void, name)(type value, type * sine, type * cosine) { \
    name(value, sine, cosine);                                      \
    mark_object(sine);                                              \
    mark_object(cosine);                                            \
  }
SINE_AND_COSINE(double, sincos)
SINE_AND_COSINE(float, sincosf)
SINE_AND_COSINE(long double, sincosl)
