// group/versions/remote_records.hpp: the records of a group in an object store.
//
//   group/vellum.group           which group it is: the file of that name in a directory of records
//   versions/<16 hex digits>     the record of a version; larger numbers have smaller keys
//
// A record exists only if every partition's remote has its part. docs/remote-format.md has the
// order of writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/group.hpp"
#include "remote/engine/object_store.hpp"

namespace vellum::group {

class RemoteRecords {
 public:
  explicit RemoteRecords(remote::ObjectStore& objects) : objects_(objects) {}

  // Errc::not_found: no group; corrupted.
  format::GroupFile read_group() const;
  // Creates the group's object. Errc::invalid_argument: the URL has another group.
  void claim(const format::GroupFile& group) const;

  std::vector<std::uint64_t> numbers() const;  // descending
  // Errc::not_found, corrupted; each names the object.
  format::GroupRecord read(std::uint64_t number, const format::GroupFile& group) const;
  // A version by name or number; empty: the newest. Errc::not_found.
  format::GroupRecord find(const std::string& version, const format::GroupFile& group) const;
  // All records, oldest first, without those that are removed meanwhile.
  std::vector<format::GroupRecord> all(const format::GroupFile& group) const;
  // Durable on return. Publishing the same record again does nothing. Errc::busy: another job has
  // published this number, or a job after that of `epoch` has published a record.
  void publish(const format::GroupRecord& record, const format::GroupFile& group,
               std::uint64_t epoch) const;
  void remove(std::uint64_t number) const;

 private:
  std::string name_of(const std::string& key) const { return objects_.url() + ": " + key; }
  remote::ObjectStore& objects_;
};

// The URL of `part` below `url`.
std::string url_below(const std::string& url, const std::string& part);
std::string url_of_records(const std::string& url);
std::string url_of_partition(const std::string& url, std::uint32_t partition);

}  // namespace vellum::group
