// store/signature/signed_versions.hpp: signatures of versions, checked and proven.
#pragma once

#include <cstdint>
#include <map>
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
#include "store/signature/tree_update.hpp"

namespace vellum::store {

// The bytes that the ref's signature signs. REQUIRES: it has one.
std::vector<std::byte> statement_of(const PackStore& store, const format::SnapshotRef& ref);
bool signature_fits(const PackStore& store, const format::SnapshotRef& ref);
// Whether the signers of its branch, if there are any, accept the ref. Its content is not read.
bool may_be_snapshot(const StoreDirectory& store, const format::SnapshotRef& ref);
Signature public_form(const format::VersionSignature& signature);

// The snapshot `name`, or the newest one before it on its line, that has a signature.
std::optional<format::SnapshotRef> newest_signed(const PackStore& store, std::string name);

// A snapshot, whose records stay as long as `source` lives.
struct OpenSigned {
  format::SnapshotRef ref;
  std::shared_ptr<PageSource> source;  // with the pages of its tree
};
OpenSigned open_signed(StoreDirectory& store, const std::string& name);

// What a tree is continued with.
struct TreeInput {
  const PageSource& tree;     // has the tree of the version before
  const PageSource& content;  // of the version, but for the pages of the leaves
  std::span<const TreeLeaf> leaves = {};
  KeptTree* kept = nullptr;
};
// The root of `version`, one of the same region that has not shrunk, from what differs from `before`.
// Without a source of `before`, only the leaves and the pages behind its end differ.
// REQUIRES: the content of `before` is what its root is of. nullopt: its tree is another one, or a
// forged one, and what was visited means nothing.
std::optional<format::TreeHash> root_after(const OpenSigned& before, const TreeInput& input,
                                           const format::Version& version, VisitTreePage visit);

// Checks versions one after the other. The first one is read whole; of each later one, only what
// differs from the one before.
class SignatureChecker {
 public:
  SignatureChecker(StoreDirectory& store, std::span<const PublicKey> keys);
  // Throws the errors of reading, except damage, which is a problem.
  SignatureCheck check(const std::string& name);

  // Whether the head of the branch has the pages of this snapshot, by the page maps. False, too, if one
  // of the two is gone or damaged.
  bool is_head(const std::string& branch, const std::string& snapshot) const;

 private:
  std::string problem_of(const OpenSigned& now, SignatureCheck& out);
  std::string problem_of_chain(const format::SnapshotRef& ref, SignatureCheck& out) const;
  std::string problem_of_content(const OpenSigned& now) const;
  bool follows_checked(const OpenSigned& now) const;
  void note_order(const format::SnapshotRef& ref, SignatureCheck& out);

  StoreDirectory& store_;
  const std::vector<PublicKey> keys_;
  std::optional<OpenSigned> checked_;  // the last one without a problem
  struct Highest {
    std::uint64_t number = 0;
    std::string name;
  };
  std::map<std::string, Highest> highest_;  // of each branch, of the good ones
};

// Errc::not_found; untrusted: the version has no signature, or its pages do not fit it.
format::PageProof prove_pages(StoreDirectory& store, const std::string& name,
                              const format::PageRange& range);

}  // namespace vellum::store
