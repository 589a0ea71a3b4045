// vellum/remote.hpp: options and results of push, pull, clone and replication. vellum/store.hpp
// includes it.
//
// A remote holds versions of one store in an object store: an S3 bucket
// (`s3://bucket/prefix?endpoint=https://host:port&region=R&profile=P&addressing=path|virtual`, with
// `storage-class`, `kms-key` and `at`; all after the question mark optional) or a directory that
// several machines share (`file:///mnt/shared/x`). Credentials are read from the environment or
// ~/.aws, as by Amazon's own tools, and never from a URL. `at=2026-11-24T10:30:00Z` is the remote
// as it was then, to be read, of a bucket that keeps versions of its objects. S3 needs libcurl 7.85
// on the machine: Errc::unsupported without it.
#ifndef VELLUM_REMOTE_HPP
#define VELLUM_REMOTE_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <vellum/key.hpp>

namespace vellum {

// A remote of a store.
struct RemoteInfo {
  std::string name, url;
  bool one_writer = false;  // only this store may push there
  // Of a remote that is encrypted by objects (AddRemoteOptions::encrypt): which data key it has.
  std::string key_fingerprint = {};
  std::chrono::seconds lock{0};  // of its objects (AddRemoteOptions::lock); 0: none
};

// Store::add_remote().
struct AddRemoteOptions {
  // Only this store will push there: needed where the probe finds that two creators of one object
  // can both succeed at the server. The remote must be new.
  bool one_writer = false;
  // Encrypt all objects there, for a plain store. A new remote gets a data key of its own, and `key`
  // is the secret of its first key slot, as StoreOptions::key is. An existing one, which another
  // copy of the store has created, is opened with key_source(), and so is the remote in all later
  // calls.
  bool encrypt = false;
  KeySource key = {};
  // Lock each object for so long when it is put (S3 Object Lock, in compliance mode), and again
  // before half of that is over, as long as a version needs it: nobody can remove it before, not
  // even with the credentials of this machine. push(), replicate() and `vellum gc URL` extend the
  // locks. Errc::unsupported: the bucket has no Object Lock. 0: none, unless another store has
  // locked the remote.
  std::chrono::seconds lock{0};
};

// Store::push().
struct PushOptions {
  std::vector<std::string> versions;  // snapshots and branches; empty: all
  // Also pushes branches that another store has pushed since; its last push is lost.
  bool take_over = false;
  // Only reports what would be uploaded.
  bool dry_run = false;
};
struct PushedVersion {
  std::string name;
  bool is_branch = false;
  bool was_there = false;  // the remote has this version already
  // Of a branch: increased each time that a store drops another store's push.
  std::uint64_t epoch = 0;
};
struct PushReport {
  std::vector<PushedVersion> versions;
  std::uint64_t objects_uploaded = 0, bytes_uploaded = 0;  // besides the head that names them
  std::uint64_t pieces_used_again = 0;
};

// Store::pull().
struct PullOptions {
  std::vector<std::string> versions = {};  // empty: all of the remote's
  // For a lazy clone: also fetches all of its packs. The remote is not needed afterwards. The clone's
  // hold stays there, because copies of the clone may rely on it: `vellum pull --packs --release`
  // removes it.
  bool packs = false;
  // Also replaces branches whose commits are lost by it: local commits, or newer ones that the
  // remote has lost, or that another store has dropped there.
  bool take_over = false;
  // Only reports what would be fetched; for a lazy clone, only the versions. Not with `packs`.
  bool dry_run = false;
  // Errc::untrusted, if the remote shows an older head than this store has seen, or one on another
  // line: it was restored, or exchanged. Without this, the pull goes on, and the program `vellum` warns
  // once. A store remembers a head if a version there is signed, or after such a pull. take_over
  // accepts any head. Heads are not signed: this finds old copies, not a forger
  // (docs/security.md, Signed versions).
  bool only_newer = false;
  // Errc::untrusted, unless a snapshot that this pull wants is signed with this root: that of a version
  // that is known to exist (Signature::root), as hexadecimal digits. Empty: any remote. The root is
  // computed again from the content that was pulled. Signatures are not checked:
  // Store::check_signatures() does that. Not with dry_run, nor in a lazy clone.
  std::string expect_root = {};
};
// Store::clone().
struct CloneOptions {
  std::vector<std::string> versions;  // empty: all of the remote's
  // The new store's packs stay at the remote, and pages are fetched when they are read, as with
  // Store::open() of a URL. The store can be written; its own data is local until it is pushed.
  bool lazy = false;
  std::string expect_root = {};  // as in PullOptions; not with lazy
};
struct PulledVersion {
  std::string name;
  bool is_branch = false;
  bool was_there = false;  // nothing to do
  bool is_ahead = false;   // a branch with commits that the remote lacks; it stays as it is
  bool is_older = false;   // is_ahead because the remote has lost commits: an older copy of itself
};
struct PullReport {
  std::vector<PulledVersion> versions;
  std::uint64_t pieces_read = 0, bytes_read = 0;
  std::vector<std::string> warnings;  // of a clone: what a person should know, a sentence each
};

// Store::replicate().
struct ReplicateOptions {
  // The age of the oldest commit that is lost with this machine, provided that the server answers
  // and a push takes no more than half of this time.
  std::chrono::milliseconds interval = std::chrono::milliseconds(1000);
  bool take_over = false;  // as PushOptions::take_over
};
struct ReplicateState {
  std::uint64_t pushes = 0, versions = 0, bytes_uploaded = 0;
  std::uint64_t forgotten = 0;  // snapshots that rules have removed at the remote
  // The time since the oldest commit was noticed that is not at the remote; 0: there is none.
  std::chrono::milliseconds behind{0};
  // Why the last push failed, or which version differs at the remote and is refused; empty: no
  // failure. Pushes continue.
  std::string failure;
};
// False ends the replication.
using ReplicateFn = std::function<bool(const ReplicateState&)>;

}  // namespace vellum

#endif  // VELLUM_REMOTE_HPP
