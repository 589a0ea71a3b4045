#include "region/fault_router.hpp"

#include <sched.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vellum/error.hpp>

namespace vellum::region {
namespace {

struct Route {
  std::atomic<FaultTarget*> target{nullptr};
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<std::uint32_t> inside{
      0};  // threads between looking the route up and leaving on_fault
};

constexpr std::size_t kMaxRoutes = 1024;
Route g_routes[kMaxRoutes];
std::atomic<std::size_t> g_routes_used{0};  // high-water mark
std::mutex g_mutex;                         // add and remove only
struct sigaction g_old_bus, g_old_segv;

#if defined(__x86_64__)
bool fault_is_write(const ucontext_t* context) noexcept {
  return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;  // page fault error code, bit 1
}
#else
// Other machines: the first fault on a page reads it in, a second one must be a write.
bool fault_is_write(const ucontext_t*) noexcept { return false; }
#endif

bool route_fault(std::byte* address, bool is_write) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t used = g_routes_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    Route& route = g_routes[i];
    if (at < route.begin.load(std::memory_order_acquire) ||
        at >= route.end.load(std::memory_order_acquire))
      continue;
    // Counting in before looking at the target pairs with remove_route, which clears it before it
    // looks at the count.
    route.inside.fetch_add(1);
    FaultTarget* target = route.target.load();
    const bool handled = target != nullptr && target->on_fault(address, is_write);
    route.inside.fetch_sub(1);
    if (handled) return true;
  }
  return false;
}

void chain(const struct sigaction& old, int signal_number, siginfo_t* info,
           void* context) noexcept {
  if ((old.sa_flags & SA_SIGINFO) != 0) {
    old.sa_sigaction(signal_number, info, context);
  } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
    old.sa_handler(signal_number);
  } else {
    // Ignoring a synchronous fault would repeat it for ever, so SIG_IGN counts as default, as in
    // the kernel. The access faults again at the same instruction and kills with its own address.
    struct sigaction dfl{};
    dfl.sa_handler = SIG_DFL;
    sigaction(signal_number, &dfl, nullptr);
    if (info->si_code <= 0) raise(signal_number);  // sent by kill(2): nothing would fault again
  }
}

void on_signal(int signal_number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool from_kernel = info->si_code > 0;
  const bool is_write = fault_is_write(static_cast<const ucontext_t*>(context));
  if (!from_kernel || !route_fault(static_cast<std::byte*>(info->si_addr), is_write)) {
    chain(signal_number == SIGBUS ? g_old_bus : g_old_segv, signal_number, info, context);
  }
  errno = saved_errno;
}

void install_handlers() {
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  sigemptyset(&action.sa_mask);
  // On the thread's own stack: page-in needs more than a small alternate stack has. SIGSEGV keeps
  // SA_ONSTACK where the handler before us had it: that one may be there to report stack overflows.
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGBUS, &action, &g_old_bus);
  struct sigaction before{};
  sigaction(SIGSEGV, nullptr, &before);
  action.sa_flags |= before.sa_flags & SA_ONSTACK;
  sigaction(SIGSEGV, &action, &g_old_segv);
}

}  // namespace

void add_route(std::byte* begin, std::byte* end, FaultTarget* target) {
  const std::lock_guard lock(g_mutex);
  static std::once_flag installed;
  std::call_once(installed, install_handlers);
  for (std::size_t i = 0; i < kMaxRoutes; ++i) {
    Route& route = g_routes[i];
    if (route.target.load() != nullptr) continue;
    route.target.store(target);
    // `end` last: until then the range is empty.
    route.begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_release);
    route.end.store(reinterpret_cast<std::uintptr_t>(end), std::memory_order_release);
    if (i >= g_routes_used.load()) g_routes_used.store(i + 1, std::memory_order_release);
    return;
  }
  throw Error(Errc::unsupported, "1024 regions are open in this process: close some first");
}

void remove_route(FaultTarget* target) noexcept {
  const std::lock_guard lock(g_mutex);
  for (Route& route : g_routes) {
    if (route.target.load() != target) continue;
    route.end.store(0);
    route.begin.store(0);
    route.target.store(nullptr);
    while (route.inside.load() != 0) sched_yield();
    return;
  }
}

void deliver_sigbus(const char* message) noexcept {
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, message, strlen(message));
  sigaction(SIGBUS, &g_old_bus, nullptr);
  raise(SIGBUS);  // blocked while a SIGBUS handler runs: it comes when that returns
}

}  // namespace vellum::region
