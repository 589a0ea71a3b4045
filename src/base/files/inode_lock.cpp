#include "base/files/inode_lock.hpp"

#include <pthread.h>
#include <sys/stat.h>

#include <cassert>
#include <map>
#include <mutex>
#include <tuple>
#include <vellum/error.hpp>

#include "base/threads/fork_count.hpp"

namespace vellum::base {
namespace {

constexpr char kPath[] = "/dev/shm/vellum-images";
constexpr mode_t kForEverybody = 0666;

// Any user may have created it. Null: this machine has no /dev/shm.
std::unique_ptr<File> open_table() {
  for (const OpenMode mode : {OpenMode::read_write, OpenMode::create_new, OpenMode::read_write}) {
    try {
      auto file = posix_fs().open(kPath, mode);
      if (mode == OpenMode::create_new) ::fchmod(file->descriptor(), kForEverybody);
      return file;
    } catch (const Error&) {  // try the next mode
    }
  }
  return nullptr;
}

// The locks of this process. An open file does not exclude its own process, hence the counts.
class Table {
 public:
  static Table& instance() {
    static Table& table = *[] {
      fork_count();
      auto* const created = new Table;
      pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().mutex_.unlock(); });
      return created;
    }();
    return table;
  }

  bool take(std::uint64_t byte, InodeLock::Mode mode) {
    const std::lock_guard lock(mutex_);
    open_in_this_process();
    const auto here = held_.find(byte);
    if (here != held_.end()) {
      if (mode == InodeLock::Mode::exclusive || here->second == kExclusive) return false;
      ++here->second;
      return true;
    }
    const bool exclusive = mode == InodeLock::Mode::exclusive;
    if (file_ != nullptr && !(exclusive ? file_->try_lock_byte(byte) : file_->pin_byte(byte)))
      return false;
    held_.emplace(byte, exclusive ? kExclusive : 1);
    return true;
  }

  void release(std::uint64_t byte) {
    const std::lock_guard lock(mutex_);
    const auto here = held_.find(byte);
    if (opened_in_ != fork_count() || here == held_.end()) return;  // the parent's
    assert(here->second == kExclusive || here->second >= 1);
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
  std::map<std::uint64_t, int> held_;  // by byte: the number of shared holders, or kExclusive
};

std::uint64_t byte_of(const FileIdentity& file) noexcept {
  const std::uint64_t mixed = (file.inode * 0x9e3779b97f4a7c15 ^ file.device) * 0xff51afd7ed558ccd;
  return mixed >> 2;  // less than the maximum of off_t
}

}  // namespace

void InodeLock::prepare_forks() { Table::instance(); }

std::unique_ptr<InodeLock> InodeLock::try_take(File& of, Mode mode) {
  if (of.descriptor() < 0) {
    const bool taken = mode == Mode::exclusive ? of.try_lock_exclusive() : of.try_lock_shared();
    return taken ? std::unique_ptr<InodeLock>(new InodeLock(0, false)) : nullptr;
  }
  const std::uint64_t byte = byte_of(of.identity());
  if (!Table::instance().take(byte, mode)) return nullptr;
  return std::unique_ptr<InodeLock>(new InodeLock(byte, true));
}

InodeLock::~InodeLock() {
  if (held_) Table::instance().release(byte_);
}

}  // namespace vellum::base
