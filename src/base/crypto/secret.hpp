// base/crypto/secret.hpp: memory for keys and passphrases.
//
// Whole pages of their own: locked into memory where the limit permits it, left out of core dumps,
// and wiped before they are freed. A child of fork(2) has a copy, because it may go on with a region.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>

namespace vellum::base {

inline constexpr std::size_t kKeyBytes = 32;

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::size_t bytes);  // zeros; throws Errc::out_of_memory
  explicit Secret(std::span<const std::byte> content);
  static Secret random(std::size_t bytes);
  ~Secret();
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;

  std::span<std::byte> bytes() noexcept { return {data_, size_}; }
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  // Keeps the first bytes. REQUIRES: size <= size().
  void shrink(std::size_t size) noexcept {
    assert(size <= size_);
    size_ = size;
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
};

// Fills the bytes from the kernel's generator (getrandom(2)), without a buffer. Throws Errc::io.
void fill_random(std::span<std::byte> out);

}  // namespace vellum::base
