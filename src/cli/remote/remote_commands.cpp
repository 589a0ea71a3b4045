#include "cli/remote/remote_commands.hpp"

#include <optional>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "cli/remote/remote_by_url.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "remote/holds.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/repair_remote.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/upkeep.hpp"

namespace vellum::cli {
namespace {

Json damage_json(const remote::RemoteDamage& damage) {
  return Json{{"object", damage.object}, {"reason", damage.reason}, {"versions", damage.versions}};
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

// Of each damage, the versions that a store could mend; none: no store is given.
using Mendable = std::optional<std::vector<std::vector<std::string>>>;

// Null: none is given.
std::shared_ptr<store::StoreDirectory> open_to_mend_with(const RemoteByUrl& place,
                                                         const std::string& from) {
  if (from.empty()) return nullptr;
  auto store = remote::open_store_with_remotes(base::posix_fs(), from, place.remote().seal().keys);
  if (store->superblock().store_id != place.superblock().store_id) {
    fail(Errc::invalid_argument, "{}: the remote has the versions of another store than {}",
         place.remote().objects().url(), store->path());
  }
  return store;
}

Mendable find_mendable(const RemoteByUrl& place, const std::vector<remote::RemoteDamage>& damages,
                       const store::StoreDirectory* store) {
  if (store == nullptr) return std::nullopt;
  const remote::Head head = place.remote().newest_head().head;
  std::vector<std::vector<std::string>> out;
  for (const remote::RemoteDamage& damage : damages) {
    out.push_back(remote::versions_to_mend_with(*store, head, damage));
  }
  return out;
}

void print_report(Context& context, const remote::RemoteVerifyReport& report,
                  const Mendable& mendable, const std::string& from) {
  if (context.quiet) return;
  for (std::size_t i = 0; i < report.damages.size(); ++i) {
    const remote::RemoteDamage& damage = report.damages[i];
    context.out.print_text("corrupted  {}: {}\n", printable(damage.object),
                           printable(damage.reason));
    if (damage.versions.empty()) continue;  // a hold
    context.out.print_text("  affects  {}\n", listed(damage.versions));
    if (!mendable.has_value()) continue;
    const std::vector<std::string>& names = mendable->at(i);
    context.out.print_text("  {}  {}\n", printable(from),
                           names.empty() ? "has none of them" : "has " + listed(names));
  }
  context.out.print_text("checked {}, {}, {}; read {}\n", counted(report.versions, "version"),
                         counted(report.pieces, "piece"), counted(report.records, "record"),
                         human_bytes(report.bytes_read));
}

}  // namespace

std::vector<VersionInfo> list_remote(const std::string& url) {
  const auto objects = remote::open_object_store(base::posix_fs(), url);
  return versions_of(remote::newest_head_of(*objects).head);
}

int stat_remote(Context& context, const std::string& url) {
  const RemoteByUrl place(url);
  const remote::Head head = place.remote().newest_head().head;
  const remote::RemoteSpace space = remote::space_of_remote(place.remote());
  std::uint64_t branches = 0;
  for (const remote::RemoteVersion& name : head.versions) branches += name.is_branch ? 1 : 0;
  const std::uint64_t snapshots = head.versions.size() - branches;
  Json holds = Json::array();
  std::string held;
  for (const remote::Hold& hold : space.holds) {
    holds.push_back(Json{{"hold", remote::hold_name(hold.id)},
                         {"place", hold.place},
                         {"pulled", utc_time(base::time_point_of(hold.time_ns))},
                         {"pieces", hold.pieces.size()}});
    held += fmt::format("hold {}: a lazy clone at {} needs {}\n", remote::hold_name(hold.id),
                        printable(hold.place), counted(hold.pieces.size(), "piece"));
  }
  context.report(Json{{"url", url},
                      {"snapshots", snapshots},
                      {"branches", branches},
                      {"objects", space.objects},
                      {"object_bytes", space.object_bytes},
                      {"needed_objects", space.needed_objects},
                      {"needed_bytes", space.needed_bytes},
                      {"heads", space.heads},
                      {"generation", space.generation},
                      {"holds", std::move(holds)}},
                 fmt::format("{} and {} in {} of {}; no version needs {} of it",
                             counted(snapshots, "snapshot"),
                             branches == 1 ? "1 branch" : fmt::format("{} branches", branches),
                             human_bytes(space.object_bytes), counted(space.objects, "object"),
                             human_bytes(space.object_bytes - space.needed_bytes)));
  if (!context.json && !context.quiet) context.out.print_text("{}", held);
  return kExitOk;
}

int verify_remote(Context& context, const std::string& url, bool read_data,
                  const std::string& from) {
  const RemoteByUrl place(url);
  const auto store = open_to_mend_with(place, from);
  ProgressMeter meter("verify", context.progress_wanted());
  const auto report = remote::verify_remote(place.remote(), read_data, meter.callback());
  const Mendable mendable = find_mendable(place, report.damages, store.get());
  Json damages = Json::array();
  std::set<std::string> hurt;
  for (const remote::RemoteDamage& damage : report.damages) {
    Json one = damage_json(damage);
    if (mendable.has_value()) one["from_has"] = mendable->at(damages.size());
    damages.push_back(std::move(one));
    hurt.insert(damage.versions.begin(), damage.versions.end());
  }
  const Json object{{"url", url},
                    {"ok", report.damages.empty()},
                    {"read_data", read_data},
                    {"versions", report.versions},
                    {"pieces", report.pieces},
                    {"records", report.records},
                    {"bytes_read", report.bytes_read},
                    {"damages", std::move(damages)}};
  if (!context.json) {
    print_report(context, report, mendable, from);
  } else if (report.damages.empty()) {
    context.out.print_json(object);
  } else {
    context.begin_object(object);
  }
  if (!report.damages.empty()) {
    fail(Errc::corrupted,
         "{}: {}, {} affected (`vellum repair {} --from STORE` mends what a store has)", url,
         counted(report.damages.size(), "corrupted object"), counted(hurt.size(), "version"), url);
  }
  return kExitOk;
}

namespace {

// What a deletion leaves where objects are locked.
std::string lock_sentence(const remote::RemoteGcReport& report, bool dry_run) {
  if (report.lock.count() == 0) return "";
  const std::string freed = fmt::format("{} of {}", counted(report.old_versions_removed, "version"),
                                        human_bytes(report.old_bytes_removed));
  if (dry_run) return fmt::format("; would free at most {} whose locks are over", freed);
  return fmt::format("; extended {}; freed {} whose locks are over",
                     counted(report.locks_extended, "lock"), freed);
}

}  // namespace

int gc_remote(Context& context, const std::string& url, bool dry_run) {
  const RemoteByUrl place(url);
  ProgressMeter meter("gc", context.progress_wanted());
  const auto report = remote::collect_remote(place.remote(), dry_run, meter.callback());
  warn(report.warnings);
  context.report(
      Json{{"url", url},
           {"dry_run", dry_run},
           {"objects_removed", report.objects_removed},
           {"bytes_removed", report.bytes_removed},
           {"heads_removed", report.heads_removed},
           {"objects_left", report.objects_left},
           {"bytes_left", report.bytes_left},
           {"lock_s", report.lock.count()},
           {"locks_extended", report.locks_extended},
           {"old_versions_removed", report.old_versions_removed},
           {"old_bytes_removed", report.old_bytes_removed},
           {"damaged", report.damaged}},
      fmt::format("{} {} of {}; {} of {} are left", dry_run ? "would remove" : "removed",
                  counted(report.objects_removed, "object"), human_bytes(report.bytes_removed),
                  counted(report.objects_left, "object"), human_bytes(report.bytes_left)) +
          lock_sentence(report, dry_run));
  if (context.json || context.quiet) return kExitOk;
  for (const std::string& branch : report.damaged) {
    context.out.print_text(
        "branch '{}' lacks pieces, which were lost or damaged: `vellum repair {} --from STORE` "
        "mends what a store has\n",
        branch, url);
  }
  return kExitOk;
}

int repair_remote(Context& context, const std::string& url, const std::string& from) {
  const auto store = remote::open_store_with_remotes(base::posix_fs(), from);
  ProgressMeter meter("repair", context.progress_wanted());
  const auto report = remote::repair_remote(*store, url, meter.callback());
  warn(report.warnings);
  Json left = Json::array();
  for (const remote::RemoteDamage& damage : report.left) left.push_back(damage_json(damage));
  const std::string sentence =
      fmt::format("{}; sent {} ({}) from {}", counted(report.found.size(), "corrupted object"),
                  counted(report.objects_uploaded, "object"), human_bytes(report.bytes_uploaded),
                  store->path());
  context.report(Json{{"url", url},
                      {"from", store->path()},
                      {"damages", report.found.size()},
                      {"objects_uploaded", report.objects_uploaded},
                      {"bytes_uploaded", report.bytes_uploaded},
                      {"left", std::move(left)}},
                 sentence);
  if (report.left.empty()) return kExitOk;
  const remote::RemoteDamage& first = report.left.front();
  if (first.versions.empty()) {  // a hold, which no store has
    fail(Errc::corrupted, "{}: {} left, first {}", url,
         counted(report.left.size(), "corrupted object"), first.reason);
  }
  fail(Errc::corrupted, "{}: {} left, first {}, which {} needs and {} does not have", url,
       counted(report.left.size(), "corrupted object"), first.object, listed(first.versions),
       store->path());
}

int forget_hold_at_remote(Context& context, const std::string& url, const std::string& hold) {
  const RemoteByUrl place(url);
  remote::forget_hold(place.remote(), hold);
  context.report(Json{{"url", url}, {"hold", hold}},
                 fmt::format("removed hold {}: gc removes the objects that only it needed", hold));
  return kExitOk;
}

namespace {

// Of the right kind, if they exist.
void require_kind(const RemoteByUrl& place, const std::set<std::string>& names, bool branches) {
  const remote::Head head = place.remote().newest_head().head;
  for (const std::string& name : names) {
    const remote::RemoteVersion* found = head.find(name);
    if (found != nullptr && found->is_branch != branches) {
      fail(Errc::invalid_argument,
           "'{}' is a {} at {}: rm --branch removes branches, rm without it snapshots", name,
           found->is_branch ? "branch" : "snapshot", place.remote().objects().url());
    }
  }
}

}  // namespace

void remove_at_remote(const RemoteByUrl& place, const std::set<std::string>& names, bool branches) {
  if (names.empty()) return;
  require_kind(place, names, branches);
  remote::forget_names(place.remote(), {names.begin(), names.end()});
}

remote::RemoteFreeable freeable_at_remote(const RemoteByUrl& place,
                                          const std::set<std::string>& names, bool branches) {
  require_kind(place, names, branches);
  return remote::freeable_without(place.remote(), {names.begin(), names.end()});
}

}  // namespace vellum::cli
