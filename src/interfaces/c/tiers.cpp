// Directories with packs of a store. See vellum.h.
#include "interfaces/c/boundary.hpp"

using namespace vellum::capi;

namespace {

// Both interfaces use the same numbers.
static_assert(VELLUM_TIER_HOME == static_cast<int>(vellum::Tier::Kind::home));
static_assert(VELLUM_TIER_ARCHIVE == static_cast<int>(vellum::Tier::Kind::archive));
static_assert(VELLUM_TIER_CACHE == static_cast<int>(vellum::Tier::Kind::cache));

vellum_tier_report to_c(const vellum::TierReport& r) {
  return {sizeof(vellum_tier_report),
          r.packs_moved,
          r.moved_bytes,
          r.packs_in_use,
          r.copies_made,
          r.copied_bytes,
          r.copies_removed,
          r.home_bytes};
}

vellum::TierMove to_cpp(const vellum_tier_move& given) {
  vellum::TierMove move;
  move.to_archive = given.to_home == 0;
  if (given.has_home_bytes != 0) move.home_bytes = given.home_bytes;
  move.keep_last = given.keep_last;
  move.dry_run = given.dry_run != 0;
  return move;
}

}  // namespace

extern "C" {

int vellum_tiers(const vellum_store* store, vellum_tier_fn visit, void* context) {
  return guarded([&] {
    require(visit, "visit");
    for (const vellum::Tier& tier : store_of(store).tiers()) {
      const vellum_tier given{sizeof given,
                              static_cast<int>(tier.kind),
                              tier.directory.c_str(),
                              tier.present ? 1 : 0,
                              tier.writable ? 1 : 0,
                              tier.packs,
                              tier.bytes,
                              tier.limit_bytes};
      visit(&given, context);
    }
  });
}

int vellum_add_archive(vellum_store* store, const char* directory) {
  return guarded([&] {
    require(directory, "directory");
    store_of(store).add_archive(directory);
  });
}

int vellum_add_cache(vellum_store* store, const char* directory, uint64_t limit_bytes) {
  return guarded([&] {
    require(directory, "directory");
    store_of(store).add_cache(directory, limit_bytes);
  });
}

int vellum_remove_tier(vellum_store* store, const char* directory) {
  return guarded([&] {
    require(directory, "directory");
    store_of(store).remove_tier(directory);
  });
}

int vellum_limit_tier(vellum_store* store, const char* directory, uint64_t limit_bytes) {
  return guarded([&] {
    require(directory, "directory");
    store_of(store).limit_tier(directory, limit_bytes);
  });
}

int vellum_move_packs(vellum_store* store, const vellum_tier_move* move, vellum_tier_report* report,
                      vellum_progress_fn progress, void* context) {
  return guarded([&] {
    require(move, "move");
    require_struct(report);
    fill_struct(report, to_c(store_of(store).move_packs(to_cpp(options_or_zero(move)),
                                                        progress_of(progress, context))));
  });
}

int vellum_apply_tiers(vellum_store* store, const vellum_apply_tiers_options* options,
                       vellum_tier_report* report, vellum_progress_fn progress, void* context) {
  return guarded([&] {
    require_struct(report);
    const bool dry_run = options_or_zero(options).dry_run != 0;
    fill_struct(report,
                to_c(store_of(store).apply_tiers({dry_run}, progress_of(progress, context))));
  });
}

}  // extern "C"
