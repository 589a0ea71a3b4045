// Faults that no region owns have the same effect as without a region.
#include "memory/kernel/fault_router.hpp"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "base/threads/futex.hpp"
#include "memory/memory_fixture.hpp"
#include "support/child.hpp"

namespace vellum::region::test {
namespace {

using vellum::test::Child;
using vellum::test::ChildProgram;
using vellum::test::require;
using vellum::test::run_child;
using vellum::test::run_program;

Engine engine_from(const std::string& name) { return vellum::test::engine_named(name); }

class FaultRouter : public MemoryTest {
 protected:
  std::string engine() const { return engine_name(GetParam()); }
};

// The arguments of a handler.
volatile sig_atomic_t g_signal = 0;
void* volatile g_address = nullptr;
sigjmp_buf g_jump;

void note_and_jump(int signal_number, siginfo_t* info, void*) {
  g_signal = signal_number;
  g_address = info->si_addr;
  siglongjmp(g_jump, 1);
}

void note_plain(int signal_number) {
  g_signal = signal_number;
  siglongjmp(g_jump, 1);
}

void install(int signal_number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(signal_number, &action, nullptr);
}

// Whether an access at `at` reached the handler.
bool caught(volatile std::byte* at, bool write) {
  g_signal = 0;
  g_address = nullptr;
  if (sigsetjmp(g_jump, 1) != 0) return true;
  if (write) {
    *at = std::byte{1};
  } else {
    [[maybe_unused]] const std::byte seen = *at;
  }
  return false;
}

std::byte* no_access_page() {
  return static_cast<std::byte*>(
      mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

const ChildProgram kPreviousHandlers("previous handlers", [](const auto& arguments) {
  install(SIGSEGV, note_and_jump);
  install(SIGBUS, note_and_jump);
  const auto memory = make_memory(engine_from(arguments.at(0)), kMiB, 8 * kMiB);
  memory->data()[5] = std::byte{1};
  std::byte* const outside = no_access_page();
  for (int round = 0; round < 3; ++round) {
    for (const bool write : {false, true}) {
      require(caught(outside + 17, write), "a fault outside reaches the old handler");
      require(g_signal == SIGSEGV && g_address == outside + 17, "with its own address");
      require(caught(memory->data() + kMiB + 99, write), "so does one beyond the size");
      require(g_address == memory->data() + kMiB + 99, "with its own address, too");
    }
    require(!caught(memory->data() + 7 + 4096 * round, true), "the region works on");
  }
  // A file that became shorter than its mapping.
  const int fd = memfd_create("short", MFD_CLOEXEC);
  require(ftruncate(fd, kPageBytes) == 0, "ftruncate");
  auto* const map =
      static_cast<std::byte*>(mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, fd, 0));
  require(ftruncate(fd, 0) == 0, "ftruncate");
  require(caught(map + 3, false), "SIGBUS reaches the old handler");
  require(g_signal == SIGBUS && g_address == map + 3, "as SIGBUS, with its own address");
});

TEST_P(FaultRouter, OtherFaultsReachTheEarlierHandler) {
  EXPECT_CHILD_EXIT(run_program("previous handlers", {engine()}), 0);
}

const ChildProgram kPlainHandler("plain handler", [](const auto& arguments) {
  signal(SIGSEGV, note_plain);
  const auto memory = make_memory(engine_from(arguments.at(0)), kMiB, 8 * kMiB);
  memory->data()[5] = std::byte{1};
  require(caught(no_access_page(), true) && g_signal == SIGSEGV, "a handler without siginfo, too");
});

TEST_P(FaultRouter, AHandlerWithoutSiginfoIsCalled) {
  EXPECT_CHILD_EXIT(run_program("plain handler", {engine()}), 0);
}

const ChildProgram kDefault("default action", [](const auto& arguments) {
  signal(SIGSEGV, SIG_DFL);
  signal(SIGBUS, SIG_DFL);
  const auto memory = make_memory(engine_from(arguments.at(0)), kMiB, 8 * kMiB);
  memory->data()[5] = std::byte{1};
  const std::string& what = arguments.at(1);
  if (what == "null") {
    std::byte* volatile null = nullptr;
    *static_cast<volatile std::byte*>(null) = std::byte{1};
  } else if (what == "beyond") {
    *static_cast<volatile std::byte*>(memory->data() + kMiB) = std::byte{1};
  } else if (what == "closed") {
    auto closed = make_memory(engine_from(arguments.at(0)), kMiB, 8 * kMiB);
    volatile std::byte* const at = closed->data();
    *at = std::byte{1};
    closed.reset();
    *at = std::byte{1};
  } else if (what == "read-only") {
    const auto fixed = make_memory(engine_from(arguments.at(0)), kMiB, 8 * kMiB, false);
    require(fixed->data()[77] == std::byte{0}, "reading works");
    *static_cast<volatile std::byte*>(fixed->data() + 77) = std::byte{1};
  } else if (what == "read-only cold") {
    const auto fixed = make_memory(engine_from(arguments.at(0)), kMiB, 8 * kMiB, false);
    *static_cast<volatile std::byte*>(fixed->data() + 77) = std::byte{1};
  } else if (what == "sent segv") {
    kill(getpid(), SIGSEGV);
  } else if (what == "sent bus") {
    kill(getpid(), SIGBUS);
  } else if (what == "ignored") {
    // SIG_IGN is set too late to affect a fault, but a sent signal stays ignored.
    kill(getpid(), SIGSEGV);
    *static_cast<volatile std::byte*>(no_access_page()) = std::byte{1};
  } else if (what == "short file") {
    const int fd = memfd_create("short", MFD_CLOEXEC);
    void* map = mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, fd, 0);
    [[maybe_unused]] const std::byte seen = *static_cast<volatile std::byte*>(map);
  }
});

TEST_P(FaultRouter, WithoutAHandlerTheProcessDiesAsUsual) {
  for (const char* what :
       {"null", "beyond", "closed", "read-only", "read-only cold", "sent segv", "ignored"}) {
    SCOPED_TRACE(what);
    EXPECT_CHILD_SIGNAL(run_program("default action", {engine(), what}), SIGSEGV);
  }
  for (const char* what : {"sent bus", "short file"}) {
    SCOPED_TRACE(what);
    EXPECT_CHILD_SIGNAL(run_program("default action", {engine(), what}), SIGBUS);
  }
}

TEST_P(FaultRouter, ManyRegionsAreServedAndClosedOnesForgotten) {
  std::vector<std::unique_ptr<RegionMemory>> open;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      open.push_back(make(kMiB));
      open.back()->data()[i] = std::byte{1};
    }
    // Every second region is removed.
    for (std::size_t i = 0; i < open.size(); i += 2) open[i].reset();
    std::erase(open, nullptr);
    for (const auto& memory : open) memory->data()[kMiB - 1] = std::byte{2};
  }
}

TEST(FaultRoutes, ARouteBeyondTheTableIsRefused) {
  constexpr std::size_t kMax = 16384;
  struct Nobody : FaultTarget {
    FaultResult on_fault(const Fault&) noexcept override { return FaultResult::not_ours; }
  };
  std::vector<Nobody> targets(kMax + 1);
  std::size_t added = 0;
  EXPECT_THROW(
      {
        for (; added < targets.size(); ++added) add_route(nullptr, nullptr, &targets[added]);
      },
      Error);
  EXPECT_EQ(kMax, added);
  remove_route(&targets[7]);
  add_route(nullptr, nullptr, &targets[kMax]);
  for (Nobody& target : targets) remove_route(&target);
}

TEST_P(FaultRouter, RegionsCloseDuringFaultsInOthers) {
  const auto steady = make(64 * kMiB);
  std::atomic<bool> stop{false};
  std::thread toucher([&] {
    for (std::uint64_t at = 0; !stop; at = (at + kDefaultChunkBytes) % (64 * kMiB)) {
      // Relaxed: for any other order, ThreadSanitizer holds its own lock during the access, and the
      // fault handler would wait for it.
      std::atomic_ref(reinterpret_cast<std::uint64_t*>(steady->data() + at)[0])
          .fetch_add(1, std::memory_order_relaxed);
      if (at == 0) collect(*steady);
    }
  });
  for (int i = 0; i < 200; ++i) make(kMiB)->data()[i * 4096] = std::byte{1};
  stop = true;
  toucher.join();
}

// A page whose fill needs as much stack as decoding; a signal arrives during the fill.
class DeepTarget : public FaultTarget {
 public:
  DeepTarget() : page_(no_access_page()) { add_route(page_, page_ + kPageBytes, this); }
  ~DeepTarget() override { remove_route(this); }
  FaultResult on_fault(const Fault&) noexcept override {
    inside = 1;
    std::array<volatile std::byte, 40 << 10> deep;
    for (volatile std::byte& at : deep) at = std::byte{7};
    if (signal_ != 0) pthread_kill(pthread_self(), signal_);
    mprotect(page_, kPageBytes, PROT_READ | PROT_WRITE);
    inside = 0;
    return FaultResult::retry;
  }
  void touch() const { *static_cast<volatile std::byte*>(page_) = std::byte{1}; }
  void send(int signal_number) { signal_ = signal_number; }
  static volatile sig_atomic_t inside;

 private:
  std::byte* const page_;
  int signal_ = 0;
};
volatile sig_atomic_t DeepTarget::inside = 0;

// Memory below a stack that shows whether the stack has overflowed.
class WatchedStack {
 public:
  explicit WatchedStack(std::size_t bytes) : bytes_(bytes) {
    void* const at =
        mmap(nullptr, kBelow + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(at != MAP_FAILED, "memory for a stack");
    at_ = static_cast<unsigned char*>(at);
    std::fill_n(at_, kBelow, kFill);
  }
  void* stack() const { return at_ + kBelow; }
  std::size_t size() const { return bytes_; }
  bool overrun() const {
    return std::any_of(at_, at_ + kBelow, [](unsigned char c) { return c != kFill; });
  }

 private:
  static constexpr std::size_t kBelow = 256 << 10;
  static constexpr unsigned char kFill = 0xab;
  const std::size_t bytes_;
  unsigned char* at_ = nullptr;
};

void take_alternate_stack(std::size_t bytes) {
  stack_t alternate{};
  alternate.ss_size = bytes;
  alternate.ss_sp = new char[bytes];
  require(sigaltstack(&alternate, nullptr) == 0, "sigaltstack");
}

const ChildProgram kSmallThread("small thread", [](const auto&) {
  static DeepTarget target;
  const WatchedStack stack(16 << 10);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  require(pthread_attr_setstack(&attributes, stack.stack(), stack.size()) == 0, "setstack");
  pthread_t thread;
  const auto body = [](void*) -> void* { return target.touch(), nullptr; };
  require(pthread_create(&thread, &attributes, body, nullptr) == 0, "a thread");
  pthread_join(thread, nullptr);
  require(!stack.overrun(), "nothing is written below a stack of 16 KiB");
});

TEST(FaultRoutes, AThreadWithASmallStackCanTouchAPage) {
  EXPECT_CHILD_EXIT(run_program("small thread", {}), 0);
}

// Like a goroutine of Go: the thread has an alternate stack, and a stack of a few KiB.
const ChildProgram kGoroutine("goroutine", [](const auto&) {
  static DeepTarget target;
  static ucontext_t back, other;
  take_alternate_stack(32 << 10);
  const WatchedStack stack(2 << 10);
  getcontext(&other);
  other.uc_stack.ss_sp = stack.stack();
  other.uc_stack.ss_size = stack.size();
  other.uc_link = &back;
  makecontext(&other, [] { target.touch(); }, 0);
  require(swapcontext(&back, &other) == 0, "swapcontext");
  require(!stack.overrun(), "nothing is written below a stack of 2 KiB");
});

TEST(FaultRoutes, AGoroutineCanTouchAPage) { EXPECT_CHILD_EXIT(run_program("goroutine", {}), 0); }

// A profiler's or Python's handler also runs on the alternate stack.
const ChildProgram kSignalsWait("signals wait", [](const auto&) {
  static DeepTarget target;
  static volatile sig_atomic_t calls = 0, nested = 0;
  take_alternate_stack(16 << 10);
  struct sigaction action{};
  action.sa_handler = [](int) {
    std::array<volatile char, 3000> frame;
    for (volatile char& c : frame) c = 'x';
    calls = calls + 1;
    nested = nested + DeepTarget::inside;
  };
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  target.send(SIGUSR1);
  target.touch();
  require(calls == 1 && nested == 0, "the signal was delivered after the page was filled, once");
});

TEST(FaultRoutes, ASignalOnTheSameAlternateStackWaitsForThePage_NoTsan) {
  EXPECT_CHILD_EXIT(run_program("signals wait", {}), 0);
}

// A nested fault: a handler on the alternate stack accesses a page itself.
const ChildProgram kHandlerTouches("handler touches", [](const auto&) {
  static DeepTarget target;
  // Little more than the kernel's frames of both signals, whose size depends on the processor.
  take_alternate_stack(2 * static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ)) + (4 << 10));
  struct sigaction action{};
  action.sa_handler = [](int) { target.touch(); };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  require(DeepTarget::inside == 0, "the page was filled");
});

TEST(FaultRoutes, AHandlerOnASmallAlternateStackCanTouchAPage_NoSanitizer) {
  EXPECT_CHILD_EXIT(run_program("handler touches", {}), 0);
}

const ChildProgram kEarlierMask("earlier mask", [](const auto&) {
  static sigset_t seen;
  struct sigaction action{};
  action.sa_sigaction = [](int, siginfo_t*, void*) {
    pthread_sigmask(SIG_BLOCK, nullptr, &seen);
    siglongjmp(g_jump, 1);
  };
  action.sa_flags = SA_SIGINFO;
  sigaddset(&action.sa_mask, SIGUSR2);
  sigaction(SIGSEGV, &action, nullptr);
  const DeepTarget installs_handlers;
  require(caught(no_access_page(), true), "the old handler is called");
  require(sigismember(&seen, SIGSEGV) == 1 && sigismember(&seen, SIGUSR2) == 1, "as it asked");
  require(sigismember(&seen, SIGUSR1) == 0 && sigismember(&seen, SIGTERM) == 0, "and no more");
});

TEST(FaultRoutes, AnEarlierHandlerGetsItsRequestedMask) {
  EXPECT_CHILD_EXIT(run_program("earlier mask", {}), 0);
}

// A page that is never filled, as with a remote that does not answer.
struct NeverThere : FaultTarget {
  std::byte* const page = no_access_page();
  std::atomic<std::uint32_t> is_there{0};

  NeverThere() { add_route(page, page + kPageBytes, this); }
  FaultResult on_fault(const Fault&) noexcept override {
    kill(getpid(), SIGTERM);
    while (is_there.load() == 0) base::futex_wait(is_there, 0);
    mprotect(page, kPageBytes, PROT_READ | PROT_WRITE);
    return FaultResult::retry;
  }
};

const ChildProgram kWaitsEndlessly("waits endlessly", [](const auto&) {
  static NeverThere target;
  *const_cast<volatile std::byte*>(target.page) = std::byte{1};
});

TEST(FaultRoutes, AWaitForAPageEndsWithTheProcess) {
  EXPECT_CHILD_SIGNAL(run_program("waits endlessly", {}), SIGTERM);
}

const ChildProgram kHandlesTheEnd("handles the end", [](const auto&) {
  static NeverThere target;
  static std::atomic<bool> handled{false};
  signal(SIGTERM, [](int) { handled = true; });
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);  // for the thread
  std::thread bringer([] {
    sigset_t pending;
    do {
      sigpending(&pending);
    } while (sigismember(&pending, SIGTERM) != 1);
    target.is_there = 1;
    base::futex_wake(target.is_there, 1);
  });
  pthread_sigmask(SIG_UNBLOCK, &term, nullptr);
  *const_cast<volatile std::byte*>(target.page) = std::byte{1};
  bringer.join();
  require(handled.load(), "the program's own handler runs when the page is there");
});

TEST(FaultRoutes, AProgramsHandlerRunsAfterAWaitForAPage) {
  EXPECT_CHILD_EXIT(run_program("handles the end", {}), 0);
}

VELLUM_BOTH_ENGINES(FaultRouter);

}  // namespace
}  // namespace vellum::region::test
