// Signatures of versions: parts of the C++ interface of a store.
#include <algorithm>
#include <tuple>

#include <vellum/store.hpp>

#include "base/fail.hpp"
#include "region/api/store_impl.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/catalog/snapshots/refs.hpp"
#include "store/signature/signed_versions.hpp"

namespace vellum {
namespace {

// By branch, oldest first: each is then checked after its parent.
std::vector<std::string> in_order(const store::StoreDirectory& core,
                                  const std::vector<std::string>& names) {
  std::vector<format::SnapshotRef> refs;
  for (const std::string& name : names) {
    if (!store::has_snapshot(core, name)) {
      fail(Errc::not_found, "no snapshot '{}' in {}: a branch's head has no signature", name,
           core.path());
    }
    refs.push_back(store::read_snapshot(core, name));
  }
  std::ranges::sort(refs, [](const auto& a, const auto& b) {
    return std::tie(a.branch, a.order) < std::tie(b.branch, b.order);
  });
  std::vector<std::string> out;
  for (const format::SnapshotRef& ref : refs) out.push_back(ref.name);
  return out;
}

}  // namespace

std::vector<SignatureCheck> Store::check_signatures(
    const std::vector<PublicKey>& keys, const std::vector<std::string>& versions) const {
  std::vector<std::string> names;
  for (const std::string& given : versions) names.push_back(resolve(given));
  if (names.empty()) names = snapshot_names(*impl_->core);
  store::SignatureChecker checker(*impl_->core, keys);
  std::vector<SignatureCheck> out;
  for (const std::string& name : in_order(*impl_->core, names)) out.push_back(checker.check(name));
  return out;
}

std::vector<std::byte> Store::prove(const std::string& version, const ByteRange& range) const {
  const std::uint64_t first = range.offset_bytes / format::kPageBytes;
  if (range.length_bytes == 0 || range.length_bytes > UINT64_MAX - range.offset_bytes) {
    fail(Errc::invalid_argument, "a proof needs at least one byte");
  }
  const std::uint64_t last = (range.offset_bytes + range.length_bytes - 1) / format::kPageBytes;
  return format::encode_proof(
      store::prove_pages(*impl_->core, resolve(version), {first, last - first + 1}));
}

void Store::set_signers(const std::string& branch, const std::vector<PublicKey>& keys) {
  store::set_signers(*impl_->core, branch, keys);
}

std::vector<PublicKey> Store::signers(const std::string& branch) const {
  return store::signers_of(*impl_->core, branch);
}

}  // namespace vellum
