// store/util.hpp: small things that every file of the layer uses.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/codec.hpp"
#include "format/number.hpp"
#include "format/superblock.hpp"
#include "format/types.hpp"
#include "vellum/error.hpp"

namespace vellum::store {

template <typename... Args>
[[noreturn]] void fail(Errc code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

// "<file>: format 1.3 ...".
[[noreturn]] inline void fail_newer(const std::string& file, std::span<const std::byte> header) {
  fail(Errc::newer_format, "{}: format {}, written by a newer Vellum; this one reads up to {}",
       file, format::number_text(format::number_of(header)),
       format::number_text(format::kFormatVersion));
}

// A file whose header, or all of it, does not decode: a newer Vellum's, or damaged as `problem`
// says.
[[noreturn]] inline void fail_header(const std::string& file, std::span<const std::byte> header,
                                     std::uint64_t seed, const char* problem) {
  if (format::is_newer(header, seed)) fail_newer(file, header);
  fail(Errc::damaged, "{}: {}", file, problem);
}

// Runs `body`; an Error that comes out says first where: "<where>: <what>".
template <typename Body>
auto with_context(const std::string& where, Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    throw Error(e.code(), where + ": " + e.what());
  }
}

// What a report of damage says of an error. Memory and descriptors that have run out are no damage,
// nor is what a newer Vellum has written: such an error is thrown on. REQUIRES: `e` is being
// handled.
inline std::string damage_reason(const Error& e) {
  if (e.code() == Errc::out_of_memory || e.code() == Errc::newer_format) throw;
  return e.what();
}

inline std::uint64_t elapsed_ns(std::chrono::steady_clock::time_point since) {
  const auto d = std::chrono::steady_clock::now() - since;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
}

inline std::int64_t wall_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// Murmur3's finaliser: every input bit reaches every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

constexpr std::uint64_t pages_in(std::uint64_t region_bytes) noexcept {
  return (region_bytes + format::kPageBytes - 1) / format::kPageBytes;
}

// What reading and writing cost, for reports.
struct IoCost {
  std::uint64_t bytes_written = 0;
  std::uint32_t flushes = 0;
  std::uint64_t write_ns = 0, flush_ns = 0;
};

// A record's payload, ready to append.
struct EncodedPayload {
  base::Codec codec = base::Codec::none;
  std::uint32_t raw_bytes = 0;
  std::vector<std::byte> stored;
  std::vector<std::byte> hash = {};  // SHA-256 of the raw payload; empty: none
};

inline constexpr int kMetadataZstdLevel = 3;  // map blocks, roots, versions, indexes

// What a record with this raw payload carries: 32 bytes, or nothing, as `encoding` wants it.
std::vector<std::byte> payload_hash(const format::Encoding& encoding,
                                    std::span<const std::byte> raw);

// Compresses into `out`. False: that would not make it smaller by a sixteenth; what is in `out`
// then is not to be used, but for raw_bytes.
bool shrink(base::Compressor& compressor, base::Codec codec, std::size_t stride_words, int level,
            std::span<const std::byte> raw, EncodedPayload& out);
// Compresses unless that does not help.
EncodedPayload encode_payload(base::Compressor& compressor, base::Codec codec, int level,
                              std::vector<std::byte> raw);
// A batch of deltas, as `encoding` wants it. Blocks of pages: store/block_encoder.hpp.
EncodedPayload encode_deltas(base::Compressor& compressor, const format::Encoding& encoding,
                             std::vector<std::byte> raw);

}  // namespace vellum::store
