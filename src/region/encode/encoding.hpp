// region/encode/encoding.hpp: conversions between the public Encoding and the format's.
#pragma once

#include <optional>
#include <vellum/encoding.hpp>

#include "format/wire/superblock.hpp"

namespace vellum::region {

// Throws Errc::invalid_argument, naming the option.
format::Encoding to_format(const Encoding& given);
std::optional<format::Encoding> to_format(const std::optional<Encoding>& given);
Encoding from_format(const format::Encoding& stored);

// Throws Errc::invalid_argument unless low <= value <= high.
void require_range(const char* what, std::uint64_t value, std::uint64_t low, std::uint64_t high);

}  // namespace vellum::region
