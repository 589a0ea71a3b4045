#include "run/live/live_files.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "base/threads/fork_count.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

struct Entry {
  std::weak_ptr<LiveFile> file;
  const LiveFile* address = nullptr;
  std::uint32_t process = 0;  // base::fork_count()
};

struct Table {
  std::mutex mutex;
  std::condition_variable closed;
  std::map<std::string, Entry> by_branch;  // until the file is closed
};

Table& table() {
  static Table& made = *new Table;
  return made;
}

void forget(const std::string& branch, const LiveFile* file) {
  Table& all = table();
  {
    const std::lock_guard lock(all.mutex);
    const auto entry = all.by_branch.find(branch);
    if (entry == all.by_branch.end() || entry->second.address != file) return;
    all.by_branch.erase(entry);
  }
  all.closed.notify_all();
}

// The last owner closes the region: a call on a live file, outside of this library's own calls.
std::shared_ptr<LiveFile> make(const Config& config, const RunTarget& target) {
  return {new LiveFile(config, target), [branch = target.branch](LiveFile* file) {
            const ReentrancyGuard inside;
            delete file;
            forget(branch, file);
          }};
}

}  // namespace

std::shared_ptr<LiveFile> open_live(const Config& config, const RunTarget& target) {
  Table& all = table();
  std::unique_lock lock(all.mutex);
  for (;;) {
    const auto entry = all.by_branch.find(target.branch);
    if (entry == all.by_branch.end() || entry->second.process != base::fork_count()) break;
    const LiveFile* const address = entry->second.address;
    auto file = entry->second.file.lock();
    const bool left = file != nullptr && file->has_left();
    if (file != nullptr && !left && file->has_its_name()) return file;
    lock.unlock();
    file.reset();  // perhaps the last owner
    lock.lock();
    if (left) break;
    all.closed.wait(lock, [&] {
      const auto now = all.by_branch.find(target.branch);
      return now == all.by_branch.end() || now->second.address != address;
    });
  }
  lock.unlock();
  auto file = make(config, target);
  lock.lock();
  all.by_branch[target.branch] = {file, file.get(), base::fork_count()};
  return file;
}

void lock_live_files() noexcept { table().mutex.lock(); }
void unlock_live_files() noexcept { table().mutex.unlock(); }

}  // namespace vellum::preload
