// run/process/real.hpp: the functions behind this library's, and what tells Vellum's own calls apart.
//
// The dynamic linker finds this library's open(2), write(2) and so on first, for the program and
// for everything else in the process, Vellum included (ld.so(8), LD_PRELOAD). Calls that Vellum
// itself makes are meant for the kernel: ReentrancyGuard tells them apart.
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

// One instance for each function, wherever it is used: begin() can ask first.
template <typename Function, Name name>
Function* real() noexcept {
  static Function* const found = next_of<Function>(name.text);
  return found;
}

// The function of that name behind this library's.
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
  // A preloaded library is there from the start: access needs no call.
  static thread_local int depth __attribute__((tls_model("initial-exec")));
};

}  // namespace vellum::preload
