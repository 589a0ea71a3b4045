// Signatures of versions: parts of the C++ interface of a store.
#include <algorithm>
#include <map>
#include <tuple>

#include <vellum/store.hpp>

#include "base/fail.hpp"
#include "region/api/store_impl.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/catalog/snapshots/refs.hpp"
#include "store/signature/signed_versions.hpp"

namespace vellum {
namespace {

struct ToCheck {
  std::string branch;
  std::uint64_t order = 0;
  std::string name;
};

// By branch, oldest first: each is then checked after its parent. First those without a readable ref,
// which the check names.
std::vector<ToCheck> in_order(const store::StoreDirectory& core,
                              const std::vector<std::string>& names) {
  std::vector<ToCheck> out;
  for (const std::string& name : names) {
    try {
      const format::SnapshotRef ref = store::read_snapshot(core, name);
      out.push_back({ref.branch, ref.order, name});
    } catch (const Error& e) {
      if (e.code() == Errc::not_found) continue;  // removed just now
      if (e.code() != Errc::corrupted) throw;
      out.push_back({"", 0, name});
    }
  }
  std::ranges::sort(out, [](const auto& a, const auto& b) {
    return std::tie(a.branch, a.order) < std::tie(b.branch, b.order);
  });
  return out;
}

}  // namespace

SignatureReport Store::check_signatures(const std::vector<PublicKey>& keys,
                                        const std::vector<std::string>& versions) const {
  const store::StoreDirectory& core = *impl_->core;
  std::vector<std::string> names;
  for (const std::string& given : versions) {
    names.push_back(resolve(given));
    if (store::has_snapshot(core, names.back())) continue;
    fail(Errc::not_found, "no snapshot '{}' in {}: a branch's head has no signature", names.back(),
         path());
  }
  if (names.empty()) names = snapshot_names(core);
  store::SignatureChecker checker(*impl_->core, keys);
  SignatureReport out;
  std::map<std::string, std::string> heads;  // what each branch's head is the same as
  if (versions.empty()) {
    for (const std::string& branch : core.branch_names())
      if (!store::is_staging_name(branch)) heads[branch] = "";
  }
  for (const ToCheck& next : in_order(core, names)) {
    out.snapshots.push_back(checker.check(next.name));
    const auto head = heads.find(next.branch);
    const bool is_good = out.snapshots.back().problem.empty();
    if (head != heads.end()) head->second = is_good ? next.name : "";
  }
  for (const auto& [branch, newest] : heads)
    out.heads.push_back({branch, newest.empty() || !checker.is_head(branch, newest) ? "" : newest});
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
