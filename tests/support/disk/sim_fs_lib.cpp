#include "support/disk/sim_fs_lib.hpp"

#include <cerrno>
#include <vellum/error.hpp>

namespace vellum::sim {

using base::DirEntry;
using base::File;
using base::OpenMode;
using OpKind = Op::OpKind;

class SimFile final : public File {
 public:
  SimFile(SimFs& fs, std::string path, InodeId inode)
      : fs_(fs), path_(std::move(path)), inode_(inode) {}
  ~SimFile() override {
    const auto guard = lock();
    locks().unlock(this);
  }

  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size_bytes() const override {
    const auto guard = lock();
    return content().size();
  }
  std::uint64_t allocated_bytes() const override {
    const auto guard = lock();
    return content().allocated_bytes();
  }

  int try_pread(std::span<std::byte> out, std::uint64_t at) const noexcept override {
    const auto guard = lock();
    const std::uint64_t size = content().size();
    if (at > size || out.size() > size - at) return ENODATA;
    content().read(at, out);
    return 0;
  }
  void pread(std::span<std::byte> out, std::uint64_t at) const override {
    if (try_pread(out, at) != 0) throw Error(Errc::corrupted, path_ + ": truncated");
  }

  void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
    const auto guard = lock();
    edit().write(at, bytes);
    Op op{OpKind::write, inode_};
    op.offset = at;
    if (fs_.logging_) {
      op.bytes = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    }
    fs_.record(std::move(op));
    if (fs_.write_fails && fs_.write_fails()) {
      throw Error(Errc::io, path_ + ": write: Input/output error");
    }
  }
  void sync_data() override {
    const auto guard = lock();
    if (fs_.sync_fails && fs_.sync_fails()) {
      fs_.record({OpKind::lost_sync, inode_});
      throw Error(Errc::io, path_ + ": fdatasync: Input/output error");
    }
    fs_.record({OpKind::sync_data, inode_});
  }
  void truncate(std::uint64_t size) override {
    const auto guard = lock();
    edit().resize(size);
    record_range(OpKind::truncate, size, 0);
  }
  void allocate(std::uint64_t at, std::uint64_t length) override {
    const auto guard = lock();
    edit().allocate(at, length);
    record_range(OpKind::allocate, at, length);
  }
  void punch(std::uint64_t at, std::uint64_t length) override {
    const auto guard = lock();
    edit().punch(at, length);
    record_range(OpKind::punch, at, length);
  }

  bool pin_byte(std::uint64_t at) override {
    const auto guard = lock();
    return locks().pin(this, at);
  }
  bool try_lock_byte(std::uint64_t at) override {
    const auto guard = lock();
    return locks().lock_byte(this, at);
  }
  bool byte_locked(std::uint64_t at) const override {
    const auto guard = lock();
    return locks().locked_by_another(this, at);
  }
  void unpin_byte(std::uint64_t at) override {
    const auto guard = lock();
    locks().unpin(this, at);
  }
  std::vector<std::uint64_t> pinned_bytes() const override {
    const auto guard = lock();
    return locks().pins_of_others(this);
  }
  bool replaced() const override {
    const auto guard = lock();
    return fs_.disk_.find(path_) != inode_;
  }
  bool try_lock_exclusive() override {
    const auto guard = lock();
    return locks().lock(this, true);
  }
  bool try_lock_shared() override {
    const auto guard = lock();
    return locks().lock(this, false);
  }

 private:
  std::unique_lock<std::mutex> lock() const { return std::unique_lock(fs_.mutex_); }
  test::FileLock& locks() const { return fs_.locks_[inode_]; }
  const Content& content() const { return fs_.disk_.at(inode_).content; }
  Content& edit() { return fs_.disk_.edit(inode_).content; }
  void record_range(OpKind kind, std::uint64_t at, std::uint64_t length) {
    Op op{kind, inode_};
    op.offset = at;
    op.length = length;
    fs_.record(std::move(op));
  }

  SimFs& fs_;
  std::string path_;
  InodeId inode_;
};

void SimFs::start_log() {
  start_ = disk_;
  log_.clear();
  logging_ = true;
}

void SimFs::allow_states(std::size_t low, std::size_t high) {
  if (!logging_) return;
  Op op;
  op.low = low;
  op.high = high;
  log_.push_back(std::move(op));
}

void SimFs::record(Op op) {
  if (calls_left_ == 0) throw PowerCut();
  const bool is_call = op.kind != OpKind::new_inode;  // OpKind::link completes that call
  if (is_call && calls_left_ != kPowerStays) --calls_left_;
  const bool is_sync = op.kind == OpKind::sync_data || op.kind == OpKind::sync_directory;
  if (logging_ && (calls_left_ != 0 || !is_sync)) log_.push_back(std::move(op));
  if (calls_left_ == 0) throw PowerCut();
}

SimFs::DirectoryAndName SimFs::place_of(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {Disk::kRoot, path};
  const auto directory = disk_.find(path.substr(0, slash));
  if (!directory) throw Error(Errc::not_found, path + ": No such file or directory");
  return {*directory, path.substr(slash + 1)};
}

InodeId SimFs::inode_of(const std::string& path) const {
  const auto inode = disk_.find(path);
  if (!inode) throw Error(Errc::not_found, path + ": No such file or directory");
  return *inode;
}

void SimFs::add_entry(const std::string& path, bool is_directory) {
  const DirectoryAndName place = place_of(path);
  if (disk_.find(path)) throw Error(Errc::already_exists, path + ": File exists");
  const InodeId inode = disk_.add_inode(is_directory);
  disk_.edit(place.directory).entries[place.name] = inode;
  Op made{OpKind::new_inode, inode};
  made.is_directory = is_directory;
  record(std::move(made));
  record({OpKind::link, inode, place.directory, 0, false, place.name});
}

void SimFs::remove_entry(const std::string& path) {
  const DirectoryAndName place = place_of(path);
  const InodeId inode = inode_of(path);
  disk_.edit(place.directory).entries.erase(place.name);
  record({OpKind::unlink, inode, place.directory, 0, false, place.name});
}

void SimFs::move(const std::string& from, const std::string& to) {
  const DirectoryAndName source = place_of(from), target = place_of(to);
  const InodeId inode = inode_of(from);
  disk_.edit(source.directory).entries.erase(source.name);
  disk_.edit(target.directory).entries[target.name] = inode;
  record(
      {OpKind::rename, inode, source.directory, target.directory, false, source.name, target.name});
}

std::unique_ptr<File> SimFs::open(const std::string& path, OpenMode mode) {
  const std::lock_guard guard(mutex_);
  if (mode == OpenMode::create_new) add_entry(path, false);
  const InodeId inode = inode_of(path);
  if (disk_.at(inode).is_directory) throw Error(Errc::corrupted, path + ": not a regular file");
  return std::make_unique<SimFile>(*this, path, inode);
}

void SimFs::rename(const std::string& from, const std::string& to) {
  const std::lock_guard guard(mutex_);
  move(from, to);
}

void SimFs::rename_new(const std::string& from, const std::string& to) {
  const std::lock_guard guard(mutex_);
  if (disk_.find(to)) throw Error(Errc::already_exists, to + ": rename: File exists");
  move(from, to);
}

void SimFs::link(const std::string& from, const std::string& to) {
  const std::lock_guard guard(mutex_);
  const DirectoryAndName place = place_of(to);
  const InodeId inode = inode_of(from);
  if (disk_.find(to)) throw Error(Errc::already_exists, to + ": link: File exists");
  disk_.edit(place.directory).entries[place.name] = inode;
  record({OpKind::link, inode, place.directory, 0, false, place.name});
}

void SimFs::unlink(const std::string& path) {
  const std::lock_guard guard(mutex_);
  remove_entry(path);
}

void SimFs::make_directory(const std::string& path) {
  const std::lock_guard guard(mutex_);
  add_entry(path, true);
}

void SimFs::remove_directory(const std::string& path) {
  const std::lock_guard guard(mutex_);
  if (!disk_.at(inode_of(path)).entries.empty()) {
    throw Error(Errc::io, path + ": Directory not empty");
  }
  remove_entry(path);
}

void SimFs::sync_directory(const std::string& path) {
  const std::lock_guard guard(mutex_);
  record({OpKind::sync_directory, inode_of(path)});
}

std::vector<DirEntry> SimFs::list(const std::string& path) const {
  const std::lock_guard guard(mutex_);
  std::vector<DirEntry> out;
  for (const auto& [name, inode] : disk_.at(inode_of(path)).entries) {
    const bool is_directory = disk_.at(inode).is_directory;
    out.push_back({name, !is_directory, is_directory});
  }
  return out;
}

bool SimFs::exists(const std::string& path) const {
  const std::lock_guard guard(mutex_);
  return disk_.find(path).has_value();
}

}  // namespace vellum::sim
