// dlsym(3) and dlvsym(3): looking up a function of the C library through its handle returns this
// library's function, as for a program that is linked to it. Foreign function interfaces do so
// (ctypes, JNA, Java's FFM, P/Invoke), and their calls would bypass the live files. The results of
// RTLD_NEXT and RTLD_DEFAULT depend on the caller, which the dynamic linker identifies by the
// return address: these calls are forwarded by a jump. Both find this library's functions if the
// caller precedes it. For libraries that intercept the same functions, RTLD_NEXT finds the
// functions after this library.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "run/process/elf_symbols.hpp"
#include "run/process/real.hpp"

extern "C" {

// The C library's, for the jumps.
[[gnu::visibility("hidden")]] void* vellum_real_dlsym = nullptr;
[[gnu::visibility("hidden")]] void* vellum_real_dlvsym = nullptr;

// False: the result depends on the caller.
[[gnu::visibility("hidden")]] bool vellum_answers_dlsym(void* handle, const char* name,
                                                        void** answer) noexcept;
[[gnu::visibility("hidden")]] bool vellum_answers_dlvsym(void* handle, const char* name,
                                                         const char* version,
                                                         void** answer) noexcept;
}

namespace vellum::preload {
namespace {

void find_real() noexcept {
  if (vellum_real_dlsym != nullptr && vellum_real_dlvsym != nullptr) return;
  vellum_real_dlsym = c_library_export("dlsym");
  vellum_real_dlvsym = c_library_export("dlvsym");
  if (vellum_real_dlsym != nullptr && vellum_real_dlvsym != nullptr) return;
  std::fprintf(stderr, "vellum run: this C library has no dlsym\n");
  std::abort();
}

void* instead_of(void* found, const char* name) noexcept {
  if (found == nullptr || ReentrancyGuard::is()) return found;
  void* const own = own_export(name);
  return own != nullptr && own != found && is_of_c_library(found) ? own : found;
}

bool asks_by_caller(void* handle) noexcept { return handle == RTLD_NEXT || handle == RTLD_DEFAULT; }

}  // namespace
}  // namespace vellum::preload

bool vellum_answers_dlsym(void* handle, const char* name, void** answer) noexcept {
  vellum::preload::find_real();
  if (vellum::preload::asks_by_caller(handle)) return false;
  const auto real = reinterpret_cast<void* (*)(void*, const char*)>(vellum_real_dlsym);
  *answer = vellum::preload::instead_of(real(handle, name), name);
  return true;
}

bool vellum_answers_dlvsym(void* handle, const char* name, const char* version,
                           void** answer) noexcept {
  vellum::preload::find_real();
  if (vellum::preload::asks_by_caller(handle)) return false;
  const auto real =
      reinterpret_cast<void* (*)(void*, const char*, const char*)>(vellum_real_dlvsym);
  *answer = vellum::preload::instead_of(real(handle, name, version), name);
  return true;
}

// Each saves its arguments, requests a result, and returns that or jumps to the C library.
#if defined(__x86_64__)

#define VELLUM_LOOKUP(function, answers, real, answer_register) \
  __asm__(                                                      \
      ".pushsection .text\n"                                    \
      ".balign 16\n"                                            \
      ".globl " function                                        \
      "\n"                                                      \
      ".type " function ", @function\n" function                \
      ":\n"                                                     \
      ".cfi_startproc\n"                                        \
      "  pushq %rdi\n"                                          \
      "  pushq %rsi\n"                                          \
      "  pushq %rdx\n"                                          \
      "  pushq $0\n"                                            \
      "  subq $8, %rsp\n"                                       \
      ".cfi_def_cfa_offset 48\n"                                \
      "  leaq 8(%rsp), " answer_register                        \
      "\n"                                                      \
      "  callq " answers                                        \
      "\n"                                                      \
      "  addq $8, %rsp\n"                                       \
      "  popq %rcx\n"                                           \
      "  popq %rdx\n"                                           \
      "  popq %rsi\n"                                           \
      "  popq %rdi\n"                                           \
      ".cfi_def_cfa_offset 8\n"                                 \
      "  testb %al, %al\n"                                      \
      "  jne 1f\n"                                              \
      "  jmpq *" real                                           \
      "(%rip)\n"                                                \
      "1: movq %rcx, %rax\n"                                    \
      "  ret\n"                                                 \
      ".cfi_endproc\n"                                          \
      ".size " function ", .-" function                         \
      "\n"                                                      \
      ".popsection\n")
VELLUM_LOOKUP("dlsym", "vellum_answers_dlsym", "vellum_real_dlsym", "%rdx");
VELLUM_LOOKUP("dlvsym", "vellum_answers_dlvsym", "vellum_real_dlvsym", "%rcx");

#elif defined(__aarch64__)

#define VELLUM_LOOKUP(function, answers, real, answer_register) \
  __asm__(                                                      \
      ".pushsection .text\n"                                    \
      ".balign 16\n"                                            \
      ".globl " function                                        \
      "\n"                                                      \
      ".type " function ", %function\n" function                \
      ":\n"                                                     \
      ".cfi_startproc\n"                                        \
      "  stp x29, x30, [sp, #-48]!\n"                           \
      ".cfi_def_cfa_offset 48\n"                                \
      ".cfi_offset x29, -48\n"                                  \
      ".cfi_offset x30, -40\n"                                  \
      "  stp x0, x1, [sp, #16]\n"                               \
      "  stp x2, xzr, [sp, #32]\n"                              \
      "  add " answer_register                                  \
      ", sp, #40\n"                                             \
      "  bl " answers                                           \
      "\n"                                                      \
      "  and w9, w0, #255\n"                                    \
      "  ldp x0, x1, [sp, #16]\n"                               \
      "  ldp x2, x10, [sp, #32]\n"                              \
      "  ldp x29, x30, [sp], #48\n"                             \
      ".cfi_def_cfa_offset 0\n"                                 \
      "  cbnz w9, 1f\n"                                         \
      "  adrp x16, " real                                       \
      "\n"                                                      \
      "  ldr x16, [x16, :lo12:" real                            \
      "]\n"                                                     \
      "  br x16\n"                                              \
      "1: mov x0, x10\n"                                        \
      "  ret\n"                                                 \
      ".cfi_endproc\n"                                          \
      ".size " function ", .-" function                         \
      "\n"                                                      \
      ".popsection\n")
VELLUM_LOOKUP("dlsym", "vellum_answers_dlsym", "vellum_real_dlsym", "x2");
VELLUM_LOOKUP("dlvsym", "vellum_answers_dlvsym", "vellum_real_dlvsym", "x3");

#else
#error "the jump is written for x86-64 and aarch64"
#endif
