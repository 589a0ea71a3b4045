#include "memory/kernel/handler_stack.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/reserve.hpp"
#include "base/processor.h"
#include "base/threads/handler_wait.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr std::size_t kStacks = base::HandlerWait::kMaxStacks, kStacksOfWord = 64;
constexpr std::size_t kTakenBytes = 4096;

std::byte* g_stacks = nullptr;  // kStacks of them, behind a page with g_taken_stacks
// One bit each; clear in a child of fork().
std::atomic<std::uint64_t>* g_taken_stacks = nullptr;

std::size_t take_stack() noexcept {
  for (std::size_t word = 0;; word = (word + 1) % (kStacks / kStacksOfWord)) {
    std::uint64_t taken = g_taken_stacks[word].load();
    while (taken != UINT64_MAX) {
      const auto free = static_cast<std::size_t>(std::countr_one(taken));
      if (g_taken_stacks[word].compare_exchange_weak(taken, taken | 1ULL << free))
        return word * kStacksOfWord + free;
    }
    sched_yield();
  }
}

void release_stack(std::size_t number) noexcept {
  g_taken_stacks[number / kStacksOfWord].fetch_and(~(1ULL << number % kStacksOfWord));
}

}  // namespace

#if defined(VELLUM_X86_64)

extern "C" void vellum_call_on_stack(void* top, void (*body)(void*), void* argument) noexcept;

__asm__(
    ".pushsection .text\n"
    ".hidden vellum_call_on_stack\n"
    ".globl vellum_call_on_stack\n"
    ".type vellum_call_on_stack, @function\n"
    "vellum_call_on_stack:\n"
    ".cfi_startproc\n"
    "  pushq %rbp\n"
    ".cfi_def_cfa_offset 16\n"
    ".cfi_offset %rbp, -16\n"
    "  movq %rsp, %rbp\n"
    ".cfi_def_cfa_register %rbp\n"
    "  movq %rdi, %rsp\n"
    "  movq %rdx, %rdi\n"
    "  callq *%rsi\n"
    "  movq %rbp, %rsp\n"
    "  popq %rbp\n"
    ".cfi_def_cfa %rsp, 8\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size vellum_call_on_stack, .-vellum_call_on_stack\n"
    ".popsection\n");

#elif defined(VELLUM_ARM64)

extern "C" void vellum_call_on_stack(void* top, void (*body)(void*), void* argument) noexcept;

__asm__(
    ".pushsection .text\n"
    ".balign 4\n"
    ".hidden vellum_call_on_stack\n"
    ".globl vellum_call_on_stack\n"
    ".type vellum_call_on_stack, %function\n"
    "vellum_call_on_stack:\n"
    ".cfi_startproc\n"
    "  stp x29, x30, [sp, #-16]!\n"
    ".cfi_def_cfa_offset 16\n"
    ".cfi_offset x29, -16\n"
    ".cfi_offset x30, -8\n"
    "  mov x29, sp\n"
    ".cfi_def_cfa_register x29\n"
    "  mov sp, x0\n"
    "  mov x0, x2\n"
    "  blr x1\n"
    "  mov sp, x29\n"
    ".cfi_def_cfa_register sp\n"
    "  ldp x29, x30, [sp], #16\n"
    ".cfi_def_cfa_offset 0\n"
    ".cfi_restore x29\n"
    ".cfi_restore x30\n"
    "  ret\n"
    ".cfi_endproc\n"
    ".size vellum_call_on_stack, .-vellum_call_on_stack\n"
    ".popsection\n");

#else

static void vellum_call_on_stack(void*, void (*body)(void*), void* argument) noexcept {
  body(argument);
}

#endif

void make_handler_stacks() {
  static base::Reservation& room = *new base::Reservation(kTakenBytes + kStacks * kStackBytes);
  if (madvise(room.data(), room.size(), MADV_WIPEONFORK) != 0)
    fail(Errc::unsupported, "this kernel cannot wipe memory on fork (MADV_WIPEONFORK)");
  g_taken_stacks = reinterpret_cast<std::atomic<std::uint64_t>*>(room.data());
  g_stacks = room.data() + kTakenBytes;
  base::HandlerWait::set_stacks(g_stacks, kStackBytes, kStacks);
}

void call_on_handler_stack(void (*body)(void*), void* argument) noexcept {
  assert(g_stacks != nullptr && body != nullptr);
  const std::size_t number = take_stack();
  vellum_call_on_stack(g_stacks + (number + 1) * kStackBytes, body, argument);
  release_stack(number);
}

}  // namespace vellum::region
