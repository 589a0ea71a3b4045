#include "interfaces/lmdb/reader_slot.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "interfaces/lmdb/format.hpp"

namespace vellum::lmdb {
namespace {

// MDB_LOCK_FORMAT of x86-64 with the C library's robust mutexes. It states the sizes of all parts.
constexpr std::uint32_t kLockFormat = 0x2c2f6002;
constexpr std::size_t kFormatAt = 4, kTransactionIdAt = 8, kReadersAt = 16, kMutexAt = 24;
// The slots begin after a writer's mutex of one cache line. lmdb-js has two mutexes there, and then
// unused bytes, which are zero.
constexpr std::size_t kSlotBytes = 64, kSlotsAt = 128, kSlotsAtOfLmdbJs = 208;
constexpr std::size_t kKindOfSecondMutexAt = 120, kUnusedOfLmdbJsAt = 144;
constexpr std::uint32_t kRobustShared = 0x90;  // the kind of a mutex of both (glibc)
constexpr std::size_t kSlotTransactionAt = 0, kSlotProcessAt = 8, kSlotThreadAt = 16;
constexpr std::uint64_t kNoTransaction = UINT64_MAX;
constexpr std::uint64_t kMaxLockFileBytes = 64u << 20;  // a million readers
constexpr int kPatienceSeconds = 10;

template <typename T>
std::atomic_ref<T> shared(std::byte* at) noexcept {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(at));
}

// 0 or errno. F_GETLK: `type` is what another process holds.
int lock_range(int fd, int command, short& type, off_t at) noexcept {
  struct flock range{};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = at;
  range.l_len = 1;
  while (::fcntl(fd, command, &range) != 0) {
    if (errno != EINTR) return errno;
  }
  type = range.l_type;
  return 0;
}

bool is_open_elsewhere(int fd) noexcept {
  short type = F_WRLCK;
  return lock_range(fd, F_GETLK, type, 0) == 0 && type != F_UNLCK;
}

// A process with a slot locks the byte of its number.
bool is_alive(int fd, std::int32_t process) noexcept {
  short type = F_WRLCK;
  return process == ::getpid() || lock_range(fd, F_GETLK, type, process) != 0 || type != F_UNLCK;
}

// The first process locks the byte exclusively while it initializes the file.
bool share_file(int fd) {
  for (int tries = 0; tries < kPatienceSeconds * 100; ++tries) {
    short type = F_RDLCK;
    if (lock_range(fd, F_SETLK, type, 0) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class TableLock {
 public:
  TableLock(std::byte* lock_file, const std::string& path)
      : mutex_(reinterpret_cast<pthread_mutex_t*>(lock_file + kMutexAt)) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += kPatienceSeconds;
    int error = pthread_mutex_timedlock(mutex_, &until);
    if (error == EOWNERDEAD) error = pthread_mutex_consistent(mutex_);
    if (error != 0) {
      fail(Errc::busy, "{}: a process does not release LMDB's reader table: {}", path,
           std::strerror(error));
    }
  }
  ~TableLock() { pthread_mutex_unlock(mutex_); }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;

 private:
  pthread_mutex_t* const mutex_;
};

}  // namespace

std::unique_ptr<ReaderSlot> ReaderSlot::join(const std::string& lock_file) {
  const int fd = ::open(lock_file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) fail(Errc::io, "{}: {}", lock_file, std::strerror(errno));
  std::unique_ptr<ReaderSlot> slot(new ReaderSlot(lock_file, fd));
  if (!is_open_elsewhere(fd)) return nullptr;
  if (!share_file(fd)) fail(Errc::busy, "{}: a process does not release the file", lock_file);
  if (!is_open_elsewhere(fd)) return nullptr;  // the other process has ended meanwhile
  slot->map();
  slot->claim();
  slot->renew();
  return slot;
}

void ReaderSlot::map() {
  struct stat status{};
  if (::fstat(fd_, &status) != 0) fail(Errc::io, "{}: {}", path_, std::strerror(errno));
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes < kSlotsAt + kSlotBytes || bytes > kMaxLockFileBytes) {
    fail(Errc::unsupported, "{}: the size of no lock file of LMDB 1.0", path_);
  }
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) fail(Errc::out_of_memory, "{}: {}", path_, std::strerror(errno));
  lock_file_ = static_cast<std::byte*>(at);
  lock_file_bytes_ = bytes;
  std::uint32_t format = 0;
  std::memcpy(&format, lock_file_ + kFormatAt, sizeof format);
  if (format != kLockFormat) {
    fail(Errc::unsupported, "{}: a lock file of an unknown kind ({:#010x})", path_, format);
  }
  find_kind();
}

// LMDB and lmdb-js state the same format. The file may have been made by one and be used by the
// other, which keeps its size: all signs have to agree.
void ReaderSlot::find_kind() {
  std::uint32_t kind = 0;
  std::memcpy(&kind, lock_file_ + kKindOfSecondMutexAt, sizeof kind);
  const bool is_unused =
      base::is_zero({lock_file_ + kUnusedOfLmdbJsAt, kSlotsAtOfLmdbJs - kUnusedOfLmdbJsAt});
  const std::size_t end = lock_file_bytes_ % kSlotBytes;
  is_of_lmdb_js_ = end == kSlotsAtOfLmdbJs % kSlotBytes && kind == kRobustShared && is_unused;
  if (is_of_lmdb_js_ || (end == kSlotsAt % kSlotBytes && kind == 0)) return;
  fail(Errc::unsupported,
       "{}: LMDB 1.0 and lmdb-js have both used it; stop the writer, and take the file as it is "
       "with --stopped",
       path_);
}

std::size_t ReaderSlot::slots_at() const noexcept {
  return is_of_lmdb_js_ ? kSlotsAtOfLmdbJs : kSlotsAt;
}

// REQUIRES: mapped.
void ReaderSlot::claim() {
  assert(lock_file_ != nullptr && slot_ == nullptr);
  short type = F_WRLCK;  // others find out by this lock whether the process lives
  if (const int error = lock_range(fd_, F_SETLK, type, ::getpid()); error != 0) {
    fail(Errc::io, "{}: {}", path_, std::strerror(error));
  }
  const TableLock lock(lock_file_, path_);
  const std::size_t first = slots_at();
  const std::size_t max = (lock_file_bytes_ - first) / kSlotBytes;
  const auto used = shared<std::uint32_t>(lock_file_ + kReadersAt);
  const auto in_use = std::min<std::size_t>(used.load(), max);
  std::size_t index = 0;
  const auto slot = [&] { return lock_file_ + first + index * kSlotBytes; };
  const auto process = [&] { return shared<std::int32_t>(slot() + kSlotProcessAt).load(); };
  while (index < in_use && process() != 0) ++index;
  if (index == max) {  // killed readers still occupy slots
    for (index = 0; index < max && is_alive(fd_, process()); ++index) {
    }
  }
  if (index == max) fail(Errc::busy, "{}: all {} reader slots are in use", path_, max);
  shared<std::uint64_t>(slot() + kSlotTransactionAt).store(kNoTransaction);
  shared<std::uint64_t>(slot() + kSlotThreadAt).store(static_cast<std::uint64_t>(::getpid()));
  if (index >= in_use) used.store(static_cast<std::uint32_t>(index + 1));
  shared<std::int32_t>(slot() + kSlotProcessAt).store(::getpid());
  slot_ = slot();
}

// A transaction that is committed between the two reads may already free pages of the first.
std::uint64_t ReaderSlot::renew() noexcept {
  assert(slot_ != nullptr);
  const auto named = shared<std::uint64_t>(slot_ + kSlotTransactionAt);
  do {
    transaction_ = last_transaction();
    named.store(transaction_);
  } while (last_transaction() != transaction_);
  return transaction_;
}

std::uint64_t ReaderSlot::last_transaction() const noexcept {
  return shared<std::uint64_t>(lock_file_ + kTransactionIdAt).load();
}

bool ReaderSlot::is_held() const noexcept {
  return shared<std::int32_t>(slot_ + kSlotProcessAt).load() == ::getpid() &&
         shared<std::uint64_t>(slot_ + kSlotTransactionAt).load() == transaction_;
}

ReaderSlot::~ReaderSlot() {
  if (slot_ != nullptr) {
    shared<std::uint64_t>(slot_ + kSlotTransactionAt).store(kNoTransaction);
    shared<std::int32_t>(slot_ + kSlotProcessAt).store(0);
  }
  if (lock_file_ != nullptr) ::munmap(lock_file_, lock_file_bytes_);
  ::close(fd_);
}

}  // namespace vellum::lmdb
