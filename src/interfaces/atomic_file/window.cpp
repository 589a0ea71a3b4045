#include "interfaces/atomic_file/window.hpp"

#include <sys/mman.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "base/round_up.hpp"

namespace vellum::atomic_file {
namespace {

constexpr std::uint64_t kGranuleBytes = 1ULL << cards::kGranuleShift;

[[noreturn]] void refuse(Errc code, const char* what) {
  fail(code, "{}: {}", what, std::strerror(errno));
}

std::uint64_t pages(std::uint64_t bytes) { return base::round_up(bytes, cards::kPageBytes); }

std::byte* reserve(std::uint64_t address, std::uint64_t bytes) {
  const int fixed = address != 0 ? MAP_FIXED_NOREPLACE : 0;
  void* wanted = reinterpret_cast<void*>(address);
  void* got =
      mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  if (got != MAP_FAILED && (address == 0 || got == wanted)) return static_cast<std::byte*>(got);
  if (got != MAP_FAILED) munmap(got, bytes);
  return nullptr;
}

// Code that vellum-clang has compiled accesses the cards of everything in the window.
bool window_available() {
  try {
    cards::reserve_table();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Uses the same addresses as tracked ranges, so an address does not depend on the tracker; any
// address where those are unavailable (ThreadSanitizer).
std::byte* reserve_untracked(std::uint64_t bytes, std::uint64_t address) {
  const bool window = window_available();
  if (address != 0) {
    std::byte* at = window || !cards::in_window(address) ? reserve(address, bytes) : nullptr;
    if (at != nullptr) return at;
    refuse(Errc::busy, "the address wanted for a file is in use");
  }
  for (std::uint64_t i = 0; window && i < 64; ++i)
    if (std::byte* at = reserve(cards::kWindowBegin + i * kGranuleBytes, bytes)) return at;
  if (std::byte* at = reserve(0, bytes)) return at;
  refuse(Errc::out_of_memory, "no address space for a file");
}

}  // namespace

Window::Window(std::uint64_t capacity_bytes, std::uint64_t base_address, bool cards)
    : capacity_bytes_(pages(capacity_bytes)) {
  if (cards) {
    tracked_ = std::make_unique<cards::TrackedRange>(capacity_bytes_, base_address);
    data_ = tracked_->data();
  } else {
    data_ = reserve_untracked(capacity_bytes_, base_address);
  }
  assert(data_ != nullptr);
}

Window::~Window() {
  if (left_) {
    [[maybe_unused]] const auto* range = tracked_.release();
  } else if (tracked_ == nullptr) {
    munmap(data_, capacity_bytes_);
  }
}

void Window::map(int descriptor, std::uint64_t size_bytes) {
  void* got = mmap(data_, capacity_bytes_, PROT_NONE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                   descriptor, 0);
  if (got == MAP_FAILED) refuse(Errc::out_of_memory, "cannot map the file");
  open_up(size_bytes);
}

void Window::open_up(std::uint64_t size_bytes) {
  const std::uint64_t bytes = pages(size_bytes);
  assert(bytes <= capacity_bytes_);
  if (bytes != 0 && mprotect(data_, bytes, PROT_READ | PROT_WRITE) != 0)
    refuse(Errc::out_of_memory, "cannot map the file");
}

void Window::forget(std::uint64_t begin_bytes, std::uint64_t end_bytes) {
  const std::uint64_t begin = pages(begin_bytes), end = pages(end_bytes);
  assert(begin_bytes <= end_bytes && end <= capacity_bytes_);
  // Stores only to bytes that are not zero: a store makes a page of the file private, and later
  // changes of the file are then not visible in it.
  base::make_zero(data_ + begin_bytes, begin - begin_bytes);
  if (begin == end) return;
  madvise(data_ + begin, end - begin, MADV_DONTNEED);
  mprotect(data_ + begin, end - begin, PROT_NONE);
}

}  // namespace vellum::atomic_file
