// cli/files/private_directory.hpp: a directory that only this user can access. It and its content
// exist as long as the object.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::cli {

class PrivateDirectory {
 public:
  // `begin`: the beginning of its path; six characters make it unique.
  explicit PrivateDirectory(const std::filesystem::path& begin) {
    std::string pattern = begin.string() + "XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) fail(Errc::io, "{}: {}", pattern, std::strerror(errno));
    path_ = pattern;
  }
  ~PrivateDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace vellum::cli
