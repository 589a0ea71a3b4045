// This module has its own copy of the library; two_copies_test.cpp loads, uses and unloads it.
#include <vellum/store.hpp>

#include <cstdint>
#include <optional>

#define MODULE_FUNCTION extern "C" __attribute__((visibility("default")))

static std::optional<vellum::Region> region;

MODULE_FUNCTION bool begin(const char* store, const char* branch) {
  region.emplace(vellum::Store::open_or_create(store).open_or_create_region(branch, 1 << 20));
  return true;
}

// Adds one to each page's first word, and returns what that was.
MODULE_FUNCTION std::uint64_t add_one() {
  auto* const words = static_cast<std::uint64_t*>(region->data());
  const std::uint64_t before = words[0];
  for (std::size_t page = 0; page < (1u << 20) / 4096; ++page) ++words[page * 512];
  region->commit();
  return before;
}

MODULE_FUNCTION void end() { region.reset(); }
