#include "store/branch/kept_name.hpp"

#include <fmt/format.h>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "store/catalog/names.hpp"

namespace vellum::store {
namespace {

constexpr std::size_t kHalfOfDigits = 8;

// The names that may be kept for a branch begin like this one, without the last half of its digits.
std::string kept_prefix(std::uint64_t branch_id) {
  const std::string any = random_staging_name();
  return any.substr(0, any.size() - 2 * kHalfOfDigits) +
         fmt::format("{:08x}", branch_id & UINT32_MAX);
}

}  // namespace

std::string kept_name(const format::Version& version) {
  const base::Sha256 hash = base::sha256(format::encode_version(version));
  return kept_prefix(version.branch_id) + base::hex(std::span(hash).first(kHalfOfDigits / 2));
}

std::vector<std::string> kept_names(const StoreDirectory& store, std::uint64_t branch_id) {
  const std::string prefix = kept_prefix(branch_id);
  std::vector<std::string> out;
  for (std::string& name : store.branch_names()) {
    if (is_staging_name(name) && name.starts_with(prefix)) out.push_back(std::move(name));
  }
  return out;
}

}  // namespace vellum::store
