// msync/marked.hpp: how the wrappers of library functions say what has been written.
//
// A wrapper is called vellum_wrap_<function>, has its signature, calls it, and marks. Where the
// memory is not tracked, marking is a compare.
#pragma once

#include <vellum/cards.h>

#include <cerrno>
#include <cstddef>

// Name and parameters of a wrapper: VELLUM_WRAP(int, close)(int fd) {...}
#define VELLUM_WRAP(result, name) extern "C" result vellum_wrap_##name

namespace vellum::msync {

template <typename T>
T* marked(T* at, std::size_t bytes) noexcept {
  vellum_mark(at, bytes);
  return at;
}
// Where a function stores one object, if the caller wants it.
template <typename T>
void mark_object(T* at) noexcept {
  if (at != nullptr) vellum_mark(static_cast<const void*>(at), sizeof(T));
}
// As many bytes as the function says, if it has not failed.
template <typename Count>
Count marked_count(void* at, Count count) noexcept {
  if (count > 0) vellum_mark(at, static_cast<std::size_t>(count));
  return count;
}

}  // namespace vellum::msync
