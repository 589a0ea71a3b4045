#include "cli/terminal/screen.hpp"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string_view>

namespace vellum::cli {

std::optional<std::size_t> screen_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

bool screen_takes_utf8() {
  const locale_t users = ::newlocale(LC_CTYPE_MASK, "", nullptr);
  if (users == nullptr) return false;
  const bool utf8 = std::string_view(::nl_langinfo_l(CODESET, users)) == "UTF-8";
  ::freelocale(users);
  return utf8;
}

}  // namespace vellum::cli
