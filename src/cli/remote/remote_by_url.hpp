// cli/remote/remote_by_url.hpp: a remote that is given by its URL, without a store.
#pragma once

#include <functional>
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

// The URL of the remote as it was at this time, a form of region/api/version_names.hpp or of RFC
// 3339; empty: as it is. Errc::invalid_argument: it is no time, or not the URL of a remote;
// unsupported: a directory keeps no earlier states.
std::string url_at_time(const std::string& url, const std::string& time);

// Calls `read`. Errors that a lost or damaged remote explains get a word about --at, if its bucket
// keeps older versions of its objects.
void read_with_advice(const std::string& url, const std::function<void()>& read);
// The same word; empty: none is due.
std::string advice_on_older(const std::string& url);

// The versions in a head, in the form in which a store lists its own.
std::vector<VersionInfo> versions_of(const remote::Head& head);

}  // namespace vellum::cli
