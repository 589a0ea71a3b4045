// run/process/real.hpp: the C library's functions, and the guard that marks Vellum's own calls. The
// dynamic linker finds this library's open(2), write(2) and so on first, for the program and for
// everything else in the process, including Vellum (ld.so(8), LD_PRELOAD). Vellum's own calls are
// meant for the kernel. A ReentrancyGuard marks them: while one exists in a thread, the intercepted
// functions pass the call to the C library.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace vellum::preload {

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

// One instance for each function, in the whole library: begin() can look it up early.
template <typename Function, Name name>
Function* real() noexcept {
  static Function* const found = next_of<Function>(name.text);
  return found;
}

// The next function of that name, that is the C library's.
#define VELLUM_REAL(name) (::vellum::preload::real<decltype(::name), #name>())

// Declares a function that replaces one of the C library's.
#define VELLUM_PRELOAD extern "C" __attribute__((visibility("default")))

class ReentrancyGuard {
 public:
  ReentrancyGuard() noexcept { ++depth; }
  ~ReentrancyGuard() { --depth; }
  ReentrancyGuard(const ReentrancyGuard&) = delete;
  ReentrancyGuard& operator=(const ReentrancyGuard&) = delete;
  static bool is() noexcept { return depth != 0; }

 private:
  // A preloaded library is loaded from the start: access needs no call.
  static thread_local int depth __attribute__((tls_model("initial-exec")));
};

}  // namespace vellum::preload
