// mount/versions.cpp: see versions.hpp.
#include "mount/versions.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "remote/engine/url.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"

namespace vellum::mount {
namespace {

using store::ResolvedVersion;

// The version after the first `count` of the commits.
FoundVersion found(const std::string& name, const ResolvedVersion& resolved, std::size_t count) {
  const format::Version& base = resolved.version;
  const auto commits = std::span(resolved.commits).first(count);
  const format::CommitInfo& head = format::head_info(base, commits);
  return {name,
          {base.branch_id, format::head_sequence(base, commits), head.time_ns},
          head.file_bytes.value_or(head.region_bytes),
          head.region_bytes};
}

}  // namespace

bool Versions::at_remote() const { return remote::is_remote_url(store_->path()); }

std::vector<std::string> Versions::branches() const {
  std::vector<std::string> out = store_->branch_names();
  std::erase_if(out, [](const std::string& name) { return store::is_staging_name(name); });
  return out;
}

std::vector<std::string> Versions::names() const {
  std::vector<std::string> out = branches();
  const auto snapshots = store::snapshot_names(*store_);
  out.insert(out.end(), snapshots.begin(), snapshots.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

FoundVersion Versions::find(const std::string& name) const {
  const ResolvedVersion resolved = store::resolve_version(*store_, name);
  return found(name, resolved, resolved.commits.size());
}

std::map<std::uint64_t, FoundVersion> Versions::commits_of(const std::string& branch) const {
  const ResolvedVersion head = store::resolve_version(*store_, branch);
  if (!head.is_branch) fail(Errc::not_found, "no branch '{}'", branch);
  std::map<std::uint64_t, FoundVersion> out;
  for (const std::string& name : store::snapshot_names(*store_)) {
    try {
      const ResolvedVersion snapshot = store::resolve_snapshot(*store_, name);
      if (snapshot.version.branch_id != head.version.branch_id) continue;
      out.emplace(snapshot.version.sequence, found(name, snapshot, 0));
    } catch (const Error& error) {
      if (error.code() != Errc::not_found) throw;  // it was removed meanwhile
    }
  }
  for (std::size_t count = 0; count <= head.commits.size(); ++count) {
    out.insert_or_assign(head.version.sequence + count, found(branch, head, count));
  }
  return out;
}

// The journal may have changed since the version was found: a snapshot may still have it.
ResolvedVersion Versions::resolve(const FoundVersion& version) const {
  ResolvedVersion resolved = store::resolve_version(*store_, version.name);
  for (std::size_t count = 0; count <= resolved.commits.size(); ++count) {
    if (found(version.name, resolved, count).key != version.key) continue;
    resolved.commits.resize(count);
    return resolved;
  }
  for (const std::string& name : store::snapshot_names(*store_)) {
    ResolvedVersion snapshot = store::resolve_snapshot(*store_, name);
    if (found(name, snapshot, 0).key == version.key) return snapshot;
  }
  fail(Errc::not_found, "commit {} of '{}' no longer exists", version.key.sequence, version.name);
}

std::shared_ptr<const store::PageSource> Versions::open(const FoundVersion& version) const {
  store::NamesShared names(*store_);
  ResolvedVersion resolved = resolve(version);
  store::VersionPin pin(*store_, std::move(names), resolved.version);
  auto source = store::PageSource::open(*store_, resolved.version, std::move(resolved.commits),
                                        resolved.label);
  source->keep(std::move(pin));
  return source;
}

}  // namespace vellum::mount
