#include "memory/paging/pager.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/process_memory.hpp"
#include "base/threads/per_process.hpp"
#include "base/threads/start_thread.hpp"
#include "format/wire/types.hpp"

namespace vellum::region {
namespace {

using format::kPageBytes;
using namespace std::chrono_literals;

constexpr auto kBusyPause = 2ms;       // when more than half is used
constexpr auto kIdlePause = 20ms;      // otherwise
constexpr std::int64_t kMaxSpare = 8;  // an eighth of the limit
constexpr std::size_t kStepPages = 1024;
constexpr int kRounds = 16;

// Private memory of the process, in pages: resident less shared of statm. -1: unknown.
class PrivateMemory {
 public:
  PrivateMemory() : fd_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}
  ~PrivateMemory() {
    if (fd_ >= 0) close(fd_);
  }
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;
  std::int64_t pages() const noexcept {
    char text[128];
    const ssize_t n = fd_ < 0 ? -1 : pread(fd_, text, sizeof text - 1, 0);
    if (n <= 0) return -1;
    text[n] = '\0';
    char* at = text;
    std::strtoll(at, &at, 10);  // size
    const long long resident = std::strtoll(at, &at, 10);
    return resident - std::strtoll(at, &at, 10);
  }

 private:
  int fd_;
};

}  // namespace

Pager::Pager(std::uint64_t limit_bytes)
    : limit_pages_(static_cast<std::int64_t>(limit_bytes / kPageBytes)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

// The last region has left, and the thread has ended.
Pager::~Pager() {
  if (thread_.joinable()) thread_.join();
  if (wake_ >= 0) close(wake_);
}

void Pager::wake() noexcept {
  const int saved_errno = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_, &one, sizeof one);
  errno = saved_errno;
}

void Pager::pause(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds most) {
  lock.unlock();
  pollfd woken{wake_, POLLIN, 0};
  poll(&woken, 1, static_cast<int>(most.count()));
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(wake_, &count, sizeof count);
  lock.lock();
}

std::uint64_t Pager::limit_bytes() const noexcept {
  return static_cast<std::uint64_t>(limit_pages_) * kPageBytes;
}

bool Pager::try_keep(std::uint64_t bytes) noexcept {
  const std::uint64_t before = kept_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= limit_bytes() / 2) return true;
  end_keep(bytes);
  return false;
}

void Pager::end_keep(std::uint64_t bytes) noexcept {
  [[maybe_unused]] const std::uint64_t before =
      kept_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  assert(before >= bytes);
}

std::shared_ptr<Pager> Pager::of_process() {
  static base::PerProcess<std::shared_ptr<Pager>> pagers;
  return pagers.get([] { return std::make_shared<Pager>(base::memory_for_regions()); });
}

std::shared_ptr<Pager> Pager::of_limit(std::uint64_t bytes) {
  return bytes != 0 ? std::make_shared<Pager>(bytes) : of_process();
}

void Pager::join(Pageable& region, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  assert(std::find(regions_.begin(), regions_.end(), &region) == regions_.end());
  region_bytes_ += bytes;
  start_if_needed();
  regions_.push_back(&region);
}

void Pager::grown(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  region_bytes_ += bytes;
  start_if_needed();
}

void Pager::shrunk(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  assert(region_bytes_ >= bytes);
  region_bytes_ -= bytes;
}

void Pager::start_if_needed() {
  // A page may be held twice.
  if (thread_.joinable() || 2 * region_bytes_ < limit_bytes() / 2) return;
  thread_ = base::start_thread("keeps the memory limit", [this, life = ++life_] { run(life); });
}

void Pager::leave(Pageable& region, std::uint64_t bytes) noexcept {
  std::thread ended;
  {
    const std::lock_guard lock(mutex_);
    const auto joined = std::find(regions_.begin(), regions_.end(), &region);
    assert(joined != regions_.end() && region_bytes_ >= bytes);
    regions_.erase(joined);
    region_bytes_ -= bytes;
    if (!regions_.empty()) return;
    ++life_;
    ended.swap(thread_);
  }
  wake();
  if (ended.joinable()) ended.join();
}

// Holds the mutex except during its pauses, so no region leaves while it is in use.
void Pager::run(std::uint64_t life) {
  const PrivateMemory memory;
  std::int64_t counted = 0;
  std::unique_lock lock(mutex_);
  const auto unreported = [&] {
    std::int64_t pages = memory.pages();
    if (pages < 0) return pages;
    for (const Pageable* region : regions_) pages += region->unreported_pages();
    return pages;
  };
  while (life_ == life) {
    const std::int64_t now = unreported();
    const bool doubtful = doubtful_.load(std::memory_order_relaxed);
    if (doubtful || now < 0 || now - counted > limit_pages_ / 64) {
      count(regions_);
      counted = unreported();
      doubtful_.store(false, std::memory_order_relaxed);
    } else {
      keep_spare(0);
    }
    counted = std::min(counted, now);
    balancing_.store(true, std::memory_order_relaxed);
    balance(regions_);
    balancing_.store(false, std::memory_order_relaxed);
    rounds_.fetch_add(1, std::memory_order_relaxed);
    if (life_ == life) pause(lock, used_pages() > limit_pages_ / 2 ? kBusyPause : kIdlePause);
  }
}

void Pager::count(std::vector<Pageable*>& regions) {
  const std::int64_t before = used_pages();
  for (Pageable* region : regions) region->measure();
  keep_spare(used_pages() - before);
}

void Pager::keep_spare(std::int64_t found) noexcept {
  const std::int64_t last = spare_.load(std::memory_order_relaxed);
  const std::int64_t wanted = std::max(found, last - (last + 31) / 32);
  spare_.store(std::clamp<std::int64_t>(wanted, 0, limit_pages_ / kMaxSpare),
               std::memory_order_relaxed);
}

void Pager::balance(std::vector<Pageable*>& regions) {
  const std::int64_t enough =
      limit_pages_ - limit_pages_ / 16 - spare_.load(std::memory_order_relaxed);
  bool any = true;
  // Rounds are limited: a region that leaves waits for this.
  for (int round = 0; round < kRounds && any && used_pages() > enough; ++round) {
    any = false;
    for (Pageable* region : regions) {
      const std::int64_t over = used_pages() - enough;
      if (over <= 0) break;
      const auto step = std::min(kStepPages, static_cast<std::size_t>(over));
      any |= region->make_room(step) != 0;
    }
  }
  for (Pageable* region : regions) region->tidy();
}

}  // namespace vellum::region
