#include "memory/kernel/fault_thread.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/threads/start_thread.hpp"
#include "memory/kernel/kernel.hpp"

namespace vellum::region {

FaultThread::FaultThread(int uffd, FaultTarget& target)
    : uffd_(uffd), target_(target), stop_(eventfd(0, EFD_CLOEXEC)) {
  assert(uffd >= 0);
  if (stop_ < 0) {
    fail(Errc::out_of_memory, "no descriptor for the fault thread: {}", std::strerror(errno));
  }
  keep_loaded();
  try {
    thread_ = base::start_thread("fills pages", [this] { run(); });
  } catch (const Error&) {
    close(stop_);
    throw;
  }
}

FaultThread::~FaultThread() {
  const std::uint64_t one = 1;
  while (write(stop_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  close(stop_);
}

void FaultThread::run() noexcept {
  for (;;) {
    pollfd both[] = {{uffd_, POLLIN, 0}, {stop_, POLLIN, 0}};
    if (poll(both, 2, -1) < 0) continue;  // EINTR
    if (both[1].revents != 0) return;
    serve_all();
  }
}

void FaultThread::serve_all() noexcept {
  std::byte* address = nullptr;
  bool is_write = false;
  while (read_fault(uffd_, address, is_write)) {
    const FaultResult result = target_.on_fault({address, is_write, SIGBUS});
    // Where the page cannot be poisoned, its reader waits endlessly: wrong data would be worse.
    if (result == FaultResult::lost) {
      poison_page(uffd_, address);
    } else {
      // The page may be filled but not mapped, or filled by another thread; or it is beyond the
      // region's new end, where the next access is a SIGSEGV.
      wake_waiters(uffd_, address);
    }
  }
}

}  // namespace vellum::region
