#include "cli/remote/remote_by_url.hpp"

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/utc_time.hpp"
#include "region/api/version_names.hpp"
#include "region/encode/encoding.hpp"
#include "remote/engine/url.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/upkeep.hpp"

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

std::string url_at_time(const std::string& url, const std::string& time) {
  if (time.empty()) return url;
  if (!remote::is_remote_url(url)) {
    fail(Errc::invalid_argument, "--at is for a remote, given by its URL, and not for a store");
  }
  remote::url_at(url, "");
  std::string form = time;
  constexpr std::size_t kDateEnd = 10;
  if (form.size() > kDateEnd && form[kDateEnd] == ' ') form[kDateEnd] = 'T';  // 2026-11-24 10:30
  if (const auto exact = base::parse_utc_time(form)) return remote::url_at(url, form);
  const bool is_date = form.size() > kDateEnd && form[kDateEnd] == 'T';
  return remote::url_at(
      url, base::utc_nanoseconds(api::moment_of(is_date ? form : time, api::Edge::end)));
}

std::string advice_on_older(const std::string& url) {
  if (!remote::is_remote_url(url) || !remote::parse_remote_url(url).at.empty()) return "";
  const auto objects = remote::open_object_store(base::posix_fs(), url);
  if (!remote::keeps_older_states(*objects)) return "";
  return "; its bucket keeps older versions of its objects: `vellum log URL --at TIME` and `vellum "
         "clone URL DIR --at TIME` read it as it was";
}

void read_with_advice(const std::string& url, const std::function<void()>& read) {
  try {
    return read();
  } catch (const Error& e) {
    const bool may_be_lost = e.code() == Errc::not_found || e.code() == Errc::corrupted;
    const std::string advice = may_be_lost ? advice_on_older(url) : "";
    if (advice.empty()) throw;
    throw Error(e.code(), e.what() + advice);
  }
}

RemoteByUrl::RemoteByUrl(const std::string& url)
    : unlocked_(remote::unlock_remote(remote::open_object_store(base::posix_fs(), url))),
      remote_(std::make_unique<remote::Remote>(*unlocked_.objects, unlocked_.seal)) {}

std::vector<VersionInfo> versions_of(const remote::Head& head) {
  std::vector<VersionInfo> out;
  for (const remote::RemoteVersion& name : head.versions) out.push_back(info_of_name(name));
  return out;
}

}  // namespace vellum::cli
