#include "store/catalog/staging_name.hpp"

#include <fmt/format.h>

#include <random>
#include <string_view>

namespace vellum::store {

namespace {
constexpr std::string_view kStagingPrefix = "vellum-snapshot-";
constexpr std::size_t kStagingDigits = 16;
}  // namespace

std::string random_staging_name() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}", kStagingPrefix, random(), random());
}

bool is_staging_name(const std::string& name) noexcept {
  return name.size() == kStagingPrefix.size() + kStagingDigits &&
         name.starts_with(kStagingPrefix) &&
         name.find_first_not_of("0123456789abcdef", kStagingPrefix.size()) == std::string::npos;
}

}  // namespace vellum::store
