// base/files/directory_identity.hpp: tells a directory from a copy of it that has its times.
#pragma once

#include <optional>
#include <string>

#include "base/files/file.hpp"

namespace vellum::base {

// What a file system implements that can tell.
class DirectoryIdentities {
 public:
  // At least the inode and changed_ns, which no program can set.
  virtual std::optional<FileIdentity> directory_identity(const std::string& path) const = 0;

 protected:
  ~DirectoryIdentities() = default;
};

// nullopt: the file system does not say.
std::optional<FileIdentity> directory_identity(const Fs& fs, const std::string& path);

}  // namespace vellum::base
