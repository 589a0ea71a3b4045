#include "cli/remote/remote_by_url.hpp"

#include "base/clock.hpp"
#include "region/encode/encoding.hpp"
#include "remote/session/open_engine.hpp"

namespace vellum::cli {
namespace {

VersionInfo info_of_name(const remote::RemoteVersion& name) {
  const format::Version& version = name.ref.version;
  VersionInfo out;
  out.name = name.ref.name;
  out.is_branch = name.is_branch;
  out.branch = name.ref.branch;
  out.sequence = version.sequence;
  out.committed_at = base::time_point_of(version.time_ns);
  out.created_at = name.is_branch ? out.committed_at : base::time_point_of(name.ref.created_ns);
  out.order = name.ref.order;
  out.message = version.message;
  out.parent = version.parent;
  out.region_bytes = version.region_bytes;
  out.file_bytes = version.file_bytes.value_or(version.region_bytes);
  out.pages_changed = version.pages_changed;
  out.bytes_added = version.bytes_added;
  if (const auto& s = name.ref.signature)
    out.signature = Signature{s->key, s->signature, s->root, s->number, s->parent_name, s->parent};
  if (name.encoding.has_value()) out.encoding = region::from_format(*name.encoding);
  return out;
}

}  // namespace

RemoteByUrl::RemoteByUrl(const std::string& url)
    : unlocked_(remote::unlock_remote(remote::open_object_store(base::posix_fs(), url))),
      remote_(std::make_unique<remote::Remote>(*unlocked_.objects, unlocked_.seal)) {}

std::vector<VersionInfo> versions_of(const remote::Head& head) {
  std::vector<VersionInfo> out;
  for (const remote::RemoteVersion& name : head.versions) out.push_back(info_of_name(name));
  return out;
}

}  // namespace vellum::cli
