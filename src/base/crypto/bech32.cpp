// base/crypto/bech32.cpp: see bech32.hpp.
#include "base/crypto/bech32.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <vector>

namespace vellum::base {
namespace {

constexpr std::string_view kLetters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
constexpr std::size_t kChecksumLetters = 6;
constexpr std::size_t kMaxLetters = 1000;

class Checksum {
 public:
  explicit Checksum(std::string_view prefix) noexcept {
    for (const char c : prefix) add(static_cast<std::uint8_t>(static_cast<unsigned char>(c) >> 5));
    add(0);
    for (const char c : prefix) add(static_cast<std::uint8_t>(c & 31));
  }
  void add(std::uint8_t value) noexcept {
    constexpr std::array<std::uint32_t, 5> kGenerator{0x3b6a57b2, 0x26508e6d, 0x1ea119fa,
                                                      0x3d4233dd, 0x2a1462b3};
    const std::uint32_t top = sum_ >> 25;
    sum_ = (sum_ & 0x1ffffff) << 5 ^ value;
    for (unsigned i = 0; i < kGenerator.size(); ++i) {
      if ((top >> i & 1) != 0) sum_ ^= kGenerator[i];
    }
  }
  std::uint32_t sum() const noexcept { return sum_; }

 private:
  std::uint32_t sum_ = 1;
};

}  // namespace

std::string bech32_encode(std::string_view prefix, std::span<const std::byte> bytes) {
  std::string out(prefix);
  out += '1';
  Checksum checksum(prefix);
  const auto put = [&](std::uint32_t value) {
    checksum.add(static_cast<std::uint8_t>(value));
    out += kLetters[value];
  };
  std::uint32_t bits = 0, held = 0;
  for (const std::byte b : bytes) {
    held = (held << 8 | std::to_integer<std::uint32_t>(b)) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) put(held >> (bits - 5) & 31);
  }
  if (bits != 0) put(held << (5 - bits) & 31);
  for (std::size_t i = 0; i < kChecksumLetters; ++i) checksum.add(0);
  const std::uint32_t sum = checksum.sum() ^ 1;
  for (unsigned i = 0; i < kChecksumLetters; ++i) out += kLetters[sum >> 5 * (5 - i) & 31];
  return out;
}

Secret bech32_decode(std::string_view prefix, std::string_view text) {
  const auto lower = [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  const bool upper_case = std::ranges::any_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
  const bool lower_case = std::ranges::any_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
  if ((upper_case && lower_case) || text.size() > kMaxLetters ||
      text.size() < prefix.size() + 1 + kChecksumLetters || text[prefix.size()] != '1' ||
      !std::ranges::equal(text.substr(0, prefix.size()), prefix, {}, lower)) {
    return {};
  }
  text.remove_prefix(prefix.size() + 1);
  Checksum checksum(prefix);
  Secret out(text.size() * 5 / 8);
  std::uint32_t bits = 0, held = 0;
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t value = kLetters.find(lower(text[i]));
    if (value == std::string_view::npos) return {};
    checksum.add(static_cast<std::uint8_t>(value));
    if (i + kChecksumLetters >= text.size()) continue;
    held = (held << 5 | static_cast<std::uint32_t>(value)) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    out.bytes()[used++] = static_cast<std::byte>(held >> bits & 0xff);
  }
  if (checksum.sum() != 1 || bits >= 5 || (held & ((1U << bits) - 1)) != 0) return {};
  out.shrink(used);
  return out;
}

}  // namespace vellum::base
