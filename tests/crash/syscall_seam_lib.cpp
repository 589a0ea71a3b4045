#include "crash/syscall_seam_lib.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "support/sanitizers.hpp"

namespace vellum::crash {

namespace {

// The properties of a call that decide which faults can hit it.
enum Trait : unsigned {
  kWrites = 1,     // takes space
  kTransfers = 2,  // may move less than asked
  kWaits = 4,      // may be interrupted
  kSyncs = 8,
  kMemory = 16,
  kFile = 32
};

struct Plan {
  Fault fault = Fault::io;
  std::uint64_t nth = 0;
  bool sticky = false;
  std::uint64_t seen = 0;
  bool hit = false;
  bool next_write_fails = false;
  const char* call = "";
};

std::atomic<bool> armed{false};
std::atomic<std::uint64_t> injected{0};
Plan plan;

bool concerns(unsigned traits) {
  switch (plan.fault) {
    case Fault::no_space:
      return (traits & (kWrites | kSyncs)) != 0;
    case Fault::io:
      return (traits & kFile) != 0;
    case Fault::sync:
      return (traits & kSyncs) != 0;
    case Fault::short_only:
      return (traits & kTransfers) != 0;
    case Fault::short_write:
    case Fault::late_error:
      return (traits & kTransfers) != 0 && (traits & kWrites) != 0;
    case Fault::interrupted:
      return (traits & kWaits) != 0;
    case Fault::memory:
      return (traits & kMemory) != 0;
  }
  return false;
}

int error_of(Fault fault) {
  switch (fault) {
    case Fault::no_space:
    case Fault::short_write:
      return ENOSPC;
    case Fault::interrupted:
      return EINTR;
    case Fault::memory:
      return ENOMEM;
    default:
      return EIO;
  }
}

// Whether this call fails. An interrupted call succeeds when it is repeated.
bool struck(const char* call, unsigned traits) {
  if (!armed.load(std::memory_order_relaxed) || !concerns(traits)) return false;
  ++plan.seen;
  const bool every_other = plan.fault == Fault::interrupted && (plan.seen - plan.nth) % 2 != 0;
  if (plan.seen != plan.nth && !(plan.sticky && plan.seen > plan.nth && !every_other)) return false;
  if (!plan.hit) plan.call = call;
  plan.hit = true;
  ++injected;
  return true;
}

bool fails(const char* call, unsigned traits) {
  if (!struck(call, traits)) return false;
  errno = error_of(plan.fault);
  return true;
}

// How many bytes a transfer may move now; 0: it fails with errno.
std::size_t allowed(const char* call, unsigned traits, std::size_t bytes) {
  if (armed && plan.next_write_fails && (traits & kWrites) != 0) {
    plan.next_write_fails = plan.sticky;
    errno = ENOSPC;
    return 0;
  }
  if (!struck(call, traits)) return bytes;
  const bool moves_half = plan.fault == Fault::short_only || plan.fault == Fault::short_write;
  if (moves_half && bytes > 1) {
    plan.next_write_fails = plan.fault == Fault::short_write;
    return bytes / 2;
  }
  if (plan.fault == Fault::short_only) return bytes;
  errno = error_of(plan.fault);
  return 0;
}

bool write_is_done_anyway() { return plan.fault == Fault::late_error; }

// Where the process dies. All of it may run in a signal handler.
struct KillPlan {
  std::atomic<KillReport*> report{nullptr};
  std::uint64_t nth = 0;
  KillMoment moment = KillMoment::before_call;
  KillCalls calls = KillCalls::all;
  std::atomic<bool> checkpointing{false};
};
KillPlan kill_plan;

constexpr std::size_t kMaxDescriptors = 1024;
std::atomic<bool> is_pack[kMaxDescriptors];  // by descriptor

bool names_pack(const char* path) { return std::strstr(path, ".pack") != nullptr; }

void note_opened(int fd, const char* path) {
  if (fd >= 0 && static_cast<std::size_t>(fd) < kMaxDescriptors) is_pack[fd] = names_pack(path);
}

bool opened_as_pack(int fd) {
  return fd >= 0 && static_cast<std::size_t>(fd) < kMaxDescriptors && is_pack[fd];
}

// The kernel blocks a signal while its handler runs; this program blocks these nowhere else.
bool handling_a_fault() {
  std::uint64_t blocked = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &blocked, sizeof blocked);
  constexpr std::uint64_t kFaults = 1ULL << (SIGBUS - 1) | 1ULL << (SIGSEGV - 1);
  return (blocked & kFaults) != 0;
}

// Around a call. `changes_pack`: it writes to a pack.
class KillPoint {
 public:
  KillPoint(const char* call, bool changes_pack)
      : call_(call), in_background_(changes_pack && ::syscall(SYS_gettid) != ::getpid()) {
    KillReport* const report = kill_plan.report.load(std::memory_order_acquire);
    if (report == nullptr) return;
    if (changes_pack) kill_plan.checkpointing = true;
    if (kill_plan.calls == KillCalls::in_background && !in_background_) return;
    chosen_ = ++report->calls == kill_plan.nth;
    if (chosen_ && kill_plan.moment == KillMoment::before_call) die(*report);
  }
  ~KillPoint() {
    if (chosen_) die(*kill_plan.report.load());
  }
  KillPoint(const KillPoint&) = delete;
  KillPoint& operator=(const KillPoint&) = delete;

 private:
  void die(KillReport& report) const {
    std::strncpy(report.call, call_, sizeof report.call - 1);
    report.in_fault_handler = handling_a_fault();
    report.checkpointing = kill_plan.checkpointing;
    report.in_background = in_background_;
    report.killed = true;
    ::syscall(SYS_kill, ::getpid(), SIGKILL);
  }

  const char* call_;
  bool in_background_;
  bool chosen_ = false;
};

template <typename... Args>
int call_kernel(long number, Args... args) {
  return static_cast<int>(::syscall(number, args...));
}

}  // namespace

const char* fault_name(Fault fault) {
  static constexpr const char* kNames[] = {"ENOSPC",
                                           "EIO",
                                           "fsync error",
                                           "short transfer",
                                           "short write + ENOSPC",
                                           "EIO after the write",
                                           "EINTR",
                                           "ENOMEM"};
  return kNames[static_cast<int>(fault)];
}

FaultScope::FaultScope(Fault fault, std::uint64_t nth, bool sticky) {
  plan = Plan{};
  plan.fault = fault;
  plan.nth = nth;
  plan.sticky = sticky;
  armed = true;
}
FaultScope::~FaultScope() { armed = false; }
bool FaultScope::hit() { return plan.hit; }
const char* FaultScope::hit_call() { return plan.call; }
void FaultScope::repair() { armed = false; }
void FaultScope::strike_again() { armed = true; }

std::uint64_t faults_injected() { return injected; }

void kill_at_call(std::uint64_t nth, KillMoment moment, KillCalls calls, KillReport* report) {
  kill_plan.nth = nth;
  kill_plan.moment = moment;
  kill_plan.calls = calls;
  kill_plan.report.store(report, std::memory_order_release);
}

void begin_operation() { kill_plan.checkpointing = false; }

}  // namespace vellum::crash

// The calls themselves. The C library's own internal calls (malloc, stdio) do not pass through
// here.
using namespace vellum::crash;

extern "C" {

ssize_t pread(int fd, void* out, size_t bytes, off_t at) {
  const KillPoint point("pread", false);
  const size_t moved = allowed("pread", kTransfers | kWaits | kFile, bytes);
  if (moved == 0 && bytes != 0) return -1;
  return ::syscall(SYS_pread64, fd, out, moved, at);
}

ssize_t pwrite(int fd, const void* in, size_t bytes, off_t at) {
  const KillPoint point("pwrite", opened_as_pack(fd));
  const size_t moved = allowed("pwrite", kWrites | kTransfers | kWaits | kFile, bytes);
  if (moved == 0 && bytes != 0) {
    if (write_is_done_anyway()) {
      ::syscall(SYS_pwrite64, fd, in, bytes, at);
      errno = EIO;
    }
    return -1;
  }
  return ::syscall(SYS_pwrite64, fd, in, moved, at);
}

int fdatasync(int fd) {
  const KillPoint point("fdatasync", opened_as_pack(fd));
  if (fails("fdatasync", kSyncs | kWaits | kFile)) return -1;
  return call_kernel(SYS_fdatasync, fd);
}

int fsync(int fd) {
  const KillPoint point("fsync", false);
  if (fails("fsync", kSyncs | kWaits | kFile)) return -1;
  return call_kernel(SYS_fsync, fd);
}

int ftruncate(int fd, off_t size) noexcept {
  const KillPoint point("ftruncate", opened_as_pack(fd));
  if (fails("ftruncate", kWrites | kWaits | kFile)) return -1;
  return call_kernel(SYS_ftruncate, fd, size);
}

int fallocate(int fd, int mode, off_t at, off_t length) {
  const KillPoint point("fallocate", opened_as_pack(fd));
  if (fails("fallocate", kWrites | kWaits | kFile)) return -1;
  return call_kernel(SYS_fallocate, fd, mode, at, length);
}

int flock(int fd, int operation) noexcept {
  const KillPoint point("flock", false);
  if (fails("flock", kWaits | kFile)) return -1;
  return call_kernel(SYS_flock, fd, operation);
}

// Descriptors of the directories of a path are not steps of their own.
int openat(int directory, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  if ((flags & O_PATH) != 0) return call_kernel(SYS_openat, directory, path, flags, mode);
  const unsigned creates = (flags & O_CREAT) != 0 ? kWrites : 0u;
  const KillPoint point("open", creates != 0 && names_pack(path));
  if (fails("open", creates | kWaits | kFile)) return -1;
  const int fd = call_kernel(SYS_openat, directory, path, flags, mode);
  note_opened(fd, path);
  return fd;
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return openat(AT_FDCWD, path, flags, mode);
}

int renameat(int from_fd, const char* from, int to_fd, const char* to) noexcept {
  const KillPoint point("rename", names_pack(to));
  if (fails("rename", kWrites | kFile)) return -1;
  return call_kernel(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) noexcept {
  const KillPoint point("renameat2", names_pack(to));
  if (fails("renameat2", kWrites | kFile)) return -1;
  return call_kernel(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) noexcept {
  const KillPoint point("link", names_pack(to));
  if (fails("link", kWrites | kFile)) return -1;
  return call_kernel(SYS_linkat, from_fd, from, to_fd, to, flags);
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  const char* const call = (flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink";
  const KillPoint point(call, names_pack(path));
  if (fails(call, kFile)) return -1;
  return call_kernel(SYS_unlinkat, directory, path, flags);
}

int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  const KillPoint point("mkdir", false);
  if (fails("mkdir", kWrites | kFile)) return -1;
  return call_kernel(SYS_mkdirat, directory, path, mode);
}

#if !VELLUM_TEST_ASAN && !VELLUM_TEST_TSAN
void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (fails("mmap", kMemory)) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

int mprotect(void* at, size_t bytes, int protection) noexcept {
  if (fails("mprotect", kMemory)) return -1;
  return call_kernel(SYS_mprotect, at, bytes, protection);
}

int memfd_create(const char* name, unsigned flags) noexcept {
  if (fails("memfd_create", kMemory)) return -1;
  return call_kernel(SYS_memfd_create, name, flags);
}
#endif
}
