// base/crypto/secret.cpp: see secret.hpp.
#include "base/crypto/secret.hpp"

#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/fail.hpp"
#include "base/round_up.hpp"

namespace vellum::base {

Secret::Secret(std::size_t bytes)
    : size_(bytes), mapped_(round_up(bytes, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)))) {
  if (bytes == 0) return;
  void* const at =
      ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) fail(Errc::out_of_memory, "no memory for a key");
  data_ = static_cast<std::byte*>(at);
  // Beyond RLIMIT_MEMLOCK the kernel may swap the key, which is better than no access to the store.
  static_cast<void>(::mlock(data_, mapped_));
  ::madvise(data_, mapped_, MADV_DONTDUMP);
}

Secret::Secret(std::span<const std::byte> content) : Secret(content.size()) {
  std::ranges::copy(content, data_);
}

Secret Secret::random(std::size_t bytes) {
  Secret out(bytes);
  fill_random(out.bytes());
  return out;
}

Secret::~Secret() {
  if (data_ == nullptr) return;
  OPENSSL_cleanse(data_, mapped_);
  ::munmap(data_, mapped_);
}

Secret::Secret(Secret&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

// A generator of OpenSSL's lives in this process: a snapshot of a machine, resumed twice, would give
// the same bytes twice.
void fill_random(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = ::getrandom(out.data(), out.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      fail(Errc::io, "the kernel's generator of random numbers failed: {}",
           std::generic_category().message(errno));
    }
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace vellum::base
