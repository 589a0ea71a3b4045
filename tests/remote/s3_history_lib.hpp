// The versions of the objects in the test's S3 server, with Object Lock, and with a clock that a
// test can set.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "remote/s3_server_lib.hpp"

namespace vellum::remote::test {

class S3History {
 public:
  using Time = std::chrono::system_clock::time_point;
  struct Version {
    std::string id, body;
    Time put_at, locked_until;  // the latter: the epoch for none
    bool is_deletion = false;
    std::string mode = "COMPLIANCE";
    // The time of the lock, as another server may write it; empty: as usual.
    std::string until_text = "";
  };
  using Versions = std::vector<Version>;  // of a key, oldest first

  // Added to this machine's time. A request with another time is refused, as by any server.
  std::atomic<std::int64_t> ahead_s{0};
  // By one reply to a listing of versions.
  std::atomic<std::size_t> most_listed{1000};
  // Like some servers: all deletions behind all versions of a listing.
  std::atomic<bool> deletions_last{false};
  // False: no Object Lock; and no versions.
  std::atomic<bool> has_lock{true}, has_versions{true};
  // Credentials that may only put and get.
  std::atomic<bool> forbids_deletes{false};

  Time now() const;
  // Nullopt: a request that has nothing to do with versions, after which the current objects are
  // as without them.
  std::optional<S3Server::Answer> handle(const S3Request& request);
  std::map<std::string, Versions> all() const;
  // What the server's owner may do: as if the time of its lock were over.
  void lose(const std::string& key, const std::string& id);
  // A version of an object, put at a time, without a lock. Ids are in no order.
  void add(const std::string& key, const std::string& body, Time put_at, bool is_newest);
  // Changes the newest version of an object.
  void change(const std::string& key, const std::function<void(Version&)>& change);
  // Like Ceph until 2023: an extended lock changes the time of its version.
  std::atomic<bool> moves_times{false};

 private:
  using Answer = S3Server::Answer;
  Answer get(const S3Request& request) const;
  Answer put(const S3Request& request);
  Answer put_retention(const S3Request& request);
  Answer remove(const S3Request& request);
  Answer remove_many(const S3Request& request);
  Answer list(const S3Request& request) const;
  Answer list_versions(const S3Request& request) const;
  const Version* current(const std::string& key) const;
  Version* find(const std::string& key, const std::string& id);
  bool remove_version(const std::string& key, const std::string& id);
  std::string next_id();

  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, Versions> keys_;
  std::uint64_t ids_ = 0;
};

// A server whose objects have versions.
class VersionedServer {
 public:
  VersionedServer();
  S3History history;
  S3Server server;
};

}  // namespace vellum::remote::test
