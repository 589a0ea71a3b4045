// cli/terminal/output.cpp: writing to standard output, and the format of values.
#include "cli/terminal/output.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <new>

#include <langinfo.h>
#include <locale.h>
#include <unistd.h>

#include "base/bytes/codec.hpp"
#include "base/bytes/hex.hpp"
#include "base/clock.hpp"
#include "base/fail.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kBufferBytes = 64u << 10;

[[noreturn]] void raise_output_error(int os_errno) {
  const bool full = os_errno == ENOSPC || os_errno == EDQUOT || os_errno == EFBIG;
  fail(full ? Errc::no_space : Errc::io, "cannot write to standard output: {}",
       std::strerror(os_errno));
}

// The length of the UTF-8 sequence at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xc2 && first <= 0xdf ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) {
      return 0;
    }
  }
  return length;
}

bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) {
    return first < 0x20 || first == 0x7f;
  }
  // Terminals interpret U+0080..U+009F like escape sequences.
  return sequence.size() == 2 && first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

using Time = std::chrono::system_clock::time_point;

struct SplitTime {
  std::tm parts{};
  long nanoseconds = 0;
};

SplitTime split_time(Time time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  SplitTime split;
  const std::time_t clock = std::chrono::system_clock::to_time_t(second);
  ::gmtime_r(&clock, &split.parts);
  split.nanoseconds = static_cast<long>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time - second).count());
  return split;
}

std::string date_and_time(const std::tm& parts) {
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

void Output::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() < kBufferBytes) {
    buffer_.append(bytes);
    return;
  }
  flush();
  write_out(bytes);
}

void Output::print_json(const Json& value) {
  write(json_text(value));
  write("\n");
}

void Output::flush() {
  std::string pending;
  pending.swap(buffer_);  // nothing is left for a second flush after a failure
  write_out(pending);
}

void Output::finish() {
  flush();
  if (::close(STDOUT_FILENO) != 0 && errno != EBADF && errno != EINTR) {
    raise_output_error(errno);
  }
}

std::string Output::time(Time time) const {
  return time_format == TimeFormat::human ? human_time(time, std::chrono::system_clock::now())
                                          : utc_time(time);
}

std::string Output::full_time(Time time) const {
  return time_format == TimeFormat::human ? this->time(time) : utc_time_full(time);
}

void Output::write_out(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      raise_output_error(errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void print_error(std::string_view message) noexcept {
  try {
    const std::string line = "vellum: " + printable(message) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  } catch (const std::bad_alloc&) {
  }
}

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || is_control(sequence)) {
      for (const char c : sequence) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    } else {
      out += sequence;
    }
    text.remove_prefix(sequence.size());
  }
  return out;
}

std::string first_line(std::string_view text) {
  const std::size_t end = text.find('\n');
  const std::string line = printable(text.substr(0, end));
  return end == std::string_view::npos ? line : line + " ...";
}

bool screen_takes_utf8() {
  const locale_t users = ::newlocale(LC_CTYPE_MASK, "", nullptr);
  if (users == nullptr) return false;
  const bool utf8 = std::string_view(::nl_langinfo_l(CODESET, users)) == "UTF-8";
  ::freelocale(users);
  return utf8;
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {  // 1023.95 would print as 1024.0
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string counted(std::uint64_t count, std::string_view one) {
  const bool branch = one.ends_with("ch");
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : branch ? "es" : "s");
}

std::string utc_time(Time time) { return date_and_time(split_time(time).parts) + "Z"; }

std::string utc_time_full(Time time) {
  const SplitTime split = split_time(time);
  return fmt::format("{}.{:09}Z", date_and_time(split.parts), split.nanoseconds);
}

std::string human_time(Time time, Time now) {
  using namespace std::chrono;
  const auto seconds_ago = floor<seconds>(now - time).count();
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (seconds_ago < 0 || seconds_ago >= 14 * kDay) return utc_time(time).substr(0, 10);
  const auto ago = [&](std::int64_t unit, std::string_view name) {
    return counted(static_cast<std::uint64_t>(seconds_ago / unit), name) + " ago";
  };
  if (seconds_ago < 2 * kMinute) return ago(1, "second");
  if (seconds_ago < 2 * kHour) return ago(kMinute, "minute");
  return seconds_ago < 2 * kDay ? ago(kHour, "hour") : ago(kDay, "day");
}

const char* hash_name(Encoding::Hash hash) noexcept {
  return hash == Encoding::Hash::sha256 ? "sha256" : "none";
}

std::string compression_text(const Encoding& encoding) {
  std::string text = base::codec_name(encoding.compression);
  if (base::has_levels(encoding.compression)) {
    text += fmt::format(" level {}", encoding.compression_level);
  }
  return encoding.hash == Encoding::Hash::none ? text : text + ", " + hash_name(encoding.hash);
}

std::string encoding_text(const Encoding& encoding) {
  std::string text = fmt::format("{}, blocks of {}", compression_text(encoding),
                                 human_bytes(encoding.block_bytes));
  if (!encoding.grow_blocks) text += ", fixed blocks";
  if (!encoding.filters) text += ", no filters";
  if (!encoding.dedup) text += ", no dedup";
  if (!encoding.deltas) text += ", no deltas";
  return text;
}

const char* kind_name(const VersionInfo& version) noexcept {
  if (version.is_branch) return "branch";
  return version.name.find('@') == std::string::npos ? "snapshot" : "commit";
}

Json encoding_json(const Encoding& e) {
  return Json{{"compression", base::codec_name(e.compression)},
              {"compression_level", e.compression_level},
              {"block_bytes", e.block_bytes},
              {"grow_blocks", e.grow_blocks},
              {"filters", e.filters},
              {"dedup", e.dedup},
              {"deltas", e.deltas},
              {"hash", hash_name(e.hash)}};
}

Json signature_json(const Signature& signature) {
  return Json{{"key", base::hex(signature.key)},
              {"number", signature.number},
              {"root", base::hex(signature.root)},
              {"parent", signature.parent.empty() ? Json(nullptr) : Json(signature.parent)},
              {"parent_hash", base::hex(signature.parent_hash)},
              {"signature", base::hex(signature.bytes)}};
}

Json version_json(const VersionInfo& version) {
  return Json{
      {"name", version.name},
      {"kind", kind_name(version)},
      {"branch", version.branch},
      {"sequence", version.sequence},
      {"time", utc_time_full(version.committed_at)},
      {"time_ns", base::nanoseconds_of(version.committed_at)},
      {"created", utc_time_full(version.created_at)},
      {"created_ns", base::nanoseconds_of(version.created_at)},
      {"order",
       kind_name(version) == std::string_view("snapshot") ? Json(version.order) : Json(nullptr)},
      {"message", version.message},
      {"parent", version.parent.empty() ? Json(nullptr) : Json(version.parent)},
      {"region_bytes", version.region_bytes},
      {"file_bytes", version.file_bytes},
      {"pages_changed", version.pages_changed},
      {"bytes_added", version.bytes_added},
      {"encoding", version.encoding ? encoding_json(*version.encoding) : Json(nullptr)},
      {"signature", version.signature ? signature_json(*version.signature) : Json(nullptr)}};
}

}  // namespace vellum::cli
