// interfaces/privateer/place.cpp: names in a store, derived from paths.
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>
#include <vellum/error.hpp>

#include "base/bytes/checksum.hpp"
#include "base/fail.hpp"
#include "base/files/real_path.hpp"
#include "format/wire/superblock.hpp"
#include "interfaces/privateer/settings.hpp"
#include "interfaces/privateer/versions.hpp"

namespace vellum::privateer {
namespace {

using std::filesystem::path;

constexpr const char* kBlocks = "blocks";

bool is_plain(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Replaces "+", and bytes that a name in a store cannot have, by "+" and two digits.
std::string escaped(std::string_view text, bool keep_beyond_ascii) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char each : text) {
    const auto c = static_cast<unsigned char>(each);
    const bool inside = (c == '.' || c == '-') && !out.empty();
    if (is_plain(c) || inside || (c >= 0x80 && keep_beyond_ascii)) {
      out += each;
    } else {
      out += '+';
      out += kDigits[c >> 4];
      out += kDigits[c & 15];
    }
  }
  return out;
}

std::string store_name(const std::string& version) {
  std::string name = escaped(version, true);
  if (format::name_problem(name) != nullptr) name = escaped(version, false);
  if (const char* const problem = format::name_problem(name)) {
    fail(Errc::invalid_argument, "version '{}': {}", version, problem);
  }
  return name;
}

// Removes ".", "..", double slashes, and a slash at the end.
std::string tidy(const path& any) {
  const std::string text = any.lexically_normal().string();
  return text.size() > 1 && text.back() == '/' ? text.substr(0, text.size() - 1) : text;
}

}  // namespace

std::string VersionPlace::label() const { return "version '" + directory + "'"; }

VersionPlace place_in_base(const std::string& base, const std::string& version) {
  const path below = path(tidy(version)).relative_path();
  if (below.empty() || below == "." || *below.begin() == ".." || *below.begin() == kBlocks) {
    fail(Errc::invalid_argument, "'{}' cannot be the name of a version of {}", version, base);
  }
  VersionPlace place;
  place.directory = tidy(path(base) / below);
  place.store = tidy(path(base) / kBlocks);
  place.name = store_name(below.string());
  return place;
}

VersionPlace place_beside_blocks(const std::string& blocks, const std::string& directory) {
  const path store = tidy(blocks), at = tidy(directory);
  // The usual layout, through either interface.
  const path below = at.lexically_relative(store.parent_path());
  if (store.filename() == kBlocks && !below.empty() && *below.begin() != "..") {
    return place_in_base(store.parent_path(), below);
  }
  VersionPlace place;
  place.directory = at;
  place.store = store;
  // Directories of one name may share a store; their paths distinguish them.
  const std::string real = base::real_path(at);
  char path_digits[20];
  std::snprintf(path_digits, sizeof path_digits, "+%016" PRIx64,
                base::checksum64(std::as_bytes(std::span(real))));
  place.name = store_name(at.filename()) + path_digits;
  place.in_base = false;
  return place;
}

VersionPlace place_of_directory(const std::string& directory) {
  const std::string tidied = tidy(split_stash(directory).base);
  if (!is_directory(tidied)) {
    fail(Errc::not_found, "version '{}': there is no such directory", tidied);
  }
  const auto link = read_link(tidied);
  if (!link) return place_in_base(path(tidied).parent_path(), path(tidied).filename());
  if (path(link->store).is_absolute()) return place_beside_blocks(link->store, tidied);
  // The directory may be another one, behind a symbolic link: the given path counts.
  const std::string base = tidy((path(tidied) / link->store).parent_path());
  return place_in_base(base, path(tidied).lexically_relative(base));
}

}  // namespace vellum::privateer
