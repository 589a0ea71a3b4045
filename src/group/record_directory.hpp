// group/record_directory.hpp: the directory with the records of a group.
//
//   vellum.group             the id of the group and its number of partitions; written once
//   <16 hex digits>.version  the record of a global version; the digits are its number
//   lock                     empty; flock'ed by rank 0 of the writing job
//   tmp/                     files before their rename
//
// docs/format.md has the bytes and the crash table. A record is created only under a free number,
// so of two jobs with the same newest record N only one creates N + 1.
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
  // Errc::not_found: no directory, or no group in it.
  static RecordDirectory open(base::Fs& fs, const std::string& path);
  // Creates the directory and the group unless they exist. The parent directory must exist.
  static RecordDirectory open_or_create(base::Fs& fs, const std::string& path,
                                        std::uint32_t partitions);
  // The same for a group with a given id. Errc::invalid_argument: the directory has another group.
  static RecordDirectory open_or_create(base::Fs& fs, const std::string& path,
                                        const format::GroupFile& group);

  const std::string& path() const noexcept { return path_; }
  const format::GroupFile& group() const noexcept { return group_; }

  // Locks the directory for the lifetime of this object. Removes leftovers of killed jobs in tmp.
  // Errc::busy: another job has the group open.
  void lock();

  std::vector<std::uint64_t> numbers() const;  // ascending
  // Errc::not_found, corrupted, newer_format; each names the file.
  format::GroupRecord read(std::uint64_t number) const;
  // The record with the largest number; nullopt: no record. A record that fails its checks is an
  // error, since records are published atomically.
  std::optional<format::GroupRecord> newest() const;
  // All records, oldest first, without those that are removed meanwhile.
  std::vector<format::GroupRecord> all() const;

  // Durable on return: the commit point of the version. Errc::busy: another job has published a
  // record of this number or a larger one, so the caller's job must end. After any other error,
  // contains() tests whether the record exists.
  void publish(const format::GroupRecord& record);
  bool contains(std::uint64_t number) const;
  // Does nothing if the record does not exist. Not durable: after a power cut the record may exist
  // again.
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
