// store/signature/signed_versions.hpp: signatures of versions, checked and proven.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vellum/signature.hpp>

#include "format/signature/proof.hpp"
#include "format/version.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

// The bytes that the ref's signature signs. REQUIRES: it has one.
std::vector<std::byte> statement_of(const PackStore& store, const format::SnapshotRef& ref);
bool signature_fits(const PackStore& store, const format::SnapshotRef& ref);
Signature public_form(const format::VersionSignature& signature);

// The snapshot `name`, or the newest one before it on its line, that has a signature.
std::optional<format::SnapshotRef> newest_signed(const PackStore& store, std::string name);

// A snapshot, whose records stay as long as `source` lives.
struct OpenSigned {
  format::SnapshotRef ref;
  std::shared_ptr<PageSource> source;  // with the pages of its tree
};
OpenSigned open_signed(StoreDirectory& store, const std::string& name);

// Checks versions one after the other. The first one is read whole; of each later one, only what
// differs from the one before.
class SignatureChecker {
 public:
  SignatureChecker(StoreDirectory& store, std::span<const PublicKey> keys);
  // Throws the errors of reading, except damage, which is a problem.
  SignatureCheck check(const std::string& name);

 private:
  std::string problem_of(const OpenSigned& now, SignatureCheck& out);
  std::string problem_of_chain(const format::SnapshotRef& ref, SignatureCheck& out) const;
  std::string problem_of_content(const OpenSigned& now) const;
  bool follows_checked(const OpenSigned& now) const;

  StoreDirectory& store_;
  const std::vector<PublicKey> keys_;
  std::optional<OpenSigned> checked_;  // the last one without a problem
};

// Errc::not_found; untrusted: the version has no signature, or its pages do not fit it.
format::PageProof prove_pages(StoreDirectory& store, const std::string& name,
                              const format::PageRange& range);

}  // namespace vellum::store
