// shim/real.hpp: the functions that this library stands in front of, and the mark of calls that are
// its own.
//
// The dynamic linker finds this library's open(2), write(2) and so on first, for the program and
// for everything else in the process, Vellum included (ld.so(8), LD_PRELOAD). What Vellum does
// inside a call is meant for the kernel: Inside says so.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace vellum::shim {

template <typename Function>
Function* next_of(const char* name) noexcept {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "vellum run: this C library has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

template <std::size_t length>
struct Name {
  char text[length];
  // NOLINTNEXTLINE(google-explicit-constructor): "open" is a name
  constexpr Name(const char (&from)[length]) noexcept { std::copy_n(from, length, text); }
};

// One for each function, wherever it is asked for: begin() can ask first.
template <typename Function, Name name>
Function* real() noexcept {
  static Function* const found = next_of<Function>(name.text);
  return found;
}

// The function behind this library's one of that name.
#define VELLUM_REAL(name) (::vellum::shim::real<decltype(::name), #name>())

// How a function of the C library's is taken over.
#define VELLUM_SHIM extern "C" __attribute__((visibility("default")))

class Inside {
 public:
  Inside() noexcept { ++depth; }
  ~Inside() { --depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool is() noexcept { return depth != 0; }

 private:
  // A preloaded library is there from the start: no call to find it.
  static thread_local int depth __attribute__((tls_model("initial-exec")));
};

}  // namespace vellum::shim
