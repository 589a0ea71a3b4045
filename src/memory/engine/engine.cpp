#include "memory/engine/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "memory/engine/file_memory.hpp"
#include "memory/engine/sigsegv_memory.hpp"
#include "memory/engine/uffd_memory.hpp"
#include "memory/kernel/support.hpp"
#include "memory/options.hpp"

namespace vellum {

const char* engine_name(Engine engine) noexcept {
  switch (engine) {
    case Engine::automatic:
      return "automatic";
    case Engine::uffd:
      return "uffd";
    case Engine::sigsegv:
      return "sigsegv";
    case Engine::mapped:
      return "mapped";
  }
  return "unknown";
}

namespace region {
namespace {

Engine from_environment() {
  const char* value = std::getenv("VELLUM_ENGINE");
  if (value == nullptr || *value == '\0' || std::string(value) == "automatic")
    return Engine::automatic;
  if (std::string(value) == "uffd") return Engine::uffd;
  if (std::string(value) == "sigsegv") return Engine::sigsegv;
  if (std::string(value) == "mapped") return Engine::mapped;
  fail(Errc::invalid_argument,
       "VELLUM_ENGINE is '{}': it must be automatic, uffd, sigsegv or mapped", value);
}

// Once, and only where the kernel has no better choice.
void report_choice(const KernelSupport& support) {
  if (support.tracking == Tracking::asynchronous) return;
  static std::once_flag noticed;
  std::call_once(noticed, [&support] {
    if (support.tracking == Tracking::none) {
      std::fprintf(stderr, "vellum: using engine sigsegv: %s\n", why_no_uffd(support).c_str());
    } else {
      std::fprintf(stderr, "vellum: using engine uffd with synchronous write protection: %s\n",
                   why_synchronous(support).c_str());
    }
  });
}

}  // namespace

Engine choose_engine(Engine wanted, bool writable) {
  if (wanted == Engine::automatic) wanted = from_environment();
  // Versions have no image.
  if (wanted == Engine::mapped && !writable) wanted = Engine::automatic;
  if (wanted == Engine::sigsegv || wanted == Engine::mapped) return wanted;
  const KernelSupport support = kernel_support();
  const bool works = support.tracking != Tracking::none;
  if (wanted == Engine::uffd && !works) {
    fail(Errc::unsupported,
         "engine uffd needs userfaultfd with write protection of shared memory (Linux 5.19 or "
         "later), permitted to this process: {}",
         why_no_uffd(support));
  }
  // A reader loses little by another engine or tracker.
  if (wanted == Engine::automatic && writable) report_choice(support);
  return works ? Engine::uffd : Engine::sigsegv;
}

namespace {

// A started memory is used by threads and faults: its destructor ends that.
template <typename Memory>
std::unique_ptr<RegionMemory> make(MemoryOptions options,
                                   const std::shared_ptr<store::PageSource>& source) {
  for (;;) {
    std::unique_ptr<Memory> memory;
    try {
      memory = std::make_unique<Memory>(options, source);
    } catch (const Error& e) {
      const std::uint64_t least = options.least_capacity_bytes;
      if (e.code() != Errc::out_of_memory || least == 0 || options.capacity_bytes <= least) throw;
      options.capacity_bytes =
          std::max(least, base::round_up(options.capacity_bytes / 4, kTableBytes));
      continue;
    }
    memory->start();
    return memory;
  }
}

}  // namespace

std::unique_ptr<RegionMemory> make_region_memory(Engine engine, const MemoryOptions& options,
                                                 const std::shared_ptr<store::PageSource>& source) {
  switch (choose_engine(engine, options.writable)) {
    case Engine::mapped:
      return make<FileMemory>(options, source);
    case Engine::uffd:
      return make<UffdMemory>(options, source);
    default:
      return make<SigsegvMemory>(options, source);
  }
}

}  // namespace region
}  // namespace vellum
