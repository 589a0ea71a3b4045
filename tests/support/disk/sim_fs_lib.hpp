// The file seam over a Disk, with a log of all changes. It can simulate power cuts.
//
// A program runs on it until it ends or until the power fails. The log gives the states that the
// next boot may find (crash_images_lib.hpp).
//
// support/disk/memory_fs.hpp is another file system in memory: it imitates the kernel's files
// (links, FIFOs, modes, files that were unlinked while open), but does not model durability.
//
// Threads: the seam from any thread; the rest while no other thread uses the seam.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "base/files/file.hpp"
#include "support/disk/sim_disk_lib.hpp"
#include "support/file_lock.hpp"

namespace vellum::sim {

struct PowerCut : std::runtime_error {
  PowerCut() : std::runtime_error("power cut") {}
};

// One call that changed the disk or made changes durable.
struct Op {
  enum class OpKind {
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
    lost_sync,  // sync_data that failed: writes that are not durable yet never will be
    states,     // from here on the test allows its states [low, high]
  };
  OpKind kind = OpKind::states;
  InodeId inode = 0, directory = 0, to_directory = 0;
  bool is_directory = false;
  std::string name{}, to_name{};
  std::uint64_t offset = 0, length = 0;
  std::shared_ptr<const std::vector<std::byte>> bytes{};
  std::size_t low = 0, high = 0;
};

using Log = std::vector<Op>;

class SimFs final : public base::Fs {
 public:
  // All of `disk` is durable.
  explicit SimFs(Disk disk = {}) : disk_(std::move(disk)) {}

  // REQUIRES, as start() and log(): no thread works on files meanwhile.
  const Disk& disk() const noexcept { return disk_; }

  // Logs calls from here on; the current content of the disk is durable.
  void start_log();
  void stop_log() noexcept { logging_ = false; }
  const Disk& start() const noexcept { return start_; }  // the disk at start_log()
  const Log& log() const noexcept { return log_; }
  // Records in the log, if there is one, the states that are allowed from here on.
  void allow_states(std::size_t low, std::size_t high);

  // The nth change or sync from now on throws PowerCut, and so does each later one. That change is
  // in the log; that sync is not, since it has not returned.
  void cut_power_at(std::uint64_t nth) noexcept { calls_left_ = nth; }

  // Called before every sync_data: true makes it fail and lose its data (see Op::lost_sync).
  std::function<bool()> sync_fails;
  // Called before every write: true makes it report an error although the data is written.
  std::function<bool()> write_fails;

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override;
  void rename(const std::string& from, const std::string& to) override;
  void rename_new(const std::string& from, const std::string& to) override;
  void link(const std::string& from, const std::string& to) override;
  void unlink(const std::string& path) override;
  void make_directory(const std::string& path) override;
  void remove_directory(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  std::vector<base::DirEntry> list(const std::string& path) const override;
  bool exists(const std::string& path) const override;

 private:
  friend class SimFile;
  struct DirectoryAndName {
    InodeId directory;
    std::string name;
  };
  static constexpr std::uint64_t kPowerStays = UINT64_MAX;

  DirectoryAndName place_of(const std::string& path) const;
  InodeId inode_of(const std::string& path) const;
  void add_entry(const std::string& path, bool is_directory);
  void remove_entry(const std::string& path);
  void move(const std::string& from, const std::string& to);
  void record(Op op);

  mutable std::mutex mutex_;
  Disk disk_, start_;
  bool logging_ = false;
  Log log_;
  std::uint64_t calls_left_ = kPowerStays;  // until the power fails
  std::map<InodeId, test::FileLock> locks_;
};

}  // namespace vellum::sim
