// remote/engine/directory_engine.hpp: objects as files of a shared directory (Lustre, NFS, a disk).
//
// An object is the file at its key, relative to the directory. It is written in `tmp`, synced and
// renamed without replacing (a hard link where the file system lacks such a rename), and the
// directory is synced. Thus an object exists completely or not at all, and exactly one of several
// creators wins.
#pragma once

#include <mutex>
#include <optional>
#include <set>

#include "base/files/file.hpp"
#include "remote/engine/object_store.hpp"

namespace vellum::remote {

class DirectoryEngine : public ObjectStore {
 public:
  // The first put() creates the directory; its parent must exist.
  DirectoryEngine(base::Fs& fs, std::string path);

  const std::string& url() const noexcept override { return url_; }
  std::size_t connections() const noexcept override { return 4; }
  std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) override;
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override;
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most_bytes) override;
  bool has(const std::string& key, std::uint64_t size_bytes) override;
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override;
  void put(const std::string& key, std::span<const std::byte> bytes) override;
  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override;
  void remove(const std::string& key) override;
  void make_durable(const std::string& key) override;
  void sweep() noexcept override;

 private:
  std::string path_of(const std::string& key) const;
  // Creates the parent directories of a key's file and returns the innermost one.
  std::string make_directories(const std::string& key);
  void make_directory(const std::string& directory);
  std::optional<std::vector<ObjectInfo>> list_once(const std::string& prefix,
                                                   std::size_t most) const;
  void list_below(const std::string& directory, const std::string& prefix,
                  std::vector<ObjectInfo>& out) const;

  const std::string path_, url_;
  const std::shared_ptr<base::Fs> beneath_;  // refuses links that leave the directory
  base::Fs& fs_;
  std::mutex mutex_;
  std::set<std::string> durable_;  // directories whose names are synced; guarded by the mutex
};

}  // namespace vellum::remote
