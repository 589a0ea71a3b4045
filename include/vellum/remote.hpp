// vellum/remote.hpp: what the calls of a store that send versions to a remote, and get them from
// there, take and tell. vellum/store.hpp includes it.
//
// A remote holds versions of one store in an object store: an S3 bucket
// (`s3://bucket/prefix?endpoint=https://host:port&region=R&profile=P&addressing=path|virtual`, all
// behind the question mark optional) or a directory that several machines share
// (`file:///mnt/shared/x`). Credentials come from the environment or ~/.aws, as for Amazon's own
// tools, and never from a URL. S3 needs libcurl 7.85 on the machine: Errc::unsupported without it.
#ifndef VELLUM_REMOTE_HPP
#define VELLUM_REMOTE_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vellum {

// A remote that a store knows.
struct RemoteInfo {
  std::string name, url;
  bool one_writer = false;  // this store alone may push there
};

// Store::add_remote().
struct AddRemoteOptions {
  // Only this store will push there: where the probe finds that the server lets two creators of an
  // object win. The remote must be new.
  bool one_writer = false;
};

// Store::push().
struct PushOptions {
  std::vector<std::string> versions;  // snapshots and branches; empty: all
  // Also pushes branches that another store has pushed since; what it pushed last is lost.
  bool take_over = false;
};
struct PushedVersion {
  std::string name;
  bool is_branch = false;
  bool was_there = false;  // the remote has this version already
  std::uint64_t epoch =
      0;  // of a branch: one more each time that a store drops what another has pushed
};
struct PushReport {
  std::vector<PushedVersion> versions;
  std::uint64_t objects_uploaded = 0, bytes_uploaded = 0;  // besides the head that names them
  std::uint64_t pieces_used_again = 0;
};

// Store::pull().
struct PullOptions {
  std::vector<std::string> versions;  // empty: all of the remote's
  // Of a store that was cloned lazily: also brings all of its packs here. The remote is not needed
  // afterwards.
  bool packs = false;
  // Also gives the remote's version to a branch that has commits which this drops: of this store's
  // own, or newer ones that the remote has lost, or that another store has dropped there.
  bool take_over = false;
};
// Store::clone().
struct CloneOptions {
  std::vector<std::string> versions;  // empty: all of the remote's
  // The new store's packs stay at the remote, and come page by page when they are read, as with
  // Store::open() of a URL. The store can be written; what it writes is here until it is pushed.
  bool lazy = false;
};
struct PulledVersion {
  std::string name;
  bool is_branch = false;
  bool was_there = false;  // nothing was to be done
  bool is_ahead = false;   // a branch with commits that the remote lacks, which stays as it is
  bool is_older = false;  // is_ahead, since the remote has lost some: it is an older copy of itself
};
struct PullReport {
  std::vector<PulledVersion> versions;
  std::uint64_t pieces_read = 0, bytes_read = 0;
};

// Store::replicate().
struct ReplicateOptions {
  // A machine that is lost takes no commit with it that is older, as long as the server answers and
  // a push takes no more than half of it.
  std::chrono::milliseconds interval = std::chrono::milliseconds(1000);
  bool take_over = false;  // as PushOptions::take_over
};
struct ReplicateState {
  std::uint64_t pushes = 0, versions = 0, bytes_uploaded = 0;
  // How long ago the oldest commit was noticed that is not at the remote; 0: there is none.
  std::chrono::milliseconds behind{0};
  // Why the last push failed, or which version the remote has otherwise and does not take; empty: all
  // is well. Pushes go on.
  std::string failure;
};
// False ends the replication.
using ReplicateFn = std::function<bool(const ReplicateState&)>;

}  // namespace vellum

#endif  // VELLUM_REMOTE_HPP
