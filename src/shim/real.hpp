// shim/real.hpp: the functions that this library stands in front of, and the mark of calls that are
// its own.
//
// The dynamic linker finds this library's open(2), write(2) and so on first, for the program and
// for everything else in the process, Vellum included (ld.so(8), LD_PRELOAD). What Vellum does
// inside a call is meant for the kernel: Inside says so.
#pragma once

#include <dlfcn.h>

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

// The function behind this library's one of that name.
#define VELLUM_REAL(name)                                                        \
  ([]() noexcept {                                                               \
    static auto* const found = ::vellum::shim::next_of<decltype(::name)>(#name); \
    return found;                                                                \
  }())

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
