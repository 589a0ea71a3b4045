#include "remote/fetch/fetch_lock.hpp"

#include <thread>

#include "base/try_to.hpp"

namespace vellum::remote {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(2);

std::unique_ptr<base::File> open_lock_file(base::Fs& fs, const std::string& path) {
  for (;;) {
    try {
      return fs.open(path, base::OpenMode::create_new);
    } catch (const Error& e) {
      if (e.code() != Errc::already_exists) throw;
    }
    try {
      return fs.open(path, base::OpenMode::read_write);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;  // its holder has just released it
    }
  }
}

// A holder unlinks the file when it releases the lock, so a lock on an unlinked file is stale.
std::unique_ptr<base::File> wait_for_lock(base::Fs& fs, const std::string& path,
                                          std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (std::chrono::steady_clock::now() < until) {
    auto file = open_lock_file(fs, path);
    if (file->try_lock_exclusive() && !file->replaced()) return file;
    std::this_thread::sleep_for(kPollInterval);
  }
  return nullptr;
}

}  // namespace

FetchLock acquire_fetch_lock(base::Fs& fs, const std::string& path,
                             std::chrono::milliseconds timeout) {
  std::unique_ptr<base::File> file;
  base::try_to([&] { file = wait_for_lock(fs, path, timeout); });
  return {fs, std::move(file)};
}

}  // namespace vellum::remote
