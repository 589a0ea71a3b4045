// remote/engine/object_store.hpp: the seam between Vellum and the place where remotes keep objects.
//
// An object has a key and immutable or replaceable bytes. Everything that leaves the machine goes
// through these five calls, so a test can count, delay, fail or damage each of them. Two engines
// stand behind them: a directory, and S3.
//
// Errors: every call throws vellum::Error, which names the object by URL and key:
//   not_found    there is no such object
//   read_only    the file system cannot be written
//   no_space     the disk or the quota is full
//   corrupted    the object is larger or smaller than the caller accepts
//   io           the rest, after the engine's own attempts; as a RefusedRequest where attempts are
// in vain
//
// Integrity: the engine guarantees nothing about what get() returns. The objects of a remote carry
// their own checksums, and the caller checks them.
//
// Threads: all calls from any thread. Calls of several threads run at once, up to connections().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <vellum/error.hpp>

namespace vellum::remote {

// The server has understood the request and refuses it: it would refuse it again.
struct RefusedRequest : Error {
  using Error::Error;
};

struct ObjectInfo {
  std::string key;
  std::uint64_t size_bytes = 0;
  bool operator==(const ObjectInfo&) const = default;
};

struct ObjectRange {
  std::uint64_t offset_bytes = 0, length_bytes = 0;
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  // The URL without anything secret, for messages.
  virtual const std::string& url() const noexcept = 0;
  // How many calls it serves at once.
  virtual std::size_t connections() const noexcept = 0;

  // The whole object. Errc::corrupted when it has more than `limit_bytes`.
  virtual std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) = 0;
  // Exactly these bytes of it. Errc::corrupted when it ends before.
  virtual std::vector<std::byte> get_range(const std::string& key, ObjectRange range) = 0;
  // Makes the object unless one of that key exists. False: one exists, with other content or with
  // the same. Durable on return. Of several creators at once, one gets true, as far as the server
  // keeps its word (remote/engine/probe.hpp).
  virtual bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) = 0;
  // Makes or replaces the object. Durable on return.
  virtual void put(const std::string& key, std::span<const std::byte> bytes) = 0;
  // The objects whose keys begin so, ascending by key; at most `most` of them.
  virtual std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) = 0;
  // An object that was found, and not put by the caller, is durable on return: its maker may have
  // been killed before it was. Servers say nothing that is not.
  virtual void make_durable(const std::string&) {}
  // An object that is not there is removed already.
  virtual void remove(const std::string& key) = 0;
  // Ends all calls, those under way and later ones, by an error.
  virtual void stop() noexcept {}
  // Removes what killed processes have left besides objects. Tells no error.
  virtual void sweep() noexcept {}
};

// A key consists of lower-case letters, digits, '-' and '.', in parts divided by single slashes. No
// part begins with a dot. So every key is a path in a directory and needs no escapes in a URL.
bool is_good_key(const std::string& key);
// Throws Errc::invalid_argument.
void require_good_key(const std::string& key);

}  // namespace vellum::remote
