// Include in one file of a program whose tests expect a process to die by SIGSEGV or SIGBUS.
//
// The sanitizers turn these signals into a report and exit code 1: their handlers were installed
// before the first region's. The tests expect the end of a program without sanitizers: death by the
// signal itself.
#pragma once

#include "support/sanitizers.hpp"

#if VELLUM_TEST_ASAN
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "handle_segv=0:handle_sigbus=0:allow_user_segv_handler=1";
}
#elif VELLUM_TEST_TSAN
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "handle_segv=0:handle_sigbus=0:allow_user_segv_handler=1";
}

// libstdc++'s own code, which is not instrumented, counts the references of an exception that a
// future passes on. TSan does not see that the thread that frees it does so after the readers.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
