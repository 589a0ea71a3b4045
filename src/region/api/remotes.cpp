// The remotes in the C++ interface of a store (vellum/store.hpp), over src/remote.
#include <vellum/store.hpp>

#include "base/bytes/hex.hpp"
#include "region/api/store_impl.hpp"
#include "remote/pull.hpp"
#include "remote/push.hpp"
#include "remote/replicator.hpp"
#include "remote/session/known_remotes.hpp"
#include "remote/session/missing_pieces.hpp"

namespace vellum {

std::vector<RemoteInfo> Store::remotes() const {
  std::vector<RemoteInfo> out;
  for (const std::string& name : remote::remote_names(*impl_->core)) {
    const remote::RemoteFile file = remote::read_remote_file(*impl_->core, name);
    out.push_back({name, file.url, file.one_writer,
                   file.objects_key.has_value() ? base::hex(file.objects_key->fingerprint) : "",
                   file.lock.has_value() ? file.lock->duration : std::chrono::seconds(0)});
  }
  return out;
}

bool Store::add_remote(const std::string& name, const std::string& url,
                       const AddRemoteOptions& options) {
  return remote::add_remote(*impl_->core, name, url, options);
}

void Store::remove_remote(const std::string& name) { remote::remove_remote(*impl_->core, name); }

PushReport Store::push(const std::string& remote, const PushOptions& options,
                       const ProgressFn& progress) {
  remote::Session session(*impl_->core, remote);
  return remote::push(session, options, progress);
}

PullReport Store::pull(const std::string& remote, const PullOptions& options,
                       const ProgressFn& progress) {
  remote::Session session(*impl_->core, remote);
  return remote::pull(session, options, progress);
}

PullReport Store::clone(const std::string& url, const std::string& directory,
                        const CloneOptions& options, const ProgressFn& progress) {
  return remote::clone(base::posix_fs(), url, directory, options, progress);
}

ReplicateState Store::replicate(const std::string& url, const ReplicateOptions& options,
                                const ReplicateFn& told) {
  return remote::Replicator(*impl_->core, url, options).run(told);
}

}  // namespace vellum
