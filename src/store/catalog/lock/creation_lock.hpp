// store/catalog/lock/creation_lock.hpp: the lock of the process that creates an encrypted store.
//
// A flock(2) of a file in `tmp`, which exists only during the creation. What a crash leaves of it
// does not hinder the next creator.
#pragma once

#include <memory>
#include <string>

#include "base/files/file.hpp"

namespace vellum::store {

class CreationLock {
 public:
  // Waits for the holder. Errc::busy if that takes long. `path`: of the lock's file.
  CreationLock(base::Fs& fs, std::string path);
  ~CreationLock();  // removes the file while it is still locked
  CreationLock(const CreationLock&) = delete;
  CreationLock& operator=(const CreationLock&) = delete;

 private:
  bool try_lock();
  base::Fs& fs_;
  const std::string path_;
  std::unique_ptr<base::File> file_;
};

}  // namespace vellum::store
