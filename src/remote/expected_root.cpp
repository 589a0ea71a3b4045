#include "remote/expected_root.hpp"

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "store/signature/signed_versions.hpp"
#include "store/signature/tree_update.hpp"

namespace vellum::remote {

std::vector<const RemoteVersion*> claims_of_root(const std::vector<const RemoteVersion*>& wanted,
                                                 const std::string& root, const std::string& url) {
  std::vector<const RemoteVersion*> out;
  if (root.empty()) return out;
  for (const RemoteVersion* version : wanted) {
    const format::SnapshotRef& ref = version->ref;
    if (ref.signature.has_value() && base::hex(ref.signature->root) == root) out.push_back(version);
  }
  if (!out.empty()) return out;
  fail(Errc::untrusted,
       "{}: no version that is wanted has the root {}: the remote is older than wanted, or another "
       "one",
       url, root);
}

void require_root(store::StoreDirectory& store, const std::vector<const RemoteVersion*>& claims,
                  const std::string& url) {
  for (const RemoteVersion* claim : claims) {
    const std::string& name = claim->ref.name;
    const store::OpenSigned here = store::open_signed(store, name);
    const std::uint64_t bytes = here.ref.version.region_bytes;
    if (bytes <= format::kMaxSignedRegionBytes &&
        store::root_of_content(*here.source, bytes) == claim->ref.signature->root) {
      continue;
    }
    fail(Errc::untrusted,
         "{}: version '{}' states the wanted root, and its content has another one; it stays in {}",
         url, name, store.path());
  }
}

}  // namespace vellum::remote
