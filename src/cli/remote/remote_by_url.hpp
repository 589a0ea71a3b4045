// cli/remote/remote_by_url.hpp: a remote that is given by its URL, without a store.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/terminal/command.hpp"
#include "remote/session/remote.hpp"
#include "remote/session/remote_keys.hpp"

namespace vellum::cli {

class RemoteByUrl {
 public:
  // Errc::not_found: there is no remote; wrong_key: there is no secret for its key slots.
  explicit RemoteByUrl(const std::string& url);
  const remote::Remote& remote() const noexcept { return *remote_; }
  const format::Superblock& superblock() const noexcept { return unlocked_.superblock; }

 private:
  remote::UnlockedRemote unlocked_;
  std::unique_ptr<remote::Remote> remote_;
};

// The versions in a head, in the form in which a store lists its own.
std::vector<VersionInfo> versions_of(const remote::Head& head);

}  // namespace vellum::cli
