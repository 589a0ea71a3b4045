#include "store/catalog/staging_name.hpp"

#include <fmt/format.h>

#include <random>
#include <string_view>

namespace vellum::store {

namespace {
constexpr std::string_view kAsidePrefix = "vellum-snapshot-";
constexpr std::size_t kAsideDigits = 16;
}  // namespace

std::string random_aside_name() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}", kAsidePrefix, random(), random());
}

bool is_aside_name(const std::string& name) noexcept {
  return name.size() == kAsidePrefix.size() + kAsideDigits && name.starts_with(kAsidePrefix) &&
         name.find_first_not_of("0123456789abcdef", kAsidePrefix.size()) == std::string::npos;
}

}  // namespace vellum::store
