// cli/web/pages/byte_text.hpp: bytes of versions as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::cli {

using Bytes = std::span<const std::byte>;

// Bytes of a version, with zeros beyond its end.
std::vector<std::byte> bytes_of(const Store& store, const std::string& version,
                                std::uint64_t offset, std::size_t length);

// Printable ASCII characters, and a dot for every other byte, as markup.
std::string characters_of(Bytes bytes);

// Two digits a byte, with spaces between them. Bytes that differ from those at the same place of
// `other`, if it has one, are marked.
std::string hex_of(Bytes bytes, Bytes other = {});

// "0x1388", and "0x1388 (5000)".
std::string hex_offset(std::uint64_t offset);
std::string both_offsets(std::uint64_t offset);

}  // namespace vellum::cli
