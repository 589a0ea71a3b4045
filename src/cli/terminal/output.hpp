// cli/terminal/output.hpp: standard output, and the format of values in text and JSON.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <vellum/store.hpp>

#include "cli/terminal/width.hpp"

namespace vellum::cli {

using Json = nlohmann::ordered_json;

// The format of times in text. JSON always has ISO 8601.
enum class TimeFormat {
  iso,   // "2024-05-01T12:00:00Z"
  human  // "3 hours ago", and the date after two weeks
};

// Standard output with error checks: a full disk behind `>` is an Error, not a shorter file.
class Output {
 public:
  void write(std::string_view bytes);
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...));
  }
  // Prints lines of words. On a terminal a long line continues below its second column.
  template <typename... Args>
  void print_text(fmt::format_string<Args...> format, Args&&... args) {
    write(wrapped_for_screen(fmt::format(format, std::forward<Args>(args)...)));
  }
  // Prints one JSON object on one line. Bytes that are not UTF-8 become U+FFFD.
  void print_json(const Json& value);
  void flush();
  // Flushes and closes: some file systems report a full disk only on close.
  void finish();
  // Drops unflushed output, so that a failure cannot fail again.
  void discard() noexcept { buffer_.clear(); }

  TimeFormat time_format = TimeFormat::iso;
  // A time in this output's format; full_time() has nanoseconds if the format has them.
  std::string time(std::chrono::system_clock::time_point time) const;
  std::string full_time(std::chrono::system_clock::time_point time) const;

 private:
  void write_out(std::string_view bytes);
  std::string buffer_;
};

// Prints a line on standard error. It is for a person: a failure to print it has no consequence.
void print_error(std::string_view message) noexcept;

// A JSON value as print_json() writes it, without the newline.
std::string json_text(const Json& value);

// `text`, safe for a terminal: control characters and invalid UTF-8 become \xNN. Names and messages
// are from a possibly untrusted store.
std::string printable(std::string_view text);
std::string first_line(std::string_view text);

// Whether the user's locale has UTF-8. The program itself runs in the locale C.
bool screen_takes_utf8();

std::string human_bytes(std::uint64_t bytes);                      // "1.5 GiB"
std::string counted(std::uint64_t count, std::string_view one);    // "1 page", "2 pages"
std::string utc_time(std::chrono::system_clock::time_point time);  // "2024-05-01T12:00:00Z"
std::string utc_time_full(
    std::chrono::system_clock::time_point time);  // "2024-05-01T12:00:00.000000000Z"
// "3 hours ago"; the date, if `time` is two weeks or more before `now`, or after it.
std::string human_time(std::chrono::system_clock::time_point time,
                       std::chrono::system_clock::time_point now);
const char* hash_name(Encoding::Hash hash) noexcept;         // "none" or "sha256"
std::string compression_text(const Encoding& encoding);      // "zstd level 1", "lz4, sha256"
std::string encoding_text(const Encoding& encoding);         // deviations from the default
const char* kind_name(const VersionInfo& version) noexcept;  // "branch" or "snapshot"

// compression, compression_level, block_bytes, grow_blocks, filters, dedup, deltas, hash
Json encoding_json(const Encoding& encoding);
// key, number, root, parent, parent_hash, signature: bytes in hexadecimal digits
Json signature_json(const Signature& signature);
Json version_json(const VersionInfo& version);

}  // namespace vellum::cli
