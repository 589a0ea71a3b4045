// remote/lazy/remote_files.hpp: a head's versions as the files of a store.
//
// A head has the data of snapshot refs and journals, and a list may have a working set. This file
// system presents them as these files, with the URL as the store's path, to the code that reads
// local stores. Those of an encrypted remote are sealed, as in a store. They are read-only. All other
// paths are those of the underlying file system: an export writes a plain file.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "format/wire/superblock.hpp"
#include "format/working_set.hpp"
#include "remote/objects/head.hpp"
#include "remote/session/remote_keys.hpp"

namespace vellum::remote {

class RemoteFiles final : public base::Fs {
 public:
  // REQUIRES: `below` outlives it.
  RemoteFiles(base::Fs& below, const std::string& url, const UnlockedRemote& remote,
              const Head& head);

  // Adds the working set in the list of this version.
  void add_working_set(const RemoteVersion& name, const std::vector<format::PageRange>& ranges);

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override;
  void rename(const std::string& from, const std::string& to) override {
    writable(to).rename(from, to);
  }
  void rename_new(const std::string& from, const std::string& to) override {
    writable(to).rename_new(from, to);
  }
  void link(const std::string& from, const std::string& to) override {
    writable(to).link(from, to);
  }
  void unlink(const std::string& path) override { writable(path).unlink(path); }
  void make_directory(const std::string& path) override { writable(path).make_directory(path); }
  void remove_directory(const std::string& path) override { writable(path).remove_directory(path); }
  void sync_directory(const std::string& path) override { writable(path).sync_directory(path); }
  std::vector<base::DirEntry> list(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  bool is_directory(const std::string& path) const override;

 private:
  struct Content {
    std::vector<std::byte> start;
    std::uint64_t size_bytes = 0;  // the bytes after `start` are zero
  };
  void add_journal(const RemoteVersion& name, const format::Superblock& superblock);
  void add_file(const std::string& path, std::vector<std::byte> bytes);
  bool is_remote(const std::string& path) const;
  // The underlying file system. Errc::read_only: the path is at the remote.
  base::Fs& writable(const std::string& path) const;

  base::Fs& below_;
  const std::string root_;
  const format::StoreSeal seal_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, Content> files_;
  std::set<std::string> directories_;
};

}  // namespace vellum::remote
