// compiler/runtime/marked.hpp: the marks of wrappers of library functions. A wrapper is called
// vellum_wrap_<function>. It has the function's signature, calls the function, and marks the bytes
// that it has written. For untracked memory, marking is a compare.
#pragma once

#include <vellum/cards.h>

#include <cerrno>
#include <cstddef>

// A wrapper's name and parameters: VELLUM_WRAP(int, close)(int fd) {...}
#define VELLUM_WRAP(result, name) extern "C" result vellum_wrap_##name

namespace vellum::msync {

template <typename T>
T* marked(T* at, std::size_t bytes) noexcept {
  vellum_mark(at, bytes);
  return at;
}
// Marks the one object that a function stores, unless the caller has passed null.
template <typename T>
void mark_object(T* at) noexcept {
  if (at != nullptr) vellum_mark(static_cast<const void*>(at), sizeof(T));
}
// Marks as many bytes as the function returns, unless it has failed.
template <typename Count>
Count marked_count(void* at, Count count) noexcept {
  if (count > 0) vellum_mark(at, static_cast<std::size_t>(count));
  return count;
}

}  // namespace vellum::msync
