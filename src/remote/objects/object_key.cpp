#include "remote/objects/object_key.hpp"

#include <fmt/format.h>

#include <cassert>
#include <string_view>

#include "base/bytes/hex.hpp"
#include "base/parse_number.hpp"
#include "format/wire/wire.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kGenerationDigits = 8, kHeadDigits = 16;

std::string content_key(const char* prefix, const ContentName& name) {
  return fmt::format("{}{:08x}-{}", prefix, name.generation, base::hex(name.hash));
}

// Lower-case digits only, and all of the text.
template <typename Number>
bool parse_hex(std::string_view text, Number& out) {
  if (text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  const auto number = base::parse_number<Number>(text, 16);
  if (number.has_value()) out = *number;
  return number.has_value();
}

}  // namespace

std::string piece_key(const ContentName& name) { return content_key(kPiecePrefix, name); }
std::string list_key(const ContentName& name) { return content_key(kListPrefix, name); }

std::string names_key(const ContentName& name) { return content_key(kNamesPrefix, name); }

std::string head_key(std::uint64_t number) {
  assert(number != 0);
  return fmt::format("{}{:016x}", kHeadPrefix, UINT64_MAX - number);
}

std::uint64_t hash_start(const base::Sha256& hash) noexcept {
  return format::ByteReader(std::span(hash).first(8)).u64();
}

std::optional<ContentName> parse_content_key(const std::string& key, const std::string& prefix) {
  ContentName out;
  if (!key.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = std::string_view(key).substr(prefix.size());
  if (rest.size() != kGenerationDigits + 1 + 2 * out.hash.size()) return std::nullopt;
  if (!parse_hex(rest.substr(0, kGenerationDigits), out.generation)) return std::nullopt;
  if (rest[kGenerationDigits] != '-') return std::nullopt;
  for (std::size_t i = 0; i < out.hash.size(); ++i) {
    unsigned byte = 0;
    if (!parse_hex(rest.substr(kGenerationDigits + 1 + 2 * i, 2), byte)) return std::nullopt;
    out.hash[i] = static_cast<std::byte>(byte);
  }
  return out;
}

std::optional<std::uint64_t> parse_head_key(const std::string& key) {
  std::uint64_t from_end = 0;
  if (!key.starts_with(kHeadPrefix)) return std::nullopt;
  const std::string_view digits =
      std::string_view(key).substr(std::string_view(kHeadPrefix).size());
  if (digits.size() != kHeadDigits || !parse_hex(digits, from_end)) return std::nullopt;
  return UINT64_MAX - from_end;
}

}  // namespace vellum::remote
