// cli/web/pages/blame_page.cpp: when the bytes of a range changed last.
#include <algorithm>

#include <fmt/format.h>

#include "base/fail.hpp"
#include "cli/history/blame.hpp"
#include "cli/history/line.hpp"
#include "cli/history/markup.hpp"
#include "cli/names/listing.hpp"
#include "cli/options/arguments.hpp"
#include "cli/web/pages/byte_text.hpp"
#include "cli/web/pages/html.hpp"
#include "cli/web/pages/pages.hpp"

namespace vellum::cli {
namespace {

constexpr std::uint64_t kMaxBlamedBytes = 4096;
constexpr std::size_t kMaxBlamedVersions = 400;  // a page with more would take minutes
constexpr std::size_t kBlamedBytesShown = 8;

// The last versions of the line, oldest first.
std::vector<VersionInfo> recent_line(const Store& store, const std::string& version) {
  std::vector<VersionInfo> line = line_of(store, version);
  if (line.size() > kMaxBlamedVersions) line.resize(kMaxBlamedVersions);
  std::reverse(line.begin(), line.end());
  return line;
}

ByteRange asked_range(const Request& request, const VersionInfo& v) {
  const std::string length = request.parameter("length");
  ByteRange range{parse_size("offset", request.parameter("offset")),
                  length.empty() ? 1 : parse_size("length", length)};
  if (range.offset_bytes >= v.region_bytes)
    fail(Errc::invalid_argument, "offset {} is past the end of '{}', which has {} bytes",
         range.offset_bytes, v.name, v.region_bytes);
  if (range.length_bytes == 0 || range.length_bytes > kMaxBlamedBytes)
    fail(Errc::invalid_argument, "length: give 1 to {} bytes", kMaxBlamedBytes);
  range.length_bytes = std::min(range.length_bytes, v.region_bytes - range.offset_bytes);
  return range;
}

std::string blamed_bytes(const Store& store, const std::string& version, const ByteRange& range) {
  const auto shown =
      static_cast<std::size_t>(std::min<std::uint64_t>(range.length_bytes, kBlamedBytesShown));
  return "<code>" + hex_of(bytes_of(store, version, range.offset_bytes, shown)) +
         (shown < range.length_bytes ? " …" : "") + "</code>";
}

// Links to this change, and to the one before it.
std::string blamed_links(const std::string& version, const std::string& before,
                         const ByteRange& range) {
  const std::uint64_t shown_from = range.offset_bytes / 16 * 16;
  return R"(<span class="links">)" +
         link_to(fmt::format("bytes?version={}&against={}&offset={}", in_query(version),
                             in_query(before), hex_offset(shown_from)),
                 "change") +
         " " + link_to(blame_address(before, range), "the one before") + "</span>";
}

std::string blamed_markup(const std::vector<VersionInfo>& line, const Blamed& blamed,
                          const std::string& bytes) {
  const VersionInfo& v = line[blamed.version];
  const bool is_oldest = blamed.version == 0;
  return fmt::format(
      "<li>{}, {}: {}<br>{} {}, {} <span class=\"faint\">{}</span> {}</li>\n",
      both_offsets(blamed.range.offset_bytes), counted(blamed.range.length_bytes, "byte"), bytes,
      is_oldest ? "not changed since" : "changed in", link_to_version(v.name),
      utc_time(shown_time(v)), in_markup(first_line(v.message)),
      is_oldest ? "" : blamed_links(v.name, line[blamed.version - 1].name, blamed.range));
}

}  // namespace

std::string blame_address(const std::string& version, const ByteRange& range) {
  return fmt::format("blame?version={}&offset={}&length={}", in_query(version),
                     hex_offset(range.offset_bytes), range.length_bytes);
}

Content blame_page(const Store& store, const Request& request) {
  const std::string name = resolve_version(store, request.parameter("version"));
  const std::vector<VersionInfo> line = recent_line(store, name);
  const ByteRange range = asked_range(request, line.back());
  std::string markup =
      fmt::format("<p>In the versions from {} to {}:</p>\n<ol class=\"changes\">\n",
                  link_to_version(line.front().name), link_to_version(name));
  for (const Blamed& blamed : blame(store, line, range, false, nullptr))
    markup += blamed_markup(line, blamed, blamed_bytes(store, name, blamed.range));
  return {fmt::format("When {} of {} changed", hex_offset(range.offset_bytes), name),
          markup + "</ol>\n"};
}

}  // namespace vellum::cli
