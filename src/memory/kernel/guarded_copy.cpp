#include "memory/kernel/guarded_copy.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>

#include "base/processor.h"

#if defined(VELLUM_X86_64) || defined(VELLUM_ARM64)

extern "C" {
// Returns how many bytes are left.
std::size_t vellum_copy_bytes(void* to, const void* from, std::size_t length_bytes) noexcept;
extern const char vellum_copy_end[] __attribute__((visibility("hidden")));
}

namespace vellum::region {

std::size_t copy_guarded(void* to, const void* from, std::size_t length_bytes) noexcept {
  return length_bytes - vellum_copy_bytes(to, from, length_bytes);
}

}  // namespace vellum::region

#endif

#if defined(VELLUM_X86_64)

// rcx always holds the count of bytes that are left, so the instruction may stop at any byte.
extern "C" {
extern const char vellum_copy_fault[] __attribute__((visibility("hidden")));
}

__asm__(
    ".pushsection .text\n"
    ".hidden vellum_copy_bytes, vellum_copy_fault, vellum_copy_end\n"
    ".globl vellum_copy_bytes, vellum_copy_fault, vellum_copy_end\n"
    ".type vellum_copy_bytes, @function\n"
    "vellum_copy_bytes:\n"
    ".cfi_startproc\n"
    "  movq %rdx, %rcx\n"
    "vellum_copy_fault:\n"
    "  rep movsb\n"
    "vellum_copy_end:\n"
    "  movq %rcx, %rax\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size vellum_copy_bytes, .-vellum_copy_bytes\n"
    ".popsection\n");

namespace vellum::region {

bool leave_guarded_copy(void* context) noexcept {
  auto& at = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  if (at != reinterpret_cast<greg_t>(vellum_copy_fault)) return false;
  at = reinterpret_cast<greg_t>(vellum_copy_end);
  return true;
}

}  // namespace vellum::region

#elif defined(VELLUM_ARM64)

// x2 always holds the count of bytes that are left. A fault in the loop over words continues with
// bytes, which stops at the byte that faults.
extern "C" {
extern const char vellum_copy_words[] __attribute__((visibility("hidden")));
extern const char vellum_copy_single[] __attribute__((visibility("hidden")));
}

__asm__(
    ".pushsection .text\n"
    ".hidden vellum_copy_bytes, vellum_copy_words, vellum_copy_single, vellum_copy_end\n"
    ".globl vellum_copy_bytes, vellum_copy_words, vellum_copy_single, vellum_copy_end\n"
    ".type vellum_copy_bytes, @function\n"
    "vellum_copy_bytes:\n"
    ".cfi_startproc\n"
    "vellum_copy_words:\n"
    "  cmp x2, #8\n"
    "  b.lo vellum_copy_single\n"
    "  ldr x3, [x1]\n"
    "  str x3, [x0]\n"
    "  add x1, x1, #8\n"
    "  add x0, x0, #8\n"
    "  sub x2, x2, #8\n"
    "  b vellum_copy_words\n"
    "vellum_copy_single:\n"
    "  cbz x2, vellum_copy_end\n"
    "  ldrb w3, [x1]\n"
    "  strb w3, [x0]\n"
    "  add x1, x1, #1\n"
    "  add x0, x0, #1\n"
    "  sub x2, x2, #1\n"
    "  b vellum_copy_single\n"
    "vellum_copy_end:\n"
    "  mov x0, x2\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size vellum_copy_bytes, .-vellum_copy_bytes\n"
    ".popsection\n");

namespace vellum::region {

bool leave_guarded_copy(void* context) noexcept {
  auto& at = static_cast<ucontext_t*>(context)->uc_mcontext.pc;
  const auto address_of = [](const char* label) { return reinterpret_cast<std::uintptr_t>(label); };
  if (at < address_of(vellum_copy_words) || at >= address_of(vellum_copy_end)) return false;
  at = address_of(at < address_of(vellum_copy_single) ? vellum_copy_single : vellum_copy_end);
  return true;
}

}  // namespace vellum::region

#else

namespace vellum::region {
namespace {

// Where the thread's innermost copy continues after a fault.
[[gnu::tls_model("initial-exec")]] thread_local sigjmp_buf* volatile t_way_out = nullptr;

}  // namespace

std::size_t copy_guarded(void* to, const void* from, std::size_t length_bytes) noexcept {
  auto* const out = static_cast<volatile std::byte*>(to);
  const auto* const in = static_cast<const volatile std::byte*>(from);
  volatile std::size_t done = 0;
  sigjmp_buf here;
  sigjmp_buf* const outer = t_way_out;
  if (sigsetjmp(here, 1) == 0) {
    t_way_out = &here;
    while (done < length_bytes) {
      out[done] = in[done];
      done = done + 1;
    }
  }
  t_way_out = outer;
  return done;
}

bool leave_guarded_copy(void*) noexcept {
  if (t_way_out == nullptr) return false;
  siglongjmp(*t_way_out, 1);
}

}  // namespace vellum::region

#endif
