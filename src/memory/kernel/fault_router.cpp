#include "memory/kernel/fault_router.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/memory/reserve.hpp"
#include "base/processor.h"
#include "base/threads/handler_wait.hpp"
#include "memory/kernel/fault_access.hpp"
#include "memory/kernel/guarded_copy.hpp"
#include "memory/kernel/handler_stack.hpp"

namespace vellum::region {
namespace {

struct Route {
  std::atomic<FaultTarget*> target{nullptr};
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<std::uint32_t> inside{0};  // threads between the lookup and the end of on_fault
};

constexpr std::size_t kMaxRoutes = 16384;
std::atomic<Route*> g_routes{nullptr};      // kMaxRoutes of them; all zero bytes is a free one
std::atomic<std::size_t> g_routes_used{0};  // high-water mark
std::mutex g_mutex;                         // add and remove only
struct sigaction g_old_bus, g_old_segv;

// A table that fork() wipes: a child's fault must not reach its copy of an engine, whose
// descriptors refer to the parent's memory.
Route* make_routes() {
  static base::Reservation& table = *new base::Reservation(kMaxRoutes * sizeof(Route));
  if (madvise(table.data(), table.size(), MADV_WIPEONFORK) != 0) {
    fail(Errc::unsupported, "this kernel cannot wipe memory on fork (MADV_WIPEONFORK)");
  }
  return reinterpret_cast<Route*>(table.data());
}

bool contains(const Route& route, std::uintptr_t at) noexcept {
  return at >= route.begin.load(std::memory_order_acquire) &&
         at < route.end.load(std::memory_order_acquire);
}

constexpr std::size_t kNoRoute = SIZE_MAX;

// The first route, from number `i` on, that contains the address.
std::size_t next_route(const void* address, std::size_t i) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const Route* const routes = g_routes.load(std::memory_order_acquire);
  const std::size_t used = g_routes_used.load(std::memory_order_acquire);
  for (; i < used; ++i)
    if (contains(routes[i], at)) return i;
  return kNoRoute;
}

FaultResult route_fault(const Fault& fault, std::size_t first) noexcept {
  Route* const routes = g_routes.load(std::memory_order_acquire);
  for (std::size_t i = first; i != kNoRoute; i = next_route(fault.address, i + 1)) {
    Route& route = routes[i];
    // Counting before loading the target pairs with remove_route(), which clears the target before
    // it loads the count.
    route.inside.fetch_add(1);
    FaultTarget* target = route.target.load();
    const auto result = target != nullptr ? target->on_fault(fault) : FaultResult::not_ours;
    route.inside.fetch_sub(1);
    if (result != FaultResult::not_ours) return result;
  }
  return FaultResult::not_ours;
}

// Whether the kernel raised the signal for an access that a region may serve: not for kill(2), a
// memory failure or an invalid address.
bool may_be_routed(const siginfo_t& info) noexcept {
  if (info.si_signo == SIGBUS) return info.si_code == BUS_ADRERR;
  return info.si_code == SEGV_MAPERR || info.si_code == SEGV_ACCERR;
}

// The mask with which the kernel would have called the handler: it may exit by longjmp(3), and then
// signals must not stay blocked. The kernel's set of signals is shorter than the C library's.
void set_mask_for(const struct sigaction& old, int signal_number, const void* context) noexcept {
  constexpr std::size_t kKernelsBytes = 8;
  sigset_t mask;
  sigemptyset(&mask);
  std::memcpy(&mask, &static_cast<const ucontext_t*>(context)->uc_sigmask, kKernelsBytes);
  sigorset(&mask, &mask, &old.sa_mask);
  if ((old.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, signal_number);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

// False: there is no handler.
bool call_handler(const struct sigaction& old, int signal_number, siginfo_t* info,
                  void* context) noexcept {
  const bool is_plain = (old.sa_flags & SA_SIGINFO) == 0;
  if (is_plain && (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN)) return false;
  set_mask_for(old, signal_number, context);
  if ((old.sa_flags & SA_SIGINFO) != 0) {
    old.sa_sigaction(signal_number, info, context);
    return true;
  }
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
  const bool was_sent = info->si_code <= 0;  // by kill(2): no access faults again
  if (was_sent && old.sa_handler == SIG_IGN) return;
  // Ignoring a synchronous fault would repeat it endlessly, so SIG_IGN counts as default, as in the
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
  raise(SIGBUS);  // blocked here: arrives when this handler returns
}

struct Routed {
  Fault fault;
  std::size_t first_route;
  const sigset_t* blocked_before;
  FaultResult result = FaultResult::not_ours;
};

// The thread's stack may have 2 KiB (a goroutine), 16 KiB (a small thread), or 8 KiB (an alternate
// stack, half of it the kernel's frame).
FaultResult route_with_room(const Fault& fault, std::size_t first_route,
                            const sigset_t& blocked_before) noexcept {
  Routed routed{fault, first_route, &blocked_before};
  call_on_handler_stack(
      [](void* given) {
        auto& all = *static_cast<Routed*>(given);
        const base::HandlerWait in_handler(*all.blocked_before);
        all.result = route_fault(all.fault, all.first_route);
      },
      &routed);
  return routed.result;
}

void handle(int signal_number, siginfo_t* info, void* context) noexcept {
  const int saved_errno = errno;
  auto result = FaultResult::not_ours;
  const std::size_t first_route = may_be_routed(*info) ? next_route(info->si_addr, 0) : kNoRoute;
  if (first_route != kNoRoute) {
    result = route_with_room({static_cast<std::byte*>(info->si_addr),
                              is_write_fault(info->si_addr, context), signal_number},
                             first_route, static_cast<const ucontext_t*>(context)->uc_sigmask);
  }
  if (result == FaultResult::not_ours) {
    if (may_be_routed(*info) && leave_guarded_copy(context)) return void(errno = saved_errno);
    chain(signal_number == SIGBUS ? g_old_bus : g_old_segv, signal_number, info, context);
  } else if (result == FaultResult::lost) {
    deliver_sigbus(*info, context);
  }
  errno = saved_errno;
}

}  // namespace

// A number precedes the installed handler. It marks the handler, for another copy of this code in
// the process, as one that passes on foreign faults.
constexpr std::uint64_t kHandlerNumber = 0x726c646e684c4c56;

#if defined(VELLUM_X86_64) || defined(VELLUM_ARM64)
extern "C" {
[[gnu::visibility("hidden")]] void vellum_handle_signal(int number, siginfo_t* info,
                                                        void* context) noexcept {
  handle(number, info, context);
}
[[gnu::visibility("hidden")]] void vellum_on_signal(int number, siginfo_t* info, void* context);
}
__asm__(
    ".pushsection .text\n"
    ".balign 16\n"
    ".quad 0x726c646e684c4c56\n"
    ".hidden vellum_on_signal\n"
    ".globl vellum_on_signal\n"
    ".type vellum_on_signal, @function\n"
    "vellum_on_signal:\n"
#if defined(VELLUM_X86_64)
    "  jmp vellum_handle_signal\n"
#else
    "  b vellum_handle_signal\n"
#endif
    ".size vellum_on_signal, .-vellum_on_signal\n"
    ".popsection\n");

namespace {

const auto on_signal = vellum_on_signal;

#else

namespace {

const auto on_signal = handle;

#endif

// Reads through the kernel, as the handler may be a page's first function.
bool is_a_copys(void (*handler)(int, siginfo_t*, void*)) noexcept {
  if (handler == on_signal) return true;
  std::uint64_t number = 0;
  const iovec to{&number, sizeof number};
  const iovec before{reinterpret_cast<std::byte*>(handler) - sizeof number, sizeof number};
  return process_vm_readv(getpid(), &to, 1, &before, 1, 0) == sizeof number &&
         number == kHandlerNumber;
}

void install_handlers() {
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  // While the handler runs on a stack of the library, the kernel treats the thread's alternate stack
  // as unused: a signal with SA_ONSTACK would overwrite this handler's frame there. All signals are
  // therefore blocked; long waits check for those that end the process
  // (base/threads/handler_wait.hpp).
  sigfillset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigaction(SIGBUS, &action, &g_old_bus);
  sigaction(SIGSEGV, &action, &g_old_segv);
}

}  // namespace

void keep_loaded() noexcept {
  Dl_info here;
  if (dladdr(reinterpret_cast<const void*>(&keep_loaded), &here) == 0) return;
  dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void add_route(std::byte* begin, std::byte* end, FaultTarget* target) {
  const std::lock_guard lock(g_mutex);
  Route* routes = g_routes.load();
  if (routes == nullptr) {
    routes = make_routes();
    make_handler_stacks();
    keep_loaded();
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
  fail(Errc::unsupported, "16,384 regions are open in this process: close some first");
}

bool handles(int signal_number) noexcept {
  struct sigaction now{};
  return sigaction(signal_number, nullptr, &now) == 0 && is_a_copys(now.sa_sigaction);
}

// Whether the other handler passes on foreign faults is unknown, hence a warning and no error.
void look_at_handlers() noexcept {
  static std::atomic<const void*> reported_bus{nullptr}, reported_segv{nullptr};
  for (const int number : {SIGBUS, SIGSEGV}) {
    auto& reported = number == SIGBUS ? reported_bus : reported_segv;
    struct sigaction now{};
    if (sigaction(number, nullptr, &now) != 0 || is_a_copys(now.sa_sigaction)) continue;
    const auto* const handler = reinterpret_cast<const void*>(now.sa_sigaction);
    if (reported.exchange(handler) == handler) continue;
    Dl_info where{};
    dladdr(handler, &where);
    std::fprintf(stderr,
                 "vellum: a handler for %s was installed after the region's (%s, at %p of %s): it "
                 "must call the previous handler for faults that are not its own, or "
                 "pages are not filled, and the program may crash\n",
                 number == SIGBUS ? "SIGBUS" : "SIGSEGV",
                 where.dli_sname != nullptr ? where.dli_sname : "a function without a name",
                 handler, where.dli_fname != nullptr ? where.dli_fname : "this program");
  }
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
