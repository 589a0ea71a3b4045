// base/files/directory_identity.hpp: tells a directory from a copy of it that has its times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vellum::base {

// No program can set these.
struct DirectoryIdentity {
  std::uint64_t inode = 0;
  std::int64_t changed_ns = 0;  // st_ctime, since 1970-01-01 UTC
};

// What a file system (base/files/file.hpp) also implements if it can tell.
class DirectoryIdentities {
 public:
  virtual std::optional<DirectoryIdentity> directory_identity(const std::string& path) const = 0;

 protected:
  ~DirectoryIdentities() = default;
};

// `fs`: a base::Fs. nullopt: it does not say.
template <typename FileSystem>
std::optional<DirectoryIdentity> directory_identity(const FileSystem& fs, const std::string& path) {
  const auto* const known = dynamic_cast<const DirectoryIdentities*>(&fs);
  return known != nullptr ? known->directory_identity(path) : std::nullopt;
}

}  // namespace vellum::base
