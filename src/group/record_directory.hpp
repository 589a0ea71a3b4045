// group/record_directory.hpp: the directory that holds the records of a group.
//
//   vellum.group             which group it is, and how many partitions it has; written once
//   <16 hex digits>.version  the record of a global version; the digits are its number
//   lock                     empty; flock'ed by rank 0 of the job that writes
//   tmp/                     files on their way to a rename
//
// docs/format.md has the bytes and the crash table. A record is made under a free number or not at
// all, so of two jobs that both stand on record N only one gets N + 1.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "format/group.hpp"

namespace vellum::group {

// Threads: any, once lock() has returned.
class RecordDirectory {
 public:
  // Errc::not_found: there is none, or no group in it.
  static RecordDirectory open(base::Fs& fs, const std::string& path);
  // Makes the directory and the group unless they exist; the parent must.
  static RecordDirectory open_or_create(base::Fs& fs, const std::string& path,
                                        std::uint32_t partitions);
  // The same for a group that has an id already. Errc::invalid_argument: another group is there.
  static RecordDirectory open_or_create(base::Fs& fs, const std::string& path,
                                        const format::GroupFile& group);

  const std::string& path() const noexcept { return path_; }
  const format::GroupFile& group() const noexcept { return group_; }

  // Until this object dies. Errc::busy: another job has the group open. Removes what killed jobs
  // have left in tmp.
  void lock();

  std::vector<std::uint64_t> numbers() const;  // ascending
  // Errc::not_found, corrupted, newer_format; each names the file.
  format::GroupRecord read(std::uint64_t number) const;
  // The record with the largest number; nothing: there is none. A record that fails its checks is
  // an error: it had been published whole.
  std::optional<format::GroupRecord> newest() const;
  // All of them, oldest first. One that is removed meanwhile is left out.
  std::vector<format::GroupRecord> all() const;

  // Durable on return: the commit point of the version. Errc::busy: another job has published a
  // record of this number or a larger one, so the caller's job is over. Any other error: call
  // contains() to learn whether the record stands.
  void publish(const format::GroupRecord& record);
  bool contains(std::uint64_t number) const;
  // Does nothing if it is gone. Not durable: the record may come back after a power cut.
  void remove(std::uint64_t number);

 private:
  RecordDirectory(base::Fs& fs, std::string path);
  static RecordDirectory make(base::Fs& fs, const std::string& path,
                              const format::GroupFile& group);
  std::string path_of(std::uint64_t number) const;
  std::string tmp_directory() const { return path_ + "/tmp"; }
  void read_group();

  base::Fs* fs_;
  std::string path_;
  format::GroupFile group_;
  std::unique_ptr<base::File> lock_;
};

}  // namespace vellum::group
