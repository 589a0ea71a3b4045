// remote/lazy/remote_files.hpp: the names of a remote as the files of a store.
//
// A head has what snapshot refs and journals have, and a list may have a working set. Shown as these
// files, at the URL as a path, they are read by the code that reads local stores. Nothing can be
// written there. All other paths are those of the file system below: an export writes a plain file.
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

namespace vellum::remote {

class RemoteFiles final : public base::Fs {
 public:
  // `below` outlives it.
  RemoteFiles(base::Fs& below, const std::string& url, const format::Superblock& superblock,
              const Head& head);

  // The pages that the last use of this name touched, as its list says.
  void add_working_set(const RemoteVersion& name, const std::vector<format::PageRange>& ranges);

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override;
  void rename(const std::string& from, const std::string& to) override {
    writable(to).rename(from, to);
  }
  void rename_new(const std::string& from, const std::string& to) override {
    writable(to).rename_new(from, to);
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
    std::uint64_t size_bytes = 0;  // zero behind `start`
  };
  void add_journal(const RemoteVersion& name, const format::Superblock& superblock);
  void add_file(const std::string& path, std::vector<std::byte> bytes);
  bool is_remote(const std::string& path) const;
  // The file system below. Errc::read_only for a path at the remote.
  base::Fs& writable(const std::string& path) const;

  base::Fs& below_;
  const std::string root_;
  const format::Uuid store_id_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Content> files_;
  std::set<std::string> directories_;
};

}  // namespace vellum::remote
