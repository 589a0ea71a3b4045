// interfaces/metall/files.cpp: see files.hpp. The index's bytes are in docs/format.md,
// "Datastores".
#include "interfaces/metall/files.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <filesystem>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/memory/zeros.hpp"

namespace vellum::datastore {
namespace {

namespace fs = std::filesystem;
using format::kPageBytes;

constexpr char kMagic[9] = "VLMDATA1";
constexpr std::size_t kEntriesAt = 64, kEntryBytes = 128, kNameBytes = 112;
constexpr std::size_t kCopyBytes = 1u << 20;
constexpr std::uint64_t kIndexAt = kFiles * kFileBytes;

// Whether a path stays below the directory it is joined to.
bool is_safe_name(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.back() == '/') return false;
  const fs::path path(name);
  if (path.lexically_normal().native() != name) return false;
  return std::all_of(path.begin(), path.end(), [](const fs::path& part) {
    return !part.empty() && part != "." && part != "..";
  });
}

std::vector<std::string> files_below(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    names.push_back(entry.path().lexically_relative(directory).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

FileEntry& entry_of(FileIndex& index, const std::string& name, const std::string& directory) {
  auto found = std::find_if(index.begin(), index.end(),
                            [&](const FileEntry& entry) { return entry.name == name; });
  if (found == index.end()) {
    found = std::find_if(index.begin(), index.end(),
                         [](const FileEntry& entry) { return entry.name.empty(); });
  }
  if (found == index.end()) {
    fail(Errc::invalid_argument, "{}: more than {} files", directory, kFiles);
  }
  return *found;
}

void pack_file(const base::File& file, std::byte* place, FileEntry& entry) {
  const std::uint64_t size = file.size_bytes();
  if (size > kFileBytes) {
    fail(Errc::invalid_argument, "{}: {} bytes are too many: a file of a datastore has at most {}",
         file.path(), size, kFileBytes);
  }
  std::vector<std::byte> buffer(std::min<std::uint64_t>(size, kCopyBytes));
  for (std::uint64_t at = 0; at < size; at += buffer.size()) {
    const std::span part(buffer.data(), std::min<std::uint64_t>(buffer.size(), size - at));
    file.pread(part, at);
    base::make_equal(place + at, part);
  }
  if (size < entry.length_bytes) base::make_zero(place + size, entry.length_bytes - size);
  entry.length_bytes = size;
}

bool holds(const std::string& file, std::uint64_t length_bytes, std::uint64_t offset_bytes,
           const ReadArea& read) {
  std::error_code error;
  if (fs::file_size(file, error) != length_bytes || error) return false;
  const auto in = base::posix_fs().open(file, base::OpenMode::read_only);
  std::vector<std::byte> there(std::min<std::uint64_t>(length_bytes, kCopyBytes)), wanted(there);
  for (std::uint64_t at = 0; at < length_bytes; at += there.size()) {
    const auto n = std::min<std::uint64_t>(there.size(), length_bytes - at);
    in->pread(std::span(there).first(n), at);
    read(offset_bytes + at, std::span(wanted).first(n));
    if (std::memcmp(there.data(), wanted.data(), n) != 0) return false;
  }
  return true;
}

// An untrusted directory must not lead outside by a link.
void make_parents(const std::string& directory, const std::string& name) {
  fs::path at = directory;
  for (const auto& part : fs::path(name).parent_path()) {
    at /= part;
    if (fs::is_symlink(at)) fail(Errc::corrupted, "{}: is a symbolic link", at.string());
    fs::create_directory(at);
  }
}

void write_file(const std::string& directory, const std::string& name, std::uint64_t length_bytes,
                std::uint64_t offset_bytes, const ReadArea& read) {
  make_parents(directory, name);
  // Next to the directory: a killed process's leftover is then no file of the directory.
  base::NewFile made(base::posix_fs(), directory);
  std::vector<std::byte> buffer(std::min<std::uint64_t>(length_bytes, kCopyBytes));
  for (std::uint64_t at = 0; at < length_bytes; at += buffer.size()) {
    const std::span part(buffer.data(), std::min<std::uint64_t>(buffer.size(), length_bytes - at));
    read(offset_bytes + at, part);
    made.file().pwrite(part, at);
  }
  made.replace_unsynced(directory + "/" + name);
}

}  // namespace

PageBytes encode_index(const FileIndex& index) {
  PageBytes page{};
  std::memcpy(page.data(), kMagic, 8);
  for (std::size_t i = 0; i < kFiles; ++i) {
    assert(index[i].name.size() < kNameBytes);
    std::byte* const entry = page.data() + kEntriesAt + i * kEntryBytes;
    std::memcpy(entry, index[i].name.data(), index[i].name.size());
    std::memcpy(entry + kNameBytes, &index[i].length_bytes, sizeof(std::uint64_t));
  }
  return page;
}

const char* decode_index(std::span<const std::byte> page, FileIndex& index) {
  index = {};
  if (page.size() != kPageBytes || std::memcmp(page.data(), kMagic, 8) != 0) return "no datastore";
  FileIndex found;
  for (std::size_t i = 0; i < kFiles; ++i) {
    const std::byte* const entry = page.data() + kEntriesAt + i * kEntryBytes;
    const auto* const name = reinterpret_cast<const char*>(entry);
    const auto length = ::strnlen(name, kNameBytes);
    std::memcpy(&found[i].length_bytes, entry + kNameBytes, sizeof(std::uint64_t));
    found[i].name.assign(name, length);
    if (length == kNameBytes) return "a file's name has no end";
    if (found[i].length_bytes > kFileBytes) return "a file is too long";
    if (length == 0) {
      if (found[i].length_bytes != 0) return "a file has no name";
      continue;
    }
    if (!is_safe_name(found[i].name)) return "a file's name leads outside the directory";
    for (std::size_t j = 0; j < i; ++j) {
      if (found[j].name == found[i].name) return "two files have one name";
    }
  }
  index = std::move(found);
  return nullptr;
}

void pack_files(const std::string& directory, std::byte* area, FileIndex& index) {
  const auto names = files_below(directory);
  for (std::size_t i = 0; i < kFiles; ++i) {
    FileEntry& entry = index[i];
    if (entry.name.empty() || std::binary_search(names.begin(), names.end(), entry.name)) continue;
    base::make_zero(area + i * kFileBytes, entry.length_bytes);
    entry = {};
  }
  for (const auto& name : names) {
    if (name.size() >= kNameBytes) {
      fail(Errc::invalid_argument, "{}/{}: a file's name has at most {} bytes", directory, name,
           kNameBytes - 1);
    }
    FileEntry& entry = entry_of(index, name, directory);
    entry.name = name;
    const auto number = static_cast<std::uint64_t>(&entry - index.data());
    const auto file =
        base::posix_fs().open(fmt::format("{}/{}", directory, name), base::OpenMode::read_only);
    pack_file(*file, area + number * kFileBytes, entry);
  }
  base::make_equal(area + kIndexAt, encode_index(index));
}

void clear_files(std::byte* area, const FileIndex& index) {
  for (std::size_t i = 0; i < kFiles; ++i) {
    assert(index[i].length_bytes <= kFileBytes);
    base::make_zero(area + i * kFileBytes, index[i].length_bytes);
  }
  base::make_zero(area + kIndexAt, kPageBytes);
}

bool files_are(const std::string& directory, const FileIndex& index, const ReadArea& read) {
  std::size_t held = 0;
  for (std::size_t i = 0; i < kFiles; ++i) {
    const FileEntry& entry = index[i];
    if (entry.name.empty()) continue;
    ++held;
    if (!holds(directory + "/" + entry.name, entry.length_bytes, i * kFileBytes, read))
      return false;
  }
  return files_below(directory).size() == held;
}

void unpack_files(const std::string& directory, const FileIndex& index, const ReadArea& read,
                  const std::vector<std::string>& own) {
  for (std::size_t i = 0; i < kFiles; ++i) {
    const FileEntry& entry = index[i];
    if (entry.name.empty()) continue;
    assert(is_safe_name(entry.name));
    const std::string file = directory + "/" + entry.name;
    std::error_code error;
    const bool is_own = std::find(own.begin(), own.end(), entry.name) != own.end();
    if (is_own && fs::file_size(file, error) > 0 && !error) continue;
    if (holds(file, entry.length_bytes, i * kFileBytes, read)) continue;
    write_file(directory, entry.name, entry.length_bytes, i * kFileBytes, read);
  }
}

}  // namespace vellum::datastore
