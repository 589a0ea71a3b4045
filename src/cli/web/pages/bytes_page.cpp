// cli/web/pages/bytes_page.cpp: a range of a version, as hexadecimal numbers or as values of a type.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/fail.hpp"
#include "cli/history/markup.hpp"
#include "cli/names/listing.hpp"
#include "cli/options/arguments.hpp"
#include "cli/web/pages/byte_text.hpp"
#include "cli/web/pages/html.hpp"
#include "cli/web/pages/pages.hpp"

namespace vellum::cli {
namespace {

constexpr std::uint64_t kShownBytes = 4096;
constexpr std::size_t kLineBytes = 16, kHalfBytes = 8;

template <typename T>
std::string value_text(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (sizeof(T) == 1) return fmt::format("{}", static_cast<int>(value));
  return fmt::format("{}", value);
}

// The interpretation of the bytes. `width`: of the longest value, in columns.
struct View {
  const char* name;
  std::size_t bytes;
  int width;
  std::string (*text)(const std::byte* at);
};

constexpr std::array<View, 11> kViews{
    {{"hex", 1, 2,
      [](const std::byte* at) { return fmt::format("{:02x}", std::to_integer<unsigned>(*at)); }},
     {"u8", 1, 3, value_text<std::uint8_t>},
     {"i8", 1, 4, value_text<std::int8_t>},
     {"u16", 2, 5, value_text<std::uint16_t>},
     {"i16", 2, 6, value_text<std::int16_t>},
     {"u32", 4, 10, value_text<std::uint32_t>},
     {"i32", 4, 11, value_text<std::int32_t>},
     {"u64", 8, 20, value_text<std::uint64_t>},
     {"i64", 8, 20, value_text<std::int64_t>},
     {"f32", 4, 14, value_text<float>},
     {"f64", 8, 24, value_text<double>}}};

const View& view_named(const std::string& name) {
  const std::string wanted = name.empty() ? "hex" : name;
  const auto found = std::find_if(kViews.begin(), kViews.end(),
                                  [&](const View& view) { return wanted == view.name; });
  if (found == kViews.end()) fail(Errc::invalid_argument, "there is no view '{}'", name);
  return *found;
}

struct Shown {
  std::string version, against;
  std::uint64_t offset = 0, region_bytes = 0;
  const View* view = nullptr;
  std::vector<std::byte> bytes, other;  // other: those of `against`, if there is one

  std::string link(const std::string& as, std::uint64_t from, const std::string& text) const {
    return link_to(fmt::format("bytes?version={}&against={}&offset={}&as={}", in_query(version),
                               in_query(against), hex_offset(from), as),
                   text);
  }
  bool is_last() const { return region_bytes - offset <= kShownBytes; }
};

// Values that differ are marked. Each leads to the version that changed it; the keyboard gets there
// from the line's offset, so that Tab does not stop at each value.
std::string value_markup(const Shown& shown, std::size_t at) {
  const View& view = *shown.view;
  const std::string text = fmt::format("{:>{}}", view.text(&shown.bytes[at]), view.width);
  const bool differs =
      !shown.other.empty() && std::memcmp(&shown.bytes[at], &shown.other[at], view.bytes) != 0;
  const std::size_t blanks = text.find_first_not_of(' ');
  const std::string value = text.substr(blanks);
  return fmt::format(R"( {}<a tabindex="-1" href="{}">{}</a>)", text.substr(0, blanks),
                     in_markup(blame_address(shown.version, {shown.offset + at, view.bytes})),
                     differs ? "<mark>" + value + "</mark>" : value);
}

std::string half_markup(const Shown& shown, std::size_t begin, std::size_t end) {
  std::string markup = R"(<span class="half">)";
  for (std::size_t at = begin; at + shown.view->bytes <= end; at += shown.view->bytes)
    markup += value_markup(shown, at);
  if (shown.view == kViews.data())
    markup += "  " + characters_of(Bytes(shown.bytes).subspan(begin, end - begin));
  return markup + "</span>";
}

std::string lines_markup(const Shown& shown) {
  std::string markup = "<div class=\"cells\">\n";
  for (std::size_t at = 0; at < shown.bytes.size(); at += kLineBytes) {
    const std::size_t end = std::min(at + kLineBytes, shown.bytes.size());
    const std::size_t middle = std::min(at + kHalfBytes, end);
    markup += fmt::format(R"(<div><a class="at" href="{}">{:#010x}</a>{}{}</div>)"
                          "\n",
                          in_markup(blame_address(shown.version, {shown.offset + at, end - at})),
                          shown.offset + at, half_markup(shown, at, middle),
                          middle < end ? half_markup(shown, middle, end) : "");
  }
  return markup + "</div>\n";
}

std::string view_links(const Shown& shown) {
  std::string markup = R"(<p class="links">)";
  for (const View& view : kViews) markup += shown.link(view.name, shown.offset, view.name) + " ";
  markup += "</p>\n<p class=\"links\">";
  if (shown.offset > 0) {
    const std::uint64_t back = std::min(shown.offset, kShownBytes);
    markup += shown.link(shown.view->name, shown.offset - back, "Before") + " ";
  }
  if (!shown.is_last()) markup += shown.link(shown.view->name, shown.offset + kShownBytes, "After");
  return markup + "</p>\n";
}

// Links to the nearest changes outside of the shown bytes.
std::string change_links(const Store& store, const Shown& shown) {
  std::optional<std::uint64_t> previous, next;
  store.diff(shown.against, shown.version, [&](const ByteRange& range) {
    if (range.offset_bytes < shown.offset) previous = range.offset_bytes;
    const bool is_after = range.offset_bytes >= shown.offset + kShownBytes;
    if (is_after && range.offset_bytes < shown.region_bytes && !next) next = range.offset_bytes;
  });
  const auto link = [&](std::uint64_t to, const char* text) {
    return " " + shown.link(shown.view->name, to / kLineBytes * kLineBytes, text);
  };
  return fmt::format(
      "<p class=\"links\">Marked: differs from {}.{}{}</p>\n", link_to_version(shown.against),
      previous ? link(*previous, "Previous change") : "", next ? link(*next, "Next change") : "");
}

Shown asked_bytes(const Store& store, const Request& request) {
  Shown shown;
  shown.version = resolve_version(store, request.parameter("version"));
  if (!request.parameter("against").empty())
    shown.against = resolve_version(store, request.parameter("against"));
  shown.view = &view_named(request.parameter("as"));
  const std::string offset = request.parameter("offset");
  shown.offset = offset.empty() ? 0 : parse_size("offset", offset);
  shown.region_bytes = store.version(shown.version).region_bytes;
  if (shown.offset >= shown.region_bytes)
    fail(Errc::invalid_argument, "offset {} is past the end of '{}', which has {} bytes",
         shown.offset, shown.version, shown.region_bytes);
  const auto length =
      static_cast<std::size_t>(std::min(kShownBytes, shown.region_bytes - shown.offset));
  shown.bytes = bytes_of(store, shown.version, shown.offset, length);
  if (!shown.against.empty()) shown.other = bytes_of(store, shown.against, shown.offset, length);
  return shown;
}

}  // namespace

Content bytes_page(const Store& store, const Request& request) {
  const Shown shown = asked_bytes(store, request);
  return {
      fmt::format("Bytes of {}", shown.version),
      view_links(shown) + (shown.against.empty() ? "" : change_links(store, shown)) +
          "<p class=\"faint\">An offset or a value leads to the version that changed it.</p>\n" +
          lines_markup(shown)};
}

}  // namespace vellum::cli
