// format/wire/wire.hpp: little-endian integers and LEB128 varints.
//
// A writer appends to a growing buffer. A reader checks bounds, and never throws or allocates (it
// runs in the fault handler). After the first bad read ok() is false and every further read returns
// 0. The caller checks once at the end.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vellum::format {

class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}
  void u8(std::uint8_t v) { out_.push_back(static_cast<std::byte>(v)); }
  void u16(std::uint16_t v) { fixed(v); }
  void u32(std::uint32_t v) { fixed(v); }
  void u64(std::uint64_t v) { fixed(v); }
  void varint(std::uint64_t v) {
    while (v >= 0x80) {
      u8(static_cast<std::uint8_t>(v | 0x80));
      v >>= 7;
    }
    u8(static_cast<std::uint8_t>(v));
  }
  void zigzag(std::int64_t v) {
    varint((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
  }
  void bytes(std::span<const std::byte> b) { append(b.data(), b.size()); }
  void string(std::string_view s) {  // varint length + bytes
    varint(s.size());
    bytes(std::as_bytes(std::span(s.data(), s.size())));
  }
  std::size_t size() const { return out_.size(); }

 private:
  template <typename T>
  void fixed(T v) {
    append(&v, sizeof v);  // x86-64 and the other supported machines are little-endian
  }
  // Not insert(): GCC 12 mistakes its growth path for an overflow and warns.
  void append(const void* from, std::size_t n) {
    if (n == 0) return;
    assert(from != nullptr);
    const std::size_t at = out_.size();
    out_.resize(at + n);
    std::memcpy(out_.data() + at, from, n);
  }
  std::vector<std::byte>& out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> in) noexcept : in_(in) {}
  std::uint8_t u8() noexcept { return fixed<std::uint8_t>(); }
  std::uint16_t u16() noexcept { return fixed<std::uint16_t>(); }
  std::uint32_t u32() noexcept { return fixed<std::uint32_t>(); }
  std::uint64_t u64() noexcept { return fixed<std::uint64_t>(); }
  std::uint64_t varint() noexcept {
    std::uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t b = u8();
      if (shift == 63 && b > 1) break;  // would not fit 64 bits
      v |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if ((b & 0x80) == 0) return v;
    }
    ok_ = false;
    return 0;
  }
  std::int64_t zigzag() noexcept {
    const std::uint64_t v = varint();
    return static_cast<std::int64_t>((v >> 1) ^ (~(v & 1) + 1));
  }
  std::span<const std::byte> bytes(std::uint64_t n) noexcept {
    if (!ok_ || n > in_.size()) {
      ok_ = false;
      return {};
    }
    const auto out = in_.first(static_cast<std::size_t>(n));
    in_ = in_.subspan(static_cast<std::size_t>(n));
    return out;
  }
  // Allocates: not for the fault handler.
  std::string string(std::size_t limit_bytes) {
    const std::uint64_t n = varint();
    if (n > limit_bytes) {
      ok_ = false;
      return {};
    }
    const auto b = bytes(n);
    return std::string(reinterpret_cast<const char*>(b.data()), b.size());
  }
  std::size_t left() const noexcept { return in_.size(); }
  bool ok() const noexcept { return ok_; }
  bool done() const noexcept { return ok_ && in_.empty(); }
  void fail() noexcept { ok_ = false; }

 private:
  template <typename T>
  T fixed() noexcept {
    const auto b = bytes(sizeof(T));
    T v{};
    if (b.size() == sizeof v) std::memcpy(&v, b.data(), sizeof v);
    return v;
  }
  std::span<const std::byte> in_;
  bool ok_ = true;
};

// The distance that zigzag() stores between two 64-bit numbers; both sides wrap.
inline std::int64_t distance(std::uint64_t to, std::uint64_t from) noexcept {
  return static_cast<std::int64_t>(to - from);
}

// Reads a hash, an id, a key or a signature. Unchanged if the input is shorter (ByteReader::ok()).
template <typename Bytes>
void read_bytes(ByteReader& in, Bytes& out) noexcept {
  const auto bytes = in.bytes(out.size());
  if (bytes.size() == out.size()) std::memcpy(out.data(), bytes.data(), out.size());
}

}  // namespace vellum::format
