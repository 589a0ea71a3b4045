// Versions that are sent to a remote and fetched from it. See vellum.h.
#include <algorithm>
#include <chrono>

#include "interfaces/c/boundary.hpp"

using namespace vellum::capi;

namespace {

std::vector<std::string> names_of(const char* const* names) {
  std::vector<std::string> out;
  if (names == nullptr) return out;
  for (; *names != nullptr; ++names) out.emplace_back(*names);
  if (out.empty()) throw vellum::Error(vellum::Errc::invalid_argument, "no version is named");
  return out;
}

vellum_moved_version to_c(const vellum::PushedVersion& v) {
  return {sizeof(vellum_moved_version),
          v.name.c_str(),
          v.is_branch ? 1 : 0,
          v.was_there ? 1 : 0,
          0,
          v.epoch};
}

vellum_moved_version to_c(const vellum::PulledVersion& v) {
  return {sizeof(vellum_moved_version), v.name.c_str(),     v.is_branch ? 1 : 0,
          v.was_there ? 1 : 0,          v.is_ahead ? 1 : 0, 0};
}

template <typename Versions>
void visit_all(const Versions& versions, vellum_moved_fn visit, void* context) {
  if (visit == nullptr) return;
  for (const auto& version : versions) {
    const vellum_moved_version given = to_c(version);
    visit(&given, context);
  }
}

void report_pull(const vellum::PullReport& r, vellum_pull_report* report, vellum_moved_fn visit,
                 void* context) {
  fill_struct(report, vellum_pull_report{sizeof(vellum_pull_report), r.pieces_read, r.bytes_read});
  visit_all(r.versions, visit, context);
}

}  // namespace

extern "C" {

int vellum_remotes(const vellum_store* store, vellum_remote_fn visit, void* context) {
  return guarded([&] {
    require(visit, "visit");
    for (const vellum::RemoteInfo& remote : store_of(store).remotes()) {
      const vellum_remote_info given{sizeof given, remote.name.c_str(), remote.url.c_str(),
                                     remote.one_writer ? 1 : 0,
                                     static_cast<std::uint64_t>(remote.lock.count())};
      visit(&given, context);
    }
  });
}

int vellum_add_remote(vellum_store* store, const char* name, const char* url,
                      const vellum_add_remote_options* options) {
  return guarded([&] {
    require(name, "name");
    require(url, "url");
    const auto given = options_or_zero(options);
    // A larger number is refused by add_remote().
    const auto lock_s = std::min<std::uint64_t>(given.lock_s, INT64_MAX);
    vellum::AddRemoteOptions wanted;
    wanted.one_writer = given.one_writer != 0;
    wanted.lock = std::chrono::seconds(static_cast<std::int64_t>(lock_s));
    store_of(store).add_remote(name, url, wanted);
  });
}

int vellum_remove_remote(vellum_store* store, const char* name) {
  return guarded([&] {
    require(name, "name");
    store_of(store).remove_remote(name);
  });
}

int vellum_push(vellum_store* store, const char* remote, const vellum_push_options* options,
                vellum_push_report* report, vellum_moved_fn visit, vellum_progress_fn progress,
                void* context) {
  return guarded([&] {
    require(remote, "remote");
    require_struct(report);
    const vellum_push_options given = options_or_zero(options);
    const vellum::PushReport r = store_of(store).push(
        remote, {names_of(given.versions), given.take_over != 0, given.dry_run != 0},
        progress_of(progress, context));
    fill_struct(report, vellum_push_report{sizeof(vellum_push_report), r.objects_uploaded,
                                           r.bytes_uploaded, r.pieces_used_again});
    visit_all(r.versions, visit, context);
  });
}

int vellum_replicate(vellum_store* store, const char* url, const vellum_replicate_options* options,
                     vellum_replicate_fn told, void* context) {
  return guarded([&] {
    require(url, "url");
    require(told, "told");
    const vellum_replicate_options given = options_or_zero(options);
    vellum::ReplicateOptions wanted;
    if (given.interval_ms != 0) {
      wanted.interval = std::chrono::milliseconds(static_cast<std::int64_t>(given.interval_ms));
    }
    wanted.take_over = given.take_over != 0;
    const vellum::ReplicateState last =
        store_of(store).replicate(url, wanted, [&](const vellum::ReplicateState& s) {
          const vellum_replicate_state state{sizeof state,
                                             s.pushes,
                                             s.versions,
                                             s.bytes_uploaded,
                                             static_cast<std::uint64_t>(s.behind.count()),
                                             s.failure.empty() ? nullptr : s.failure.c_str()};
          return told(&state, context) == 0;
        });
    if (!last.failure.empty()) throw vellum::Error(vellum::Errc::io, last.failure);
  });
}

int vellum_pull(vellum_store* store, const char* remote, const vellum_pull_options* options,
                vellum_pull_report* report, vellum_moved_fn visit, vellum_progress_fn progress,
                void* context) {
  return guarded([&] {
    require(remote, "remote");
    require_struct(report);
    const vellum_pull_options given = options_or_zero(options);
    report_pull(store_of(store).pull(remote,
                                     {names_of(given.versions), given.packs != 0,
                                      given.take_over != 0, given.dry_run != 0},
                                     progress_of(progress, context)),
                report, visit, context);
  });
}

int vellum_clone(const char* url, const char* directory, const vellum_pull_options* options,
                 vellum_pull_report* report, vellum_moved_fn visit, vellum_progress_fn progress,
                 void* context) {
  return guarded([&] {
    require(url, "url");
    require(directory, "directory");
    require_struct(report);
    const vellum_pull_options given = options_or_zero(options);
    report_pull(vellum::Store::clone(url, directory, {names_of(given.versions), given.lazy != 0},
                                     progress_of(progress, context)),
                report, visit, context);
  });
}

}  // extern "C"
