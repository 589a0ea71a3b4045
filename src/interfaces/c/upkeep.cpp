// The maintenance of a store: space, checks, repair, retention. See vellum.h.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>
#include <vellum/retention.hpp>

#include "base/fail.hpp"
#include "interfaces/c/boundary.hpp"
#include "region/api/snapshots_of.hpp"

using vellum::Errc;
using vellum::Store;
using namespace vellum::capi;

namespace {

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> out;
  for (const std::string& text : texts) out.push_back(text.c_str());
  return out;
}

vellum::RetentionPolicy rules_of(const vellum_retention_policy& p) {
  return {p.keep_last, p.keep_daily, p.keep_weekly, p.keep_monthly, p.keep_yearly};
}

void visit_all(const std::vector<vellum::RetentionDecision>& decisions, vellum_retention_fn visit,
               void* context) {
  for (const auto& decision : decisions) {
    const std::vector<const char*> rules = pointers_to(decision.kept_by);
    const VersionForC version(decision.version);
    if (visit(&version.info, rules.data(), rules.size(), context) != 0) break;
  }
}

vellum_store_stat to_c(const vellum::StoreStat& stat) {
  vellum_store_stat values = VELLUM_STORE_STAT_INIT;
  values.stored_bytes = stat.stored_bytes;
  values.pack_bytes = stat.pack_bytes;
  values.journal_bytes = stat.journal_bytes;
  values.ref_bytes = stat.ref_bytes;
  values.packs = stat.packs;
  values.snapshots = stat.snapshots;
  values.branches = stat.branches;
  values.full_copy_bytes = stat.full_copy_bytes;
  values.pack_needed_bytes = stat.pack_needed_bytes;
  values.pack_freeable_bytes = stat.pack_freeable_bytes;
  values.archive_packs = stat.archive_packs;
  values.archive_bytes = stat.archive_bytes;
  values.cache_copies = stat.cache_copies;
  values.cache_bytes = stat.cache_bytes;
  return values;
}

vellum_gc_report to_c(const vellum::GcReport& report) {
  vellum_gc_report values = VELLUM_GC_REPORT_INIT;
  values.snapshots = report.snapshots;
  values.branches = report.branches;
  values.open_versions = report.open_versions;
  values.packs = report.packs;
  values.packs_removed = report.packs_removed;
  values.packs_punched = report.packs_punched;
  values.copies_removed = report.copies_removed;
  values.pack_bytes = report.pack_bytes;
  values.needed_bytes = report.needed_bytes;
  values.freeable_bytes = report.freeable_bytes;
  values.freed_bytes = report.freed_bytes;
  values.holes_supported = report.holes_supported ? 1 : 0;
  values.packs_recompressed = report.recompressed.packs;
  values.recompressed_from_bytes = report.recompressed.bytes_before;
  values.recompressed_to_bytes = report.recompressed.bytes_after;
  values.packs_in_use = report.recompressed.packs_in_use;
  return values;
}

std::string describe(const vellum::Damage& damage, std::size_t damages) {
  std::string text = damage.object + ": " + damage.reason;
  if (!damage.versions.empty()) {
    text += " (needed by " + damage.versions.front() +
            (damage.versions.size() > 1 ? " and others)" : ")");
  }
  if (damages > 1) text += "; damages in all: " + std::to_string(damages);
  return text;
}

void show(const vellum::Damage& damage, vellum_damage_fn visit, void* context) {
  const std::vector<const char*> versions = pointers_to(damage.versions);
  const vellum_damage given{sizeof given, damage.object.c_str(), damage.reason.c_str(),
                            versions.data(), versions.size()};
  visit(&given, context);
}

void show(const vellum::RepairReport& report, vellum_repair_fn visit, void* context) {
  for (const auto& saved : report.saved) {
    const vellum_repaired_version given{
        sizeof given,         saved.name.c_str(),      nullptr,
        saved.origin.c_str(), saved.is_branch ? 1 : 0, saved.exact ? 1 : 0,
        saved.sequence,       saved.region_bytes};
    visit(&given, context);
  }
  for (const auto& lost : report.lost) {
    const vellum_repaired_version given{
        sizeof given, lost.name.c_str(), lost.reason.c_str(), "", 0, 0, 0, 0};
    visit(&given, context);
  }
}

vellum_repair_report to_c(const vellum::RepairReport& report) {
  const auto exact = std::count_if(report.saved.begin(), report.saved.end(),
                                   [](const auto& saved) { return saved.exact; });
  return {sizeof(vellum_repair_report), report.saved.size(), static_cast<std::uint64_t>(exact),
          report.lost.size(), report.pages_written};
}

}  // namespace

extern "C" {

int vellum_stat(const vellum_store* store, vellum_store_stat* stat, vellum_version_space_fn visit,
                void* context) {
  return guarded([&] {
    require(stat, "stat");
    require_struct(stat);
    const vellum::StoreStat found = store_of(store).stat();
    fill_struct(stat, to_c(found));
    if (visit == nullptr) return;
    for (const auto& v : found.versions) {
      const vellum_version_space space{sizeof space,   v.name.c_str(),  v.is_branch ? 1 : 0,
                                       v.region_bytes, v.nonzero_bytes, v.unique_bytes,
                                       v.shared_bytes};
      visit(&space, context);
    }
  });
}

int vellum_gc(vellum_store* store, const vellum_gc_options* options, vellum_gc_report* report,
              vellum_progress_fn progress, void* context) {
  return guarded([&] {
    require_struct(report);
    const vellum_gc_options how = options_or_zero(options);
    fill_struct(report,
                to_c(store_of(store).collect_garbage({how.dry_run != 0, how.recompress_level},
                                                     progress_of(progress, context))));
  });
}

int vellum_verify(const vellum_store* store, const vellum_verify_options* options,
                  vellum_verify_report* report, vellum_damage_fn visit, vellum_progress_fn progress,
                  void* context) {
  return guarded([&] {
    require_struct(report);
    const bool read_data = options_or_zero(options).read_data != 0;
    const auto found = store_of(store).verify({read_data}, progress_of(progress, context));
    const vellum_verify_report values{sizeof values, found.versions,   found.packs,
                                      found.records, found.bytes_read, found.damages.size()};
    fill_struct(report, values);
    if (found.damages.empty()) return;
    if (visit != nullptr) {
      for (const auto& damage : found.damages) show(damage, visit, context);
    }
    fail(Errc::corrupted, "{}", describe(found.damages.front(), found.damages.size()));
  });
}

int vellum_repair(const char* path, const char* destination, const vellum_repair_options* options,
                  vellum_repair_report* report, vellum_repair_fn visit, vellum_progress_fn progress,
                  void* context) {
  return guarded([&] {
    require(path, "path");
    require_struct(report);
    const vellum_repair_options how = options_or_zero(options);
    if (how.dry_run == 0) require(destination, "destination");
    const auto found =
        Store::repair(path, or_empty(destination), {how.dry_run != 0, how.include_removed != 0},
                      progress_of(progress, context));
    fill_struct(report, to_c(found));
    if (visit != nullptr) show(found, visit, context);
    if (found.lost.empty()) return;
    const auto& first = found.lost.front();
    fail(Errc::corrupted, "{}: lost {}: {}; lost in all: {}", path, first.name, first.reason,
         found.lost.size());
  });
}

int vellum_decide_retention(const vellum_store* store, const vellum_retention_policy* policy,
                            vellum_retention_fn visit, void* context) {
  return guarded([&] {
    require(policy, "policy");
    require(visit, "visit");
    const vellum_retention_policy p = options_or_zero(policy);
    visit_all(
        vellum::decide_retention(vellum::api::snapshots_of(store_of(store).versions(),
                                                           or_empty(p.branch), or_empty(p.prefix)),
                                 rules_of(p)),
        visit, context);
  });
}

int vellum_forget(vellum_store* store, const vellum_retention_policy* policy,
                  vellum_retention_fn visit, void* context) {
  return guarded([&] {
    require(policy, "policy");
    const vellum_retention_policy p = options_or_zero(policy);
    const auto decisions =
        vellum::forget(store_of(store), rules_of(p), {or_empty(p.branch), or_empty(p.prefix)});
    if (visit != nullptr) visit_all(decisions, visit, context);
  });
}

int vellum_resolve(const vellum_store* store, const char* version, char* name, size_t name_bytes) {
  return guarded([&] {
    require(version, "the version");
    require(name, "name");
    const std::string meant = store_of(store).resolve(version);
    if (meant.size() >= name_bytes) {
      fail(Errc::invalid_argument, "{} bytes are too few for the name '{}'", name_bytes, meant);
    }
    meant.copy(name, meant.size());
    name[meant.size()] = '\0';
  });
}

}  // extern "C"
