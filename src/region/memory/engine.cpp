// The choice of a region's engine.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "region/kernel/kernel.hpp"
#include "region/memory/mapped_memory.hpp"
#include "region/memory/memory.hpp"
#include "region/memory/sigsegv_memory.hpp"
#include "region/memory/uffd_memory.hpp"

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

}  // namespace

Engine choose_engine(Engine wanted, bool writable) {
  if (wanted == Engine::automatic) wanted = from_environment();
  // Old versions have no image.
  if (wanted == Engine::mapped && !writable) wanted = Engine::automatic;
  if (wanted == Engine::sigsegv || wanted == Engine::mapped) return wanted;
  if (uffd_engine_works()) return Engine::uffd;
  if (wanted == Engine::uffd) {
    fail(Errc::unsupported,
         "engine uffd needs userfaultfd with asynchronous write protection (Linux 6.7 or later), "
         "permitted to this process");
  }
  static std::once_flag noticed;
  std::call_once(noticed, [] {
    std::fputs(
        "vellum: userfaultfd with asynchronous write protection is not available: using engine "
        "sigsegv\n",
        stderr);
  });
  return Engine::sigsegv;
}

std::unique_ptr<RegionMemory> RegionMemory::create(Engine engine, const MemoryOptions& options,
                                                   std::shared_ptr<store::PageSource> source) {
  std::unique_ptr<RegionMemory> memory;
  switch (choose_engine(engine, options.writable)) {
    case Engine::mapped:
      memory = std::make_unique<MappedMemory>(options, std::move(source));
      break;
    case Engine::uffd:
      memory = std::make_unique<UffdMemory>(options, std::move(source));
      break;
    default:
      memory = std::make_unique<SigsegvMemory>(options, std::move(source));
  }
  memory->start();
  memory->start_paging();
  return memory;
}

}  // namespace region
}  // namespace vellum
