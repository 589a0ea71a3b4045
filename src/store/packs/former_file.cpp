#include "store/packs/former_file.hpp"

#include <cassert>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/parse_number.hpp"

namespace vellum::store {

namespace {

constexpr std::string_view kFormerInfix = ".former.";

// The first number whose name is free: a file may be pinned while its successor is replaced, too.
void give_former_name(base::Fs& fs, std::uint64_t pack, const std::string& path) {
  for (std::uint64_t number = 1;; ++number) {
    try {
      return fs.link(path, base::parent_of(path) + "/" + former_file_name(pack, number));
    } catch (const Error& e) {
      if (e.code() != Errc::already_exists) throw;
    }
  }
}

}  // namespace

std::string former_file_name(std::uint64_t pack, std::uint64_t number) {
  assert(number != 0);
  return fmt::format("{}{}{}", pack_file_name(pack), kFormerInfix, number);
}

bool parse_former_file_name(const std::string& name, std::uint64_t& pack) {
  const std::size_t at = name.find(kFormerInfix);
  if (at == std::string::npos || !parse_pack_file_name(name.substr(0, at), pack)) return false;
  const auto number = std::string_view(name).substr(at + kFormerInfix.size());
  return base::parse_number<std::uint64_t>(number).has_value() && !number.starts_with('0');
}

void keep_pinned_file(base::Fs& fs, std::uint64_t pack, const std::string& path) {
  if (!fs.exists(path)) return;
  if (fs.open(path, base::OpenMode::read_only)->pinned_bytes().empty()) return;
  try {
    give_former_name(fs, pack, path);
  } catch (const Error& e) {
    if (e.code() == Errc::no_space || e.code() == Errc::out_of_memory) throw;
    fail(
        Errc::busy,
        "{}: a process has a version of the pack open, and the file cannot get a second name ({}): "
        "close the version",
        path, e.what());
  }
}

std::vector<FormerFile> former_files(base::Fs& fs, const PackPlaces& places) {
  std::vector<FormerFile> out;
  const auto add = [&](const std::string& directory) {
    for (const base::DirEntry& entry : fs.list(directory)) {
      std::uint64_t pack = 0;
      if (!entry.is_regular_file || !parse_former_file_name(entry.name, pack)) continue;
      out.push_back({pack, directory + "/" + entry.name});
    }
  };
  add(places.home());
  for (const auto& path : places.state()->present_paths(format::TierKind::archive)) add(path);
  return out;
}

std::uint64_t remove_former_files(base::Fs& fs, const PackPlaces& places) {
  std::uint64_t bytes = 0;
  for (const FormerFile& former : former_files(fs, places)) {
    const auto file = fs.open(former.path, base::OpenMode::read_only);
    if (!file->pinned_bytes().empty()) continue;
    fs.unlink(former.path);
    bytes += file->allocated_bytes();
  }
  return bytes;
}

}  // namespace vellum::store
