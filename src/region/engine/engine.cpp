#include "region/engine/engine.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vellum/error.hpp>

#include "region/engine/file_memory.hpp"
#include "region/engine/sigsegv_memory.hpp"
#include "region/engine/uffd_memory.hpp"
#include "region/kernel/kernel.hpp"

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

std::unique_ptr<RegionMemory> make_region_memory(Engine engine, const MemoryOptions& options,
                                                 std::shared_ptr<store::PageSource> source) {
  // A started memory has threads and faults that reach it: its destructor ends them.
  const auto started = [](auto memory) -> std::unique_ptr<RegionMemory> {
    memory->start();
    return memory;
  };
  switch (choose_engine(engine, options.writable)) {
    case Engine::mapped:
      return started(std::make_unique<FileMemory>(options, std::move(source)));
    case Engine::uffd:
      return started(std::make_unique<UffdMemory>(options, std::move(source)));
    default:
      return started(std::make_unique<SigsegvMemory>(options, std::move(source)));
  }
}

}  // namespace region
}  // namespace vellum
