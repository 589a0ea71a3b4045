// cli/web/bytes_page.cpp: a range of a version, as hexadecimal numbers or as values of a type.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "base/fail.hpp"
#include "cli/history/markup.hpp"
#include "cli/names/listing.hpp"
#include "cli/terminal/arguments.hpp"
#include "cli/web/html.hpp"
#include "cli/web/pages.hpp"

namespace vellum::cli {
namespace {

constexpr std::uint64_t kShownBytes = 4096;
constexpr std::size_t kLineBytes = 16;

using Bytes = std::span<const std::byte>;

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

// Bytes of another version, with zeros beyond its end.
std::vector<std::byte> bytes_of(const Store& store, const std::string& version,
                                std::uint64_t offset, std::size_t length) {
  std::vector<std::byte> bytes(length);
  const std::uint64_t end = store.version(version).region_bytes;
  if (offset < end)
    store.read(version, offset, bytes.data(), std::min<std::uint64_t>(length, end - offset));
  return bytes;
}

std::string characters_of(Bytes line) {
  std::string text;
  for (const std::byte b : line) {
    const auto c = static_cast<char>(b);
    text += c >= 0x20 && c < 0x7f ? c : '.';
  }
  return in_markup(text);
}

// A line of values; those that differ from `other`, if there is one, are marked.
std::string line_markup(const View& view, std::uint64_t offset, Bytes line, Bytes other) {
  std::string markup = fmt::format("{:>14} ", offset);
  for (std::size_t at = 0; at + view.bytes <= line.size(); at += view.bytes) {
    const std::string text = fmt::format("{:>{}}", view.text(line.data() + at), view.width);
    const bool differs =
        !other.empty() && std::memcmp(line.data() + at, other.data() + at, view.bytes) != 0;
    markup += differs ? " <mark>" + text + "</mark>" : " " + text;
  }
  return markup + (view.bytes == 1 && view.width == 2 ? "  " + characters_of(line) : "") + "\n";
}

std::string lines_markup(const View& view, std::uint64_t offset, Bytes bytes, Bytes other) {
  std::string markup = "<pre>";
  for (std::size_t at = 0; at < bytes.size(); at += kLineBytes) {
    const std::size_t length = std::min(kLineBytes, bytes.size() - at);
    markup += line_markup(view, offset + at, bytes.subspan(at, length),
                          other.empty() ? other : other.subspan(at, length));
  }
  return markup + "</pre>\n";
}

struct Shown {
  std::string version, against;
  std::uint64_t offset = 0, region_bytes = 0;
  const View* view = nullptr;

  std::string link(const std::string& as, std::uint64_t from, const std::string& text) const {
    return link_to(fmt::format("bytes?version={}&against={}&offset={}&as={}", in_query(version),
                               in_query(against), from, as),
                   text);
  }
};

std::string links_of(const Shown& shown) {
  std::string markup = "<p>";
  for (const View& view : kViews) markup += shown.link(view.name, shown.offset, view.name) + " ";
  markup += "</p>\n<p>";
  if (shown.offset > 0) {
    const std::uint64_t back = std::min(shown.offset, kShownBytes);
    markup += shown.link(shown.view->name, shown.offset - back, "Before") + " ";
  }
  if (shown.region_bytes - shown.offset > kShownBytes)
    markup += shown.link(shown.view->name, shown.offset + kShownBytes, "After");
  return markup + "</p>\n";
}

}  // namespace

Content bytes_page(const Store& store, const Request& request) {
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
  const auto bytes = bytes_of(store, shown.version, shown.offset, length);
  std::vector<std::byte> other;
  if (!shown.against.empty()) other = bytes_of(store, shown.against, shown.offset, length);
  const std::string marked = other.empty() ? ""
                                           : fmt::format("<p>Marked: differs from {}.</p>\n",
                                                         link_to_version(shown.against));
  return {fmt::format("Bytes of {}", shown.version),
          links_of(shown) + marked + R"(<div class="wide">)" +
              lines_markup(*shown.view, shown.offset, bytes, other) + "</div>\n"};
}

}  // namespace vellum::cli
