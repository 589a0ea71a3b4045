#include "store/catalog/lock/creation_lock.hpp"

#include <utility>

#include "base/fail.hpp"
#include "store/catalog/lock/lock_bytes.hpp"

namespace vellum::store {
namespace {

using namespace std::chrono_literals;
constexpr auto kCreationPatience = 30s;

}  // namespace

CreationLock::CreationLock(base::Fs& fs, std::string path) : fs_(fs), path_(std::move(path)) {
  if (!lock_with_patience(kCreationPatience, [this] { return try_lock(); })) {
    fail(Errc::busy, "{}: somebody else is creating that store", path_);
  }
}

CreationLock::~CreationLock() { base::unlink_quietly(fs_, path_); }

// The holder before removes the file: a lock of the removed one excludes nobody.
bool CreationLock::try_lock() {
  try {
    fs_.open(path_, base::OpenMode::create_new);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
  }
  try {
    file_ = fs_.open(path_, base::OpenMode::read_write);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    return false;
  }
  return file_->try_lock_exclusive() && !file_->replaced();
}

}  // namespace vellum::store
