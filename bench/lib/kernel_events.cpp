#include "lib/kernel_events.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace bench {
namespace {

// A counter of this thread. `filter` is tracefs's; empty: every event.
int open_counter(const std::string& event, const char* filter) {
  const std::string path = "/sys/kernel/tracing/events/" + event + "/id";
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof attributes;
  if (!(std::ifstream(path) >> attributes.config)) throw std::runtime_error("no event: " + path);
  const auto fd =
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) throw std::runtime_error("perf_event_open refuses to count " + event);
  if (*filter != '\0' && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) != 0) {
    close(fd);
    throw std::runtime_error("no filter for " + event);
  }
  return fd;
}

std::uint64_t value_of(int counter) {
  std::uint64_t value = 0;
  if (read(counter, &value, sizeof value) != sizeof value) {
    throw std::runtime_error("cannot read an event's counter");
  }
  return value;
}

}  // namespace

KernelEvents::KernelEvents() {
  // TLB_REMOTE_SEND_IPI of enum tlb_flush_reason in the kernel's mm_types.h.
  counters_[0] = open_counter("tlb/tlb_flush", "reason == 4");
  try {
    counters_[1] = open_counter("lock/contention_begin", "");
  } catch (...) {
    close(counters_[0]);
    throw;
  }
}

KernelEvents::~KernelEvents() {
  for (const int counter : counters_) close(counter);
}

KernelEventCounts KernelEvents::counts() const {
  return {value_of(counters_[0]), value_of(counters_[1])};
}

}  // namespace bench
