#include "memory/kernel/fault_access.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>

#include "base/processor.h"

namespace vellum::region {
namespace {

// The kernel loads the word and compares it, without waiting.
bool can_be_read(const void* address) noexcept {
  const auto word = reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{3};
  const timespec no_time{};
  return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &no_time, nullptr, 0) == 0 ||
         errno != EFAULT;
}

// A thread's last faults: a hash of its number and the address, and their count. Threads that share
// a slot disturb each other, which costs them more faults.
struct LastFault {
  std::atomic<std::uint64_t> of{0};
  std::atomic<unsigned> times{0};
};
constexpr std::size_t kSlots = 256;
LastFault g_last[kSlots];

#if defined(VELLUM_X86_64)

std::optional<bool> reported_by_processor(const ucontext_t& context) noexcept {
  return (context.uc_mcontext.gregs[REG_ERR] & 2) != 0;  // page fault error code, bit 1
}

#elif defined(VELLUM_ARM64)

// The signal frame holds records after the registers (arch/arm64/include/uapi/asm/sigcontext.h);
// the syndrome's bit 6 is set for a write (WnR).
std::optional<bool> reported_by_processor(const ucontext_t& context) noexcept {
  constexpr std::uint32_t kSyndrome = 0x45535201;  // ESR_MAGIC
  struct SyndromeRecord {
    std::uint32_t magic, bytes;
    std::uint64_t syndrome;
  };
  const auto* at = reinterpret_cast<const std::byte*>(context.uc_mcontext.__reserved);
  const auto* const end = at + sizeof context.uc_mcontext.__reserved;
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof(SyndromeRecord))) {
    const auto* const record = reinterpret_cast<const SyndromeRecord*>(at);
    if (record->magic == kSyndrome) return (record->syndrome >> 6 & 1) != 0;
    if (record->magic == 0 || record->bytes == 0) break;
    at += record->bytes;
  }
  return std::nullopt;  // an emulator may omit it
}

#else

std::optional<bool> reported_by_processor(const ucontext_t&) noexcept { return std::nullopt; }

#endif

}  // namespace

bool is_write_by_trial(const void* address) noexcept {
  constexpr unsigned kCertain = 4;
  const auto thread = static_cast<std::uint64_t>(syscall(SYS_gettid));
  LastFault& last = g_last[thread % kSlots];
  if (!can_be_read(address)) {
    last.of.store(0);
    return false;
  }
  const std::uint64_t of =
      reinterpret_cast<std::uintptr_t>(address) * 0x9E3779B97F4A7C15ULL + thread;
  if (last.of.exchange(of) != of) last.times.store(0);
  return last.times.fetch_add(1) + 1 >= kCertain;
}

bool is_write_fault(const void* address, const void* context) noexcept {
  const auto reported = reported_by_processor(*static_cast<const ucontext_t*>(context));
  return reported ? *reported : is_write_by_trial(address);
}

}  // namespace vellum::region
