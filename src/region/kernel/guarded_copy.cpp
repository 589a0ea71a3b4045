#include "region/kernel/guarded_copy.hpp"

#include <ucontext.h>

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)

// rcx always holds the count of bytes that are left, so the instruction may end anywhere.
extern "C" {
std::size_t vellum_copy_bytes(void* to, const void* from, std::size_t length_bytes) noexcept;
extern const char vellum_copy_fault[] __attribute__((visibility("hidden")));
extern const char vellum_copy_end[] __attribute__((visibility("hidden")));
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

std::size_t copy_guarded(void* to, const void* from, std::size_t length_bytes) noexcept {
  return length_bytes - vellum_copy_bytes(to, from, length_bytes);
}

bool leave_guarded_copy(void* context) noexcept {
  auto& at = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  if (at != reinterpret_cast<greg_t>(vellum_copy_fault)) return false;
  at = reinterpret_cast<greg_t>(vellum_copy_end);
  return true;
}

}  // namespace vellum::region

#else

namespace vellum::region {

std::size_t copy_guarded(void* to, const void* from, std::size_t length_bytes) noexcept {
  std::memcpy(to, from, length_bytes);
  return length_bytes;
}

bool leave_guarded_copy(void*) noexcept { return false; }

}  // namespace vellum::region

#endif
