// base/files/new_file.cpp: see new_file.hpp.
#include "base/files/new_file.hpp"

#include <unistd.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::base {
namespace {

constexpr std::string_view kBegin = ".vellum-new.";
constexpr std::string_view kDirectoryEnd = ".d";  // of a directory, after its lock's name
constexpr std::size_t kMaxOfName = 100;           // a file's name has at most 255 bytes

void remove_tree(Fs& fs, const std::string& path) {
  for (const auto& entry : fs.list(path)) {
    const std::string inner = path + "/" + entry.name;
    entry.is_directory ? remove_tree(fs, inner) : fs.unlink(inner);
  }
  fs.remove_directory(path);
}

// Removes the directory first. The lock file must exist as long as the directory.
void sweep_one(Fs& fs, const std::string& path) {
  const auto file = fs.open(path, OpenMode::read_only);
  if (!file->try_lock_exclusive() || file->replaced()) return;
  const std::string directory = path + std::string(kDirectoryEnd);
  if (fs.exists(directory)) remove_tree(fs, directory);
  fs.unlink(path);
}

bool is_ours(File& file) {
  try {
    return file.try_lock_exclusive() && !file.replaced();
  } catch (const Error&) {
    return true;  // a file system without locks: no process sweeps there
  }
}

// Errors name the final path, not the unfinished one.
std::unique_ptr<File> create(Fs& fs, const std::string& unfinished, const std::string& path) {
  try {
    return fs.open(unfinished, OpenMode::create_new);
  } catch (const Error& error) {
    const std::string_view text = error.what();
    if (!text.starts_with(unfinished)) throw;
    fail(error.code(), "{}{}", path, text.substr(unfinished.size()));
  }
}

std::string unfinished_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return parent_of(path) + "/" + std::string(kBegin) + name.substr(0, kMaxOfName) + "." +
         unique_suffix();
}

}  // namespace

std::string unique_suffix() {
  static std::atomic<std::uint64_t> counter{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return std::to_string(::getpid()) + "." + std::to_string(now) + "." +
         std::to_string(counter.fetch_add(1));
}

std::string without_end_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool ensure_directory(Fs& fs, const std::string& path) {
  try {
    fs.make_directory(path);
    return true;
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    return false;
  }
}

void ensure_directories(Fs& fs, const std::string& path) {
  if (fs.exists(path)) return;
  const std::string parent = parent_of(path);
  if (parent != path) ensure_directories(fs, parent);
  ensure_directory(fs, path);
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void sweep_unfinished(Fs& fs, const std::string& directory) noexcept {
  try {
    for (const auto& entry : fs.list(directory)) {
      if (!entry.is_regular_file || !entry.name.starts_with(kBegin)) continue;
      try {
        sweep_one(fs, directory + "/" + entry.name);
      } catch (const std::exception&) {  // removed meanwhile, or another user's file
      }
    }
  } catch (const std::exception&) {  // an unlistable directory may be writable
  }
}

void require_free(Fs& fs, const std::string& given_path) {
  const std::string path = without_end_slashes(given_path);
  sweep_unfinished(fs, parent_of(path));
  if (fs.exists(path)) fail(Errc::already_exists, "{}: exists", path);
}

NewFile::NewFile(Fs& fs, std::string path) : fs_(fs), path_(std::move(path)) {
  sweep_unfinished(fs_, parent_of(path_));
  // Between creation and lock a sweep may remove the file. Then create another one.
  do {
    unfinished_ = unfinished_name(path_);
    file_ = create(fs_, unfinished_, path_);
  } while (!is_ours(*file_));
  file_->renamed(path_);
  assert(parent_of(unfinished_) == parent_of(path_));
}

NewFile::~NewFile() {
  if (file_ != nullptr) unlink_quietly(fs_, unfinished_);
}

void NewFile::publish() { name_it(false); }
void NewFile::replace() { name_it(true); }

void NewFile::replace_unsynced(const std::string& path) {
  assert(file_ != nullptr);
  fs_.rename(unfinished_, path);
  file_.reset();
}

void NewFile::name_it(bool replacing) {
  assert(file_ != nullptr);
  file_->sync_data();
  replacing ? fs_.rename(unfinished_, path_) : fs_.rename_new(unfinished_, path_);
  file_.reset();
  fs_.sync_directory(parent_of(path_));
}

NewDirectory::NewDirectory(Fs& fs, std::string path)
    : fs_(fs),
      path_(without_end_slashes(std::move(path))),
      lock_(fs, path_),
      unfinished_(lock_.unfinished_path() + std::string(kDirectoryEnd)) {}

NewDirectory::~NewDirectory() {
  try {
    if (fs_.exists(unfinished_)) remove_tree(fs_, unfinished_);
  } catch (const std::exception&) {  // the next writer's sweep removes it
  }
}

void NewDirectory::publish() {
  fs_.rename_new(unfinished_, path_);
  fs_.sync_directory(parent_of(path_));
}

}  // namespace vellum::base
