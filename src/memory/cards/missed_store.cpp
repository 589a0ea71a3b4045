#include "memory/cards/tracked_range.hpp"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::cards {

bool verify_by_environment() {
  const char* value = std::getenv("VELLUM_VERIFY_CARDS");
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

void throw_missed_store(const std::string& what, const std::byte* data, MarkedPage missed) {
  const std::uint64_t offset = std::uint64_t{missed.page} * kPageBytes +
                               static_cast<unsigned>(std::countr_zero(missed.cards)) * kCardBytes;
  char address[32];
  std::snprintf(address, sizeof address, "%p", static_cast<const void*>(data + offset));
  fail(Errc::corrupted,
       "{}: a store to page {} (offset {}, address {}) was not marked: code that vellum-clang has "
       "not compiled has stored there, or vellum-clang has missed a store",
       what, missed.page, offset, address);
}

}  // namespace vellum::cards
