#include "store/signature/signed_versions.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "store/catalog/snapshots/refs.hpp"
#include "store/page_map/diff.hpp"
#include "store/signature/tree_update.hpp"

namespace vellum::store {

using format::kNodesPerTreePage;
using format::PageNumber;
using format::SnapshotRef;
using format::TreeHash;

namespace {

// Bounds the search for a signed version on a line, and cycles of forged refs.
constexpr std::size_t kMaxUnsignedBetween = 4096;

std::optional<SnapshotRef> read_if_there(const PackStore& store, const std::string& name) {
  try {
    if (has_snapshot(store, name)) return read_snapshot(store, name);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
  return std::nullopt;
}

ResolvedVersion resolved_of(const SnapshotRef& ref) { return resolved(SnapshotRef(ref)); }

// The first page whose leaf differs from that of the stored tree.
std::optional<PageNumber> first_wrong_page(const OpenSigned& now) {
  std::optional<PageNumber> wrong;
  const std::uint64_t bytes = now.ref.version.region_bytes;
  root_of_content(*now.source, bytes,
                  [&](unsigned level, std::uint64_t number, const TreeNodes& nodes) {
                    if (level != 0 || wrong.has_value()) return;
                    for (std::size_t i = 0; i < nodes.size(); ++i) {
                      const std::uint64_t page = number * kNodesPerTreePage + i;
                      if (format::actual_node(nodes[i], 0) != stored_node(*now.source, 0, page)) {
                        wrong = page;
                        return;
                      }
                    }
                  });
  return wrong;
}

}  // namespace

std::vector<std::byte> statement_of(const PackStore& store, const SnapshotRef& ref) {
  return format::signed_statement(format::signed_facts(ref, store.superblock().store_id),
                                  *ref.signature);
}

bool signature_fits(const PackStore& store, const SnapshotRef& ref) {
  return base::ed25519_verify(ref.signature->key, statement_of(store, ref),
                              ref.signature->signature);
}

Signature public_form(const format::VersionSignature& signature) {
  return {signature.key,    signature.signature,   signature.root,
          signature.number, signature.parent_name, signature.parent};
}

std::optional<SnapshotRef> newest_signed(const PackStore& store, std::string name) {
  for (std::size_t i = 0; i < kMaxUnsignedBetween && !name.empty(); ++i) {
    auto ref = read_if_there(store, name);
    if (!ref.has_value() || ref->signature.has_value()) return ref;
    name = ref->version.parent;
  }
  return std::nullopt;
}

OpenSigned open_signed(StoreDirectory& store, const std::string& name) {
  NamesShared names(store);
  OpenSigned out;
  out.ref = read_snapshot(store, name);
  VersionPin pin(store, std::move(names), out.ref.version);
  out.source = open_with_tree(store, out.ref.version,
                              fmt::format("snapshot '{}' of {}", name, store.path()));
  out.source->keep(std::move(pin));
  return out;
}

SignatureChecker::SignatureChecker(StoreDirectory& store, std::span<const PublicKey> keys)
    : store_(store), keys_(keys.begin(), keys.end()) {}

SignatureCheck SignatureChecker::check(const std::string& name) {
  SignatureCheck out;
  out.name = name;
  try {
    OpenSigned now = open_signed(store_, name);
    out.is_signed = now.ref.signature.has_value();
    if (out.is_signed) out.signature = public_form(*now.ref.signature);
    out.problem = problem_of(now, out);
    if (out.problem.empty()) checked_ = std::move(now);
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
    out.problem = e.what();
  }
  return out;
}

std::string SignatureChecker::problem_of(const OpenSigned& now, SignatureCheck& out) {
  if (!now.ref.signature.has_value()) return "not signed";
  const auto& signature = *now.ref.signature;
  if (std::ranges::find(keys_, signature.key) == keys_.end()) {
    return "signed by another key, " + base::hex(signature.key);
  }
  if (!signature_fits(store_, now.ref)) {
    return "the signature does not fit: it is forged, or of another version, name or store";
  }
  if (std::string problem = problem_of_chain(now.ref, out); !problem.empty()) return problem;
  return problem_of_content(now);
}

// A name may be used again: the version that has it now is then a later one.
std::string SignatureChecker::problem_of_chain(const SnapshotRef& ref, SignatureCheck& out) const {
  const auto& signature = *ref.signature;
  if (signature.number == 1) return "";
  const auto parent = read_if_there(store_, signature.parent_name);
  const bool is_signed = parent.has_value() && parent->signature.has_value();
  if (is_signed && base::sha256(statement_of(store_, *parent)) == signature.parent) return "";
  const bool is_earlier =
      is_signed && parent->branch == ref.branch && parent->signature->number < signature.number;
  if (is_earlier) {
    return fmt::format("its parent '{}' is not the version that it was signed on",
                       signature.parent_name);
  }
  out.chain_ends_before = signature.parent_name;
  return "";
}

// Whether the root follows from the last checked version and what differs from it. The nodes of
// that version's tree need no check of their own: wrong ones do not give the signed root.
bool SignatureChecker::follows_checked(const OpenSigned& now) const {
  if (!checked_.has_value() || checked_->ref.branch != now.ref.branch ||
      checked_->ref.version.region_bytes > now.ref.version.region_bytes) {
    return false;
  }
  TreeUpdate update(checked_->source.get(), checked_->ref.version.region_bytes,
                    now.ref.version.region_bytes, nullptr);
  for (const auto& range : ranges_that_may_differ(*checked_->source, resolved_of(checked_->ref),
                                                  *now.source, resolved_of(now.ref))) {
    update.set_content(*now.source, range);
  }
  return update.finish() == now.ref.signature->root;
}

std::string SignatureChecker::problem_of_content(const OpenSigned& now) const {
  const std::uint64_t bytes = now.ref.version.region_bytes;
  const TreeHash& root = now.ref.signature->root;
  if (bytes > format::kMaxSignedRegionBytes) return "the region is too large to be signed";
  if (follows_checked(now) || root_of_content(*now.source, bytes) == root) return "";
  if (stored_root(*now.source, bytes) == root) {
    if (const auto page = first_wrong_page(now))
      return fmt::format("page {} is not the one that was signed", *page);
  }
  return "the content is not what was signed";
}

format::PageProof prove_pages(StoreDirectory& store, const std::string& name,
                              const format::PageRange& range) {
  const OpenSigned now = open_signed(store, name);
  const std::string& label = now.source->label();
  if (!now.ref.signature.has_value()) fail(Errc::untrusted, "{} is not signed", label);
  const std::uint64_t bytes = now.ref.version.region_bytes, pages = format::pages_in(bytes);
  if (range.count == 0 || range.first >= pages || range.count > pages - range.first ||
      range.count > format::kMaxProvenPages) {
    fail(Errc::invalid_argument, "{} has {} pages; a proof is for 1 to {} of them", label, pages,
         format::kMaxProvenPages);
  }
  format::PageProof out;
  out.name = now.ref.name;
  out.region_bytes = bytes;
  out.first_page = range.first;
  out.pages = range.count;
  out.context = format::context_hash(format::signed_facts(now.ref, store.superblock().store_id),
                                     *now.ref.signature);
  out.signature = now.ref.signature->signature;
  std::vector<TreeHash> leaves;
  std::vector<std::byte> page(format::kPageBytes);
  for (std::uint64_t i = 0; i < range.count; ++i) {
    now.source->read(range.first + i, 1, page.data());
    leaves.push_back(format::leaf_hash(std::span(page).first<format::kPageBytes>()));
  }
  for (const auto& place : format::sibling_places(bytes, range.first, range.count)) {
    out.siblings.push_back(stored_node(*now.source, place.height, place.index));
  }
  if (format::root_of_proof(out, std::move(leaves)) != now.ref.signature->root ||
      !signature_fits(store, now.ref)) {
    fail(Errc::untrusted, "{}: these pages are not what was signed: see vellum verify --signed-by",
         label);
  }
  return out;
}

}  // namespace vellum::store
