#include "memory/statistics/process_page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "base/fail.hpp"
#include "base/size_limit.hpp"
#include "base/threads/per_process.hpp"

namespace vellum::region::statistics {
namespace {

// The counters start at zero for each region.
void clear(Slot& slot) noexcept {
  slot.version.fill(0);
  slot.store.fill(0);
  for (Counter* const counter :
       {&slot.resident_pages, &slot.spilled_pages, &slot.spill_written_bytes, &slot.address,
        &slot.region_bytes, &slot.backlog_bytes, &slot.commits, &slot.pages_dirty,
        &slot.pages_changed, &slot.bytes_written, &slot.commit_ns, &slot.flush_ns})
    counter->store(0, std::memory_order_relaxed);
  for (Stripe& stripe : slot.stripes) {
    for (Counter& faults : stripe.faults) faults.store(0, std::memory_order_relaxed);
    for (Counter* const counter :
         {&stripe.chunks_in, &stripe.chunks_out, &stripe.pages_opened, &stripe.pages_closed})
      counter->store(0, std::memory_order_relaxed);
  }
}

// Opened by its path: `vellum run` hides descriptors that the library opens by path from the
// program and its children. -1, and errno.
int open_page_file() noexcept {
  const int made = memfd_create(kFileName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return -1;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", made);
  const int opened = open(path, O_RDWR | O_CLOEXEC);
  const int error = errno;
  close(made);
  errno = error;
  return opened;
}

}  // namespace

std::shared_ptr<ProcessPage> ProcessPage::get() noexcept {
  static base::SharedInProcess<ProcessPage> pages;
  try {
    return pages.get([] { return std::shared_ptr<ProcessPage>(new ProcessPage); });
  } catch (const std::exception&) {
    return nullptr;
  }
}

ProcessPage::ProcessPage() : descriptor_(open_page_file()) {
  void* at = MAP_FAILED;
  // Sealed, so that no reader can free the memory of a counter.
  if (descriptor_ >= 0 && base::may_have_size(sizeof(Page)) &&
      ftruncate(descriptor_, sizeof(Page)) == 0 &&
      fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    if (descriptor_ >= 0) close(descriptor_);
    fail(Errc::out_of_memory, "no page for counters: {}", std::strerror(error));
  }
  madvise(at, sizeof(Page), MADV_DONTFORK);  // a child counts on a page of its own
  page_ = static_cast<Page*>(at);  // all zero, as a new file is: no slot is accessed before its use
  page_->process = static_cast<std::uint32_t>(getpid());
  page_->slot_bytes = sizeof(Slot);
  page_->slots = kSlots;
  page_->magic = kMagic;
}

ProcessPage::~ProcessPage() {
  munmap(page_, sizeof(Page));
  close(descriptor_);
}

Slot* ProcessPage::claim() noexcept {
  const std::lock_guard lock(mutex_);
  for (Slot& slot : page_->slot) {
    if (slot.state.load(std::memory_order_relaxed) != Slot::free) continue;
    slot.state.store(Slot::claimed, std::memory_order_release);
    slot.serial.fetch_add(1, std::memory_order_release);
    clear(slot);
    return &slot;
  }
  return nullptr;
}

void ProcessPage::publish(Slot& slot) noexcept {
  assert(slot.state.load(std::memory_order_relaxed) != Slot::free);
  slot.state.store(Slot::in_use, std::memory_order_release);
}

void ProcessPage::release(Slot& slot) noexcept {
  const std::lock_guard lock(mutex_);
  assert(slot.state.load(std::memory_order_relaxed) != Slot::free);
  slot.state.store(Slot::free, std::memory_order_release);
}

}  // namespace vellum::region::statistics
