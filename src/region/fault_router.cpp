#include "region/fault_router.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <vellum/error.hpp>

#include "base/reserve.hpp"

namespace vellum::region {
namespace {

struct Route {
  std::atomic<FaultTarget*> target{nullptr};
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<std::uint32_t> inside{
      0};  // threads between looking the route up and leaving on_fault
};

constexpr std::size_t kMaxRoutes = 1024;
std::atomic<Route*> g_routes{nullptr};      // kMaxRoutes of them; all zero bytes is a free one
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

// A table that fork() wipes: a child's fault must not reach its copy of an engine, whose
// descriptors lead into the parent's memory.
Route* make_routes() {
  static base::Reservation& table = *new base::Reservation(kMaxRoutes * sizeof(Route));
  if (madvise(table.data(), table.size(), MADV_WIPEONFORK) != 0) {
    throw Error(Errc::unsupported, "this kernel cannot wipe memory on fork (MADV_WIPEONFORK)");
  }
  return reinterpret_cast<Route*>(table.data());
}

FaultResult route_fault(const Fault& fault) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(fault.address);
  Route* const routes = g_routes.load(std::memory_order_acquire);
  const std::size_t used = g_routes_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    Route& route = routes[i];
    if (at < route.begin.load(std::memory_order_acquire) ||
        at >= route.end.load(std::memory_order_acquire))
      continue;
    // Counting in before looking at the target pairs with remove_route, which clears it before it
    // looks at the count.
    route.inside.fetch_add(1);
    FaultTarget* target = route.target.load();
    const auto result = target != nullptr ? target->on_fault(fault) : FaultResult::not_ours;
    route.inside.fetch_sub(1);
    if (result != FaultResult::not_ours) return result;
  }
  return FaultResult::not_ours;
}

// Whether the kernel raised the signal for an access that a region may have to serve: not sent by
// kill(2), no memory failure, no address that is none.
bool may_be_routed(const siginfo_t& info) noexcept {
  if (info.si_signo == SIGBUS) return info.si_code == BUS_ADRERR;
  return info.si_code == SEGV_MAPERR || info.si_code == SEGV_ACCERR;
}

// False: there is no handler.
bool call_handler(const struct sigaction& old, int signal_number, siginfo_t* info,
                  void* context) noexcept {
  if ((old.sa_flags & SA_SIGINFO) != 0) {
    old.sa_sigaction(signal_number, info, context);
    return true;
  }
  if (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN) return false;
  old.sa_handler(signal_number);
  return true;
}

void set_default_action(int signal_number) noexcept {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(signal_number, &action, nullptr);
}

void chain(const struct sigaction& old, int signal_number, siginfo_t* info,
           void* context) noexcept {
  if (call_handler(old, signal_number, info, context)) return;
  const bool was_sent = info->si_code <= 0;  // by kill(2): nothing will fault again
  if (was_sent && old.sa_handler == SIG_IGN) return;
  // Ignoring a synchronous fault would repeat it for ever, so SIG_IGN counts as default, as in the
  // kernel. The access faults again at the same instruction and kills with its own address.
  set_default_action(signal_number);
  if (was_sent) raise(signal_number);
}

// A page that cannot be read back must not reach the program as data.
void deliver_sigbus(const siginfo_t& fault, void* context) noexcept {
  siginfo_t bus{};
  bus.si_signo = SIGBUS;
  bus.si_code = BUS_OBJERR;
  bus.si_addr = fault.si_addr;
  if (call_handler(g_old_bus, SIGBUS, &bus, context)) return;
  set_default_action(SIGBUS);
  raise(SIGBUS);  // blocked while a handler for SIGBUS runs: it comes when that returns
}

void on_signal(int signal_number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  auto result = FaultResult::not_ours;
  if (may_be_routed(*info)) {
    result = route_fault({static_cast<std::byte*>(info->si_addr),
                          fault_is_write(static_cast<const ucontext_t*>(context)), signal_number});
  }
  if (result == FaultResult::not_ours) {
    chain(signal_number == SIGBUS ? g_old_bus : g_old_segv, signal_number, info, context);
  } else if (result == FaultResult::lost) {
    deliver_sigbus(*info, context);
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
  Route* routes = g_routes.load();
  if (routes == nullptr) {
    routes = make_routes();
    g_routes.store(routes, std::memory_order_release);
    install_handlers();
  }
  for (std::size_t i = 0; i < kMaxRoutes; ++i) {
    Route& route = routes[i];
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
  Route* const routes = g_routes.load();
  for (std::size_t i = 0; routes != nullptr && i < kMaxRoutes; ++i) {
    Route& route = routes[i];
    if (route.target.load() != target) continue;
    route.end.store(0);
    route.begin.store(0);
    route.target.store(nullptr);
    while (route.inside.load() != 0) sched_yield();
    return;
  }
}

}  // namespace vellum::region
