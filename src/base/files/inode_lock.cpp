#include "base/files/inode_lock.hpp"

#include <pthread.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <tuple>
#include <vellum/error.hpp>

#include "base/threads/fork_count.hpp"

namespace vellum::base {
namespace {

constexpr char kPath[] = "/dev/shm/vellum-images";
constexpr mode_t kForEverybody = 0666;

// Any user may have made it. null: this machine has no such place.
std::unique_ptr<File> open_table() {
  for (const OpenMode mode : {OpenMode::read_write, OpenMode::create_new, OpenMode::read_write}) {
    try {
      auto file = posix_fs().open(kPath, mode);
      if (mode == OpenMode::create_new) ::fchmod(file->descriptor(), kForEverybody);
      return file;
    } catch (const Error&) {  // the next way, or none
    }
  }
  return nullptr;
}

// The locks of this process. One open file excludes others only, so it has its own counts.
class Table {
 public:
  static Table& instance() {
    static Table& table = *[] {
      fork_count();
      auto* const made = new Table;
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().mutex_.unlock(); });
      return made;
    }();
    return table;
  }

  bool take(std::uint64_t byte, InodeLock::Kind kind) {
    const std::lock_guard lock(mutex_);
    open_in_this_process();
    const auto here = held_.find(byte);
    if (here != held_.end()) {
      if (kind == InodeLock::Kind::exclusive || here->second == kExclusive) return false;
      ++here->second;
      return true;
    }
    const bool exclusive = kind == InodeLock::Kind::exclusive;
    if (file_ != nullptr && !(exclusive ? file_->try_lock_byte(byte) : file_->pin_byte(byte)))
      return false;
    held_.emplace(byte, exclusive ? kExclusive : 1);
    return true;
  }

  void give_back(std::uint64_t byte) {
    const std::lock_guard lock(mutex_);
    const auto here = held_.find(byte);
    if (opened_in_ != fork_count() || here == held_.end()) return;  // the parent's
    if (here->second > 1) return void(--here->second);
    held_.erase(here);
    if (file_ != nullptr) file_->unpin_byte(byte);
  }

 private:
  static constexpr int kExclusive = -1;

  void open_in_this_process() {
    if (opened_in_ == fork_count() && ever_opened_) return;
    std::ignore = file_.release();  // its descriptor may be another file's in a child
    file_ = open_table();
    held_.clear();
    opened_in_ = fork_count();
    ever_opened_ = true;
  }

  std::mutex mutex_;
  bool ever_opened_ = false;
  std::uint32_t opened_in_ = 0;
  std::unique_ptr<File> file_;
  std::map<std::uint64_t, int> held_;  // how often by shared holders, or kExclusive
};

std::uint64_t byte_of(const FileIdentity& file) noexcept {
  const std::uint64_t mixed = (file.inode * 0x9e3779b97f4a7c15 ^ file.device) * 0xff51afd7ed558ccd;
  return mixed >> 2;  // an off_t, and room behind it
}

}  // namespace

std::unique_ptr<InodeLock> InodeLock::try_take(File& of, Kind kind) {
  if (of.descriptor() < 0) {
    const bool taken = kind == Kind::exclusive ? of.try_lock_exclusive() : of.try_lock_shared();
    return taken ? std::unique_ptr<InodeLock>(new InodeLock(0, false)) : nullptr;
  }
  const std::uint64_t byte = byte_of(of.identity());
  if (!Table::instance().take(byte, kind)) return nullptr;
  return std::unique_ptr<InodeLock>(new InodeLock(byte, true));
}

InodeLock::~InodeLock() {
  if (held_) Table::instance().give_back(byte_);
}

}  // namespace vellum::base
