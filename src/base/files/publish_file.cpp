// base/files/publish_file.cpp: reads and publishes small files as a whole (file.hpp).
#include <cassert>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/new_file.hpp"

namespace vellum::base {
namespace {

constexpr std::uint64_t kMakingByte = std::uint64_t{1} << 40;  // locked until the file has its name

bool is_locked_by_us(File& file) {
  try {
    return file.try_lock_byte(kMakingByte) && !file.replaced();
  } catch (const Error&) {
    return true;  // a file system without locks: no process sweeps there
  }
}

// Between creation and lock a sweep may remove the file. Then creates another one.
std::unique_ptr<File> make_locked(Fs& fs, const std::string& tmp_directory,
                                  const std::string& name) {
  assert(!name.empty() && name.find('/') == std::string::npos);
  for (;;) {
    auto file = fs.open(tmp_directory + "/" + name + "." + unique_suffix(), OpenMode::create_new);
    if (is_locked_by_us(*file)) return file;
  }
}

// Extends the file to the size with a hole.
void write_content(File& file, std::span<const std::byte> bytes, std::uint64_t size_bytes) {
  assert(bytes.size() <= size_bytes);
  file.pwrite(bytes, 0);
  if (bytes.size() < size_bytes) file.truncate(size_bytes);
  file.sync_data();
}

struct FileContent {
  std::span<const std::byte> start;
  std::uint64_t size_bytes;
};

// `name_it` renames the first path to the second one.
void publish(Fs& fs, const std::string& tmp_directory, const std::string& directory,
             const std::string& name, const FileContent& content,
             const std::function<void(const std::string&, const std::string&)>& name_it) {
  const auto file = make_locked(fs, tmp_directory, name);
  const std::string& tmp = file->path();
  const std::string target = directory + "/" + name;
  try {
    write_content(*file, content.start, content.size_bytes);
    name_it(tmp, target);
  } catch (...) {
    unlink_quietly(fs, tmp);
    throw;
  }
  fs.sync_directory(directory);
}

}  // namespace

std::vector<std::byte> read_whole(Fs& fs, const std::string& path, std::uint64_t limit_bytes) {
  const auto file = fs.open(path, OpenMode::read_only);
  const std::uint64_t size = file->size_bytes();
  if (size > limit_bytes) {
    fail(Errc::corrupted, "{}: {} bytes, at most {} expected", path, size, limit_bytes);
  }
  std::vector<std::byte> bytes(size);
  file->pread(bytes, 0);
  return bytes;
}

void replace_hint_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                       const std::string& name, std::span<const std::byte> bytes) {
  const auto file = make_locked(fs, tmp_directory, name);
  try {
    file->pwrite(bytes, 0);
    fs.rename(file->path(), directory + "/" + name);
  } catch (...) {
    unlink_quietly(fs, file->path());
    throw;
  }
}

void publish_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                  const std::string& name, std::span<const std::byte> bytes, bool replace) {
  publish(fs, tmp_directory, directory, name, {bytes, bytes.size()},
          [&](const std::string& from, const std::string& to) {
            replace ? fs.rename(from, to) : fs.rename_new(from, to);
          });
}

void publish_new_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                      const std::string& name, std::span<const std::byte> bytes,
                      const std::function<void(const std::function<void()>&)>& around) {
  publish(fs, tmp_directory, directory, name, {bytes, bytes.size()},
          [&](const std::string& from, const std::string& to) {
            around([&] { fs.rename_new(from, to); });
          });
}

void publish_sparse_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                         const std::string& name, std::span<const std::byte> start,
                         std::uint64_t size_bytes) {
  publish(fs, tmp_directory, directory, name, {start, size_bytes},
          [&](const std::string& from, const std::string& to) { fs.rename_new(from, to); });
}

bool remove_unpublished(Fs& fs, const std::string& path) {
  try {
    const auto file = fs.open(path, OpenMode::read_write);
    if (!file->try_lock_byte(kMakingByte) || file->replaced()) return false;
    fs.unlink(path);
    return true;
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return false;  // it has just got its name, or cannot be locked here
  }
}

}  // namespace vellum::base
