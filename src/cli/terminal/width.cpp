// cli/terminal/width.cpp: measures, cuts and wraps texts.
#include "cli/terminal/width.hpp"

#include <algorithm>

#include <sys/ioctl.h>

namespace vellum::cli {
namespace {

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80; }

// Where the second column of a line begins; without one, where its first word begins.
std::size_t continuation_column(std::string_view line, std::size_t columns) {
  constexpr std::size_t kNarrow = 4;
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", first);
  const std::size_t second = line.find_first_not_of(' ', gap);
  const std::size_t column =
      second == std::string_view::npos ? first : text_columns(line.substr(0, second));
  return column <= 2 * columns / 3 ? column : kNarrow;
}

std::string wrapped_line(std::string_view line, std::size_t columns) {
  const std::size_t indent = continuation_column(line, columns);
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const std::size_t width = text_columns(line.substr(at, end - at));
    if (used > indent && used + width > columns) {
      out.append(1, '\n').append(indent, ' ').append(line.substr(word, end - word));
      used = indent + text_columns(line.substr(word, end - word));
    } else {
      out.append(line.substr(at, end - at));
      used += width;
    }
    at = end;
  }
  return out;
}

}  // namespace

std::optional<std::size_t> screen_columns(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

std::size_t text_columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string cut_text(const std::string& text, std::size_t columns, std::string_view ellipsis) {
  if (text_columns(text) <= columns) return text;
  const std::size_t kept = columns - text_columns(ellipsis);
  std::size_t bytes = 0;
  for (std::size_t seen = 0; bytes < text.size(); ++bytes) {
    if (starts_code_point(text[bytes]) && seen++ == kept) break;
  }
  return text.substr(0, bytes).append(ellipsis);
}

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += wrapped_line(text.substr(0, end), columns);
    if (end == text.size()) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string wrapped_for_screen(std::string_view text, int fd) {
  const auto columns = screen_columns(fd);
  return columns ? wrapped(text, *columns) : std::string(text);
}

}  // namespace vellum::cli
