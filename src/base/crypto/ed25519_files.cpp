// base/crypto/ed25519_files.cpp: keys of Ed25519 in files. Private bytes are only in secret memory.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/crypto/ed25519.hpp"
#include "base/crypto/secret_input.hpp"
#include "base/fail.hpp"

namespace vellum::base {
namespace {

using Bytes = std::span<const std::byte>;

std::string_view text_of(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int digit_of(char c) noexcept {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// Base64 with line breaks, up to the padding; empty: malformed.
Secret decoded(std::string_view text) {
  Secret out(text.size() / 4 * 3 + 3);
  std::size_t used = 0;
  std::uint32_t bits = 0, count = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') break;
    const int digit = digit_of(c);
    if (digit < 0) return Secret();
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.bytes()[used++] = static_cast<std::byte>(bits >> count & 0xff);
  }
  out.shrink(used);
  return out;
}

// The bytes between the lines BEGIN and END of this label.
std::optional<Secret> pem_body(std::string_view text, std::string_view label) {
  const std::string begin = "-----BEGIN " + std::string(label) + "-----";
  const std::string end = "-----END " + std::string(label) + "-----";
  const std::size_t from = text.find(begin);
  if (from == std::string_view::npos) return std::nullopt;
  const std::size_t body = from + begin.size(), to = text.find(end, body);
  if (to == std::string_view::npos) return std::nullopt;
  return decoded(text.substr(body, to - body));
}

// What follows `start`, if the bytes begin with it and have exactly `rest` bytes more.
template <std::size_t N>
Bytes after(Bytes bytes, const unsigned char (&start)[N], std::size_t rest) noexcept {
  if (bytes.size() != N + rest || std::memcmp(bytes.data(), start, N) != 0) return {};
  return bytes.subspan(N);
}

// A string of the SSH protocol: 4 bytes of length, big-endian, then the bytes.
bool take_string(Bytes& in, Bytes& out) noexcept {
  if (in.size() < 4) return false;
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    length = length << 8 | std::to_integer<std::uint32_t>(in[i]);
  }
  in = in.subspan(4);
  if (length > in.size()) return false;
  out = in.first(length);
  in = in.subspan(length);
  return true;
}

bool take_text(Bytes& in, std::string_view wanted) noexcept {
  Bytes found;
  return take_string(in, found) && text_of(found) == wanted;
}

// The public part of a key in OpenSSH's formats.
Bytes ssh_public(Bytes blob) noexcept {
  Bytes key;
  const bool good = take_text(blob, "ssh-ed25519") && take_string(blob, key) && blob.empty() &&
                    key.size() == kKeyBytes;
  return good ? key : Bytes();
}

// The seed of a private key in the format "openssh-key-v1" without a passphrase.
Bytes ssh_private(Bytes file) noexcept {
  constexpr std::string_view kMagic("openssh-key-v1\0", 15);
  if (!text_of(file).starts_with(kMagic)) return {};
  file = file.subspan(kMagic.size());
  Bytes options, shown, hidden, key;
  constexpr std::size_t kCountBytes = 4, kCheckBytes = 8;
  if (!take_text(file, "none") || !take_text(file, "none") || !take_string(file, options) ||
      file.size() < kCountBytes) {
    return {};
  }
  file = file.subspan(kCountBytes);
  if (!take_string(file, shown) || !take_string(file, hidden) || hidden.size() < kCheckBytes) {
    return {};
  }
  hidden = hidden.subspan(kCheckBytes);
  const bool good = take_text(hidden, "ssh-ed25519") && take_string(hidden, shown) &&
                    take_string(hidden, key) && key.size() == 2 * kKeyBytes;
  return good ? key.first(kKeyBytes) : Bytes();
}

constexpr unsigned char kPkcs8Start[] = {0x30, 0x2e, 2,    1,    0, 0x30, 5, 6,
                                         3,    0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20};
constexpr unsigned char kSpkiStart[] = {0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0};

}  // namespace

Secret read_ed25519_private(const std::string& path) {
  const Secret file = read_secret_file(path);
  if (const auto body = pem_body(text_of(file.bytes()), "PRIVATE KEY")) {
    const Bytes seed = after(body->bytes(), kPkcs8Start, kKeyBytes);
    if (!seed.empty()) return Secret(seed);
  }
  if (const auto body = pem_body(text_of(file.bytes()), "OPENSSH PRIVATE KEY")) {
    const Bytes seed = ssh_private(body->bytes());
    if (!seed.empty()) return Secret(seed);
  }
  fail(Errc::invalid_argument,
       "{}: no private key of Ed25519 (PEM, or OpenSSH's format, without a passphrase)", path);
}

Ed25519Public read_ed25519_public(const std::string& path) {
  const Secret file = read_secret_file(path);
  const std::string_view text = text_of(file.bytes());
  Secret body;
  Bytes key;
  if (auto pem = pem_body(text, "PUBLIC KEY")) {
    body = std::move(*pem);
    key = after(body.bytes(), kSpkiStart, kKeyBytes);
  } else if (constexpr std::string_view kStart = "ssh-ed25519 "; text.starts_with(kStart)) {
    const std::string_view rest = text.substr(kStart.size());
    body = decoded(rest.substr(0, rest.find_first_of(" \n\r")));
    key = ssh_public(body.bytes());
  }
  if (key.empty()) {
    fail(Errc::invalid_argument, "{}: no public key of Ed25519 (PEM, or a line of OpenSSH)", path);
  }
  Ed25519Public out;
  std::copy(key.begin(), key.end(), out.begin());
  return out;
}

}  // namespace vellum::base
