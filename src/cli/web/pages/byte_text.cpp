#include "cli/web/pages/byte_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/history/markup.hpp"

namespace vellum::cli {

std::vector<std::byte> bytes_of(const Store& store, const std::string& version,
                                std::uint64_t offset, std::size_t length) {
  std::vector<std::byte> bytes(length);
  const std::uint64_t end = store.version(version).region_bytes;
  if (offset < end)
    store.read(version, offset, bytes.data(), std::min<std::uint64_t>(length, end - offset));
  return bytes;
}

std::string characters_of(Bytes bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    const auto c = static_cast<char>(b);
    text += c >= 0x20 && c < 0x7f ? c : '.';
  }
  return in_markup(text);
}

std::string hex_of(Bytes bytes, Bytes other) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool differs = i < other.size() && bytes[i] != other[i];
    text += fmt::format(fmt::runtime(differs ? "{}<mark>{:02x}</mark>" : "{}{:02x}"),
                        i == 0 ? "" : " ", std::to_integer<unsigned>(bytes[i]));
  }
  return text;
}

std::string hex_offset(std::uint64_t offset) { return fmt::format("{:#x}", offset); }

std::string both_offsets(std::uint64_t offset) { return fmt::format("{:#x} ({})", offset, offset); }

}  // namespace vellum::cli
