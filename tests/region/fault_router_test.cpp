// Faults that no region owns end as they would without a region.
#include "region/kernel/fault_router.hpp"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "region/memory_fixture.hpp"
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

// What a handler saw.
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

// Whether touching `at` came to the handler.
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

TEST_P(FaultRouter, FaultsOutsideReachTheHandlerThatWasThereBefore) {
  EXPECT_CHILD_EXIT(run_program("previous handlers", {engine()}), 0);
}

const ChildProgram kPlainHandler("plain handler", [](const auto& arguments) {
  signal(SIGSEGV, note_plain);
  const auto memory = make_memory(engine_from(arguments.at(0)), kMiB, 8 * kMiB);
  memory->data()[5] = std::byte{1};
  require(caught(no_access_page(), true) && g_signal == SIGSEGV, "a handler without siginfo, too");
});

TEST_P(FaultRouter, AHandlerWithoutSiginfoIsCalledToo) {
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
    // Too late to matter for a fault, but a signal that is sent stays ignored.
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
    EXPECT_CHILD_SIGNAL(run_program("default action", {engine(), what}), SIGSEGV) << what;
  }
  for (const char* what : {"sent bus", "short file"}) {
    EXPECT_CHILD_SIGNAL(run_program("default action", {engine(), what}), SIGBUS) << what;
  }
}

TEST_P(FaultRouter, ServesManyRegionsAndForgetsClosedOnes) {
  std::vector<std::unique_ptr<RegionMemory>> open;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      open.push_back(make(kMiB));
      open.back()->data()[i] = std::byte{1};
    }
    // Every second one goes.
    for (std::size_t i = 0; i < open.size(); i += 2) open[i].reset();
    std::erase(open, nullptr);
    for (const auto& memory : open) memory->data()[kMiB - 1] = std::byte{2};
  }
}

TEST(FaultRoutes, RefusesMoreThanItsTableHas) {
  constexpr std::size_t kMost = 16384;
  struct Nobody : FaultTarget {
    FaultResult on_fault(const Fault&) noexcept override { return FaultResult::not_ours; }
  };
  std::vector<Nobody> targets(kMost + 1);
  std::size_t added = 0;
  EXPECT_THROW(
      {
        for (; added < targets.size(); ++added) add_route(nullptr, nullptr, &targets[added]);
      },
      Error);
  EXPECT_EQ(kMost, added);
  remove_route(&targets[7]);
  add_route(nullptr, nullptr, &targets[kMost]);
  for (Nobody& target : targets) remove_route(&target);
}

TEST_P(FaultRouter, ClosingBesideFaultsElsewhere) {
  const auto steady = make(64 * kMiB);
  std::atomic<bool> stop{false};
  std::thread toucher([&] {
    for (std::uint64_t at = 0; !stop; at = (at + kDefaultChunkBytes) % (64 * kMiB)) {
      // Relaxed: for any other order ThreadSanitizer holds a lock of its own over the access, and
      // the fault handler would wait for it.
      std::atomic_ref(reinterpret_cast<std::uint64_t*>(steady->data() + at)[0])
          .fetch_add(1, std::memory_order_relaxed);
      if (at == 0) collect(*steady);
    }
  });
  for (int i = 0; i < 200; ++i) make(kMiB)->data()[i * 4096] = std::byte{1};
  stop = true;
  toucher.join();
}

VELLUM_BOTH_ENGINES(FaultRouter);

}  // namespace
}  // namespace vellum::region::test
