// The tiers in the C++ interface of a store (vellum/store.hpp), over store/gc/tier/tiers.hpp and
// tier_policy.hpp.
#include <filesystem>
#include <vellum/store.hpp>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "region/api/store_impl.hpp"
#include "store/gc/tier/tier_policy.hpp"

namespace vellum {
namespace {

// Makes the path absolute, so that the caller's later working directory does not matter.
std::string full_path(const std::string& directory) {
  if (directory.empty()) fail(Errc::invalid_argument, "a tier's directory needs a name");
  return base::without_end_slashes(
      std::filesystem::absolute(directory).lexically_normal().string());
}

}  // namespace

std::vector<Tier> Store::tiers() const { return store::list_tiers(*impl_->core); }

void Store::add_archive(const std::string& directory) {
  store::add_tier(*impl_->core, format::TierKind::archive, full_path(directory), 0);
}

void Store::add_cache(const std::string& directory, std::uint64_t limit_bytes) {
  store::add_tier(*impl_->core, format::TierKind::cache, full_path(directory), limit_bytes);
}

void Store::remove_tier(const std::string& directory) {
  store::remove_tier(*impl_->core, full_path(directory));
}

void Store::limit_tier(const std::string& directory, std::uint64_t limit_bytes) {
  if (directory.empty()) {
    store::limit_home(*impl_->core, limit_bytes);
  } else {
    store::limit_cache(*impl_->core, full_path(directory), limit_bytes);
  }
}

TierReport Store::move_packs(const TierMove& move, const ProgressFn& progress) {
  return store::move_packs(*impl_->core, move, progress);
}

TierReport Store::apply_tiers(const ApplyTiersOptions& options, const ProgressFn& progress) {
  return store::apply_tiers(*impl_->core, options.dry_run, progress);
}

}  // namespace vellum
