// interfaces/privateer/link.cpp: lines of text, each a word and a value, published in one step.
#include "interfaces/privateer/link.hpp"

#include <cassert>
#include <span>
#include <sstream>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/parse_number.hpp"

namespace vellum::privateer {
namespace {

constexpr const char* kFileName = "_vellum";
constexpr const char* kFirstLine = "Privateer version 1";
constexpr std::uint64_t kMaxBytes = 64u << 10;  // paths are at most 4096

template <class Number>
bool parse(const std::string& text, Number& out) {
  const auto number = base::parse_number<Number>(text);
  if (number.has_value()) out = *number;
  return number.has_value();
}

// False: the value is invalid. Words of later versions are ignored.
bool take(Link& link, const std::string& word, const std::string& value) {
  if (word == "store") link.store = value;
  if (word == "name") link.name = value;
  if (word == "block_bytes") return parse(value, link.block_bytes);
  if (word == "sequence") return parse(value, link.sequence);
  if (word == "time_ns") return parse(value, link.time_ns);
  return true;
}

}  // namespace

std::optional<Link> read_link(const std::string& directory) {
  const std::string path = directory + "/" + kFileName;
  std::vector<std::byte> bytes;
  try {
    bytes = base::read_whole(base::posix_fs(), path, kMaxBytes);
  } catch (const Error& error) {
    if (error.code() == Errc::not_found) return std::nullopt;
    throw;
  }
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::string line;
  bool good = std::getline(lines, line) && line == kFirstLine;
  Link link;
  while (good && std::getline(lines, line)) {
    const auto space = line.find(' ');
    good = space != std::string::npos && take(link, line.substr(0, space), line.substr(space + 1));
  }
  if (!good || link.store.empty() || link.name.empty() || link.block_bytes == 0) {
    fail(Errc::corrupted, "{} is not the link of a version", path);
  }
  return link;
}

void write_link(const std::string& directory, const Link& link) {
  assert(!link.store.empty() && !link.name.empty() && link.block_bytes != 0);
  std::ostringstream text;
  text << kFirstLine << "\nstore " << link.store << "\nname " << link.name << "\nblock_bytes "
       << link.block_bytes << "\nsequence " << link.sequence << "\ntime_ns " << link.time_ns
       << '\n';
  const std::string bytes = text.str();
  base::publish_file(base::posix_fs(), directory, directory, kFileName,
                     std::as_bytes(std::span(bytes)), true);
}

void remove_link(const std::string& directory) noexcept {
  try {
    base::posix_fs().unlink(directory + "/" + kFileName);
    base::posix_fs().sync_directory(directory);
  } catch (const std::exception&) {
    // A link that stays names a version that the store does not have: there is no version.
  }
}

}  // namespace vellum::privateer
