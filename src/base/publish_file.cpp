// base/publish_file.cpp: whole small files, read and published through the seam (file.hpp).
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vellum/error.hpp>

#include "base/file.hpp"

namespace vellum::base {
namespace {

// Unique among the processes that share the directory, also across machines or process-id
// namespaces; create_new turns the improbable clash into an error.
std::string unique_tmp_path(const std::string& tmp_directory, const std::string& name) {
  static std::atomic<std::uint64_t> counter{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return tmp_directory + "/" + name + "." + std::to_string(::getpid()) + "." + std::to_string(now) +
         "." + std::to_string(counter.fetch_add(1));
}

void write_new_file(Fs& fs, const std::string& path, std::span<const std::byte> bytes) {
  const auto file = fs.open(path, OpenMode::create_new);
  file->pwrite(bytes, 0);
  file->sync_data();
}

void unlink_quietly(Fs& fs, const std::string& path) noexcept {
  try {
    fs.unlink(path);
  } catch (const std::exception&) {
    // The error on its way to the caller says more; what stays in the tmp directory is swept later.
  }
}

}  // namespace

std::vector<std::byte> read_whole(Fs& fs, const std::string& path, std::uint64_t limit_bytes) {
  const auto file = fs.open(path, OpenMode::read_only);
  const std::uint64_t size = file->size_bytes();
  if (size > limit_bytes) {
    throw Error(Errc::damaged, path + ": " + std::to_string(size) + " bytes, at most " +
                                   std::to_string(limit_bytes) + " expected");
  }
  std::vector<std::byte> bytes(size);
  file->pread(bytes, 0);
  return bytes;
}

void publish_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                  const std::string& name, std::span<const std::byte> bytes, bool replace) {
  const std::string tmp = unique_tmp_path(tmp_directory, name);
  const std::string target = directory + "/" + name;
  try {
    write_new_file(fs, tmp, bytes);
    if (replace) {
      fs.rename(tmp, target);
    } else {
      fs.rename_new(tmp, target);
    }
  } catch (...) {
    unlink_quietly(fs, tmp);
    throw;
  }
  fs.sync_directory(directory);
}

}  // namespace vellum::base
