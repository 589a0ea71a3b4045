// The file seam over a Disk, with a log of everything that changes it.
#pragma once

#include <functional>
#include <map>

#include "base/file.hpp"
#include "crash/sim_disk_lib.hpp"
#include "support/file_lock.hpp"

namespace vellum::crash {

// One call that changed the disk, or made it durable.
struct Op {
  enum class Kind {
    new_inode,  // `inode`, a directory when `is_directory`
    write,      // `bytes` at `offset` of `inode`
    truncate,   // to `offset`
    allocate,
    punch,
    link,  // `name` in `directory` is `inode`
    unlink,
    rename,  // `inode` from `name` in `directory` to `to_name` in `to_directory`
    sync_data,
    sync_directory,
    lost_sync,  // sync_data that failed: nothing that was written and not yet durable ever will be
    states,     // from here on the store may be in states [low, high] (session_lib.hpp)
  };
  Kind kind = Kind::states;
  InodeId inode = 0, directory = 0, to_directory = 0;
  bool is_directory = false;
  std::string name{}, to_name{};
  std::uint64_t offset = 0, length = 0;
  std::shared_ptr<const std::vector<std::byte>> bytes{};
  std::size_t low = 0, high = 0;
};

class SimFs final : public base::Fs {
 public:
  explicit SimFs(Disk disk = {}) : disk_(std::move(disk)) {}

  const Disk& disk() const noexcept { return disk_; }
  std::vector<Op>& log() noexcept { return log_; }
  bool recording = false;
  // Asked before every sync_data: true makes it fail, and its data is lost (see Op::lost_sync).
  std::function<bool()> sync_fails;
  // Asked before every write: true makes it report an error although it arrives.
  std::function<bool()> write_fails;

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override;
  void rename(const std::string& from, const std::string& to) override;
  void rename_new(const std::string& from, const std::string& to) override;
  void unlink(const std::string& path) override;
  void make_directory(const std::string& path) override;
  void remove_directory(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  std::vector<base::DirEntry> list(const std::string& path) const override;
  bool exists(const std::string& path) const override;

 private:
  friend class SimFile;
  struct Place {
    InodeId directory;
    std::string name;
  };
  Place place_of(const std::string& path) const;
  InodeId inode_of(const std::string& path) const;
  void record(Op op) {
    if (recording) log_.push_back(std::move(op));
  }
  void add_entry(const std::string& path, bool is_directory);

  Disk disk_;
  std::vector<Op> log_;
  std::map<InodeId, test::FileLock> locks_;
};

}  // namespace vellum::crash
