// store/packs/header_error.hpp: errors for files whose headers do not decode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/fail.hpp"
#include "format/wire/limits.hpp"
#include "format/wire/number.hpp"

namespace vellum::store {

// "<file>: format 1.3 ...".
[[noreturn]] inline void fail_newer(const std::string& file, std::span<const std::byte> header) {
  fail(Errc::newer_format, "{}: format {}, written by a newer Vellum; this one reads up to {}",
       file, format::number_text(format::number_of(header)),
       format::number_text(format::kNewestFormatVersion));
}

// Fails for a file that does not decode: either a newer Vellum wrote it, or it is corrupted, and
// `problem` is the reason.
[[noreturn]] inline void fail_header(const std::string& file, std::span<const std::byte> header,
                                     std::uint64_t seed, const char* problem) {
  if (format::is_newer(header, seed)) fail_newer(file, header);
  fail(Errc::corrupted, "{}: {}", file, problem);
}

}  // namespace vellum::store
