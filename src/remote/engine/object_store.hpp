// remote/engine/object_store.hpp: the interface to the stores in which remotes keep objects.
//
// An object has a key and immutable or replaceable bytes. All traffic with a remote uses this
// interface, so a test can count, delay, fail or damage each call. It has two implementations: a
// directory and S3. In front of them, others limit transfers, or encrypt.
//
// Errors: every call throws vellum::Error, which names the object by URL and key:
//   not_found    no such object
//   read_only    the file system cannot be written
//   no_space     the disk or the quota is full
//   corrupted    the object is larger or smaller than the caller accepts
//   io           the rest, after the engine's own retries; a RefusedRequest if retries are useless
//
// Integrity: the engine does not check the bytes that get() returns. The objects of a remote have
// their own checksums, and the caller checks them.
//
// Threads: all calls from any thread. Calls of several threads run at once, up to connections().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <vellum/error.hpp>

#include "base/crypto/object_keys.hpp"

namespace vellum::remote {

// The server has understood the request and refuses it; a retry would be refused again.
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

// The key of a remote whose objects are encrypted as wholes (remote/seal/sealed_objects.hpp).
struct ObjectsKey {
  std::shared_ptr<const base::ObjectKeys> keys;
  std::vector<std::byte> slots;  // the key slots that opened it, as an object
};

class ObjectVersions;

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  // The URL without secrets, for messages.
  virtual const std::string& url() const noexcept = 0;
  // The number of calls that it serves concurrently; at least 1.
  virtual std::size_t connections() const noexcept = 0;
  // The key with which it seals and opens its objects; null: it stores them as they are.
  virtual const ObjectsKey* objects_key() const noexcept { return nullptr; }
  // The versions of its objects (remote/engine/object_versions.hpp); null: it keeps none.
  virtual ObjectVersions* versions() noexcept { return nullptr; }

  // The whole object. Errc::corrupted when it has more than `limit_bytes`.
  virtual std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) = 0;
  // Exactly this range of the object. Errc::corrupted when the object is shorter.
  virtual std::vector<std::byte> get_range(const std::string& key, ObjectRange range) = 0;
  // The first bytes of the object, at most so many: all of a shorter one.
  virtual std::vector<std::byte> get_start(const std::string& key, std::uint64_t most_bytes) = 0;
  // Whether the object exists and has this size. One small request at a server. REQUIRES: the size
  // is not 0.
  virtual bool has(const std::string& key, std::uint64_t size_bytes) = 0;
  // Where several versions may be the object (remote/engine/objects_at.hpp), and those that read it
  // find it damaged: from now on, this one is read, and 0 is the most probable. False: there are no
  // more.
  virtual bool use_version(const std::string&, std::size_t) { return false; }
  // Creates the object unless the key exists. False: it exists, with the same content or another.
  // Durable on return. Of several concurrent creators exactly one gets true, provided that the
  // server implements conditional writes correctly (remote/engine/probe.hpp).
  virtual bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) = 0;
  // Creates or replaces the object. Durable on return.
  virtual void put(const std::string& key, std::span<const std::byte> bytes) = 0;
  // The objects whose keys begin with `prefix`, ascending by key; at most `most` of them.
  virtual std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) = 0;
  // Makes an object durable that another process has created, which may have been killed before it
  // synced. Does nothing for servers: they report only durable objects.
  virtual void make_durable(const std::string&) {}
  // Succeeds if the object does not exist.
  virtual void remove(const std::string& key) = 0;
  // Removes the objects, in any order. A server that takes many keys in one request gets few
  // requests; any other engine removes one after the other.
  virtual void remove_all(std::span<const std::string> keys) {
    for (const std::string& key : keys) remove(key);
  }
  // Fails all calls, current and later ones, with an error.
  virtual void stop() noexcept {}
  // Removes temporary files of killed processes. Reports no error.
  virtual void sweep() noexcept {}
};

// A key consists of lower-case letters, digits, '-' and '.', in components separated by single
// slashes. No component begins with a dot. Thus every key is a relative path, and a URL needs no
// escapes for it.
bool is_good_key(const std::string& key);
// Throws Errc::invalid_argument.
void require_good_key(const std::string& key);

}  // namespace vellum::remote
