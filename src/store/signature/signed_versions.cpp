#include "store/signature/signed_versions.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/catalog/snapshots/refs.hpp"
#include "store/page_map/diff.hpp"

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

// A damaged one is named by its own check.
std::optional<SnapshotRef> read_if_whole(const PackStore& store, const std::string& name) {
  try {
    return read_if_there(store, name);
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
  }
  return std::nullopt;
}

// The first page whose leaf differs from that of the stored tree. REQUIRES: its leaves lead to the root.
std::optional<PageNumber> first_wrong_page(const OpenSigned& now) {
  std::optional<PageNumber> wrong;
  const std::uint64_t bytes = now.ref.version.region_bytes;
  root_of_content(*now.source, bytes, [&](const ChangedTreePage& changed) {
    if (changed.level != 0 || wrong.has_value()) return;
    for (std::size_t i = 0; i < changed.nodes.size(); ++i) {
      const std::uint64_t page = changed.number * kNodesPerTreePage + i;
      if (format::actual_node(changed.nodes[i], 0) != stored_node(*now.source, 0, page)) {
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

bool may_be_snapshot(const StoreDirectory& store, const SnapshotRef& ref) {
  const auto signers = signers_of(store, ref.branch);
  if (signers.empty()) return true;
  return ref.signature.has_value() &&
         std::ranges::find(signers, ref.signature->key) != signers.end() &&
         signature_fits(store, ref);
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

// Pages behind the end of the smaller region are in no root before, whatever both page maps say.
std::optional<TreeHash> root_after(const OpenSigned& before, const TreeInput& input,
                                   const format::Version& version, VisitTreePage visit) {
  const std::uint64_t bytes = before.ref.version.region_bytes;
  const PageNumber end = format::pages_in(bytes);
  TreeUpdate update({input.tree, bytes, before.ref.signature->root}, version.region_bytes,
                    std::move(visit), input.kept);
  std::vector<format::PageRange> ranges;
  if (before.source != nullptr) {
    ResolvedVersion then = resolved(SnapshotRef(before.ref)), later;
    later.version = version;
    ranges = ranges_that_may_differ(*before.source, then, input.content, later);
  }
  auto leaves = input.leaves;
  for (const auto& range : ranges) {
    if (range.first >= end) continue;
    update.set_content(input.content, {range.first, std::min(range.count, end - range.first)},
                       leaves);
  }
  update.set_content(input.content, {end, format::pages_in(version.region_bytes) - end}, leaves);
  return update.finish();
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
    if (out.problem.empty()) {
      note_order(now.ref, out);
      checked_ = std::move(now);
    }
  } catch (const Error& e) {
    // not_found: it was removed meanwhile.
    if (e.code() != Errc::corrupted && e.code() != Errc::not_found) throw;
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
  const auto parent = read_if_whole(store_, signature.parent_name);
  const bool is_signed = parent.has_value() && parent->signature.has_value();
  if (is_signed && base::sha256(statement_of(store_, *parent)) == signature.parent) {
    if (parent->order > ref.order)
      out.note = fmt::format("'{}', which it was signed on, comes after it", parent->name);
    return "";
  }
  const bool is_earlier =
      is_signed && parent->branch == ref.branch && parent->signature->number < signature.number;
  if (is_earlier) {
    return fmt::format("its parent '{}' is not the version that it was signed on",
                       signature.parent_name);
  }
  out.chain_ends_before = signature.parent_name;
  return "";
}

// Whether the root follows from the last checked version and what differs from it.
bool SignatureChecker::follows_checked(const OpenSigned& now) const {
  if (!checked_.has_value() || checked_->ref.branch != now.ref.branch ||
      checked_->ref.version.region_bytes > now.ref.version.region_bytes) {
    return false;
  }
  try {
    return root_after(*checked_, {*checked_->source, *now.source}, now.ref.version, nullptr) ==
           now.ref.signature->root;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
    return false;  // the tree of the version before may be what is damaged
  }
}

// No signature covers the order of snapshots.
void SignatureChecker::note_order(const SnapshotRef& ref, SignatureCheck& out) {
  Highest& highest = highest_[ref.branch];
  const std::uint64_t number = ref.signature->number;
  if (highest.number != 0 && (number == 1 || number < highest.number)) {
    out.note =
        fmt::format("it comes after '{}', which has number {}: the chain of signatures {}",
                    highest.name, highest.number, number == 1 ? "begins again" : "goes back");
  }
  if (number > highest.number) highest = {number, ref.name};
}

bool SignatureChecker::is_head(const std::string& branch, const std::string& snapshot) const {
  try {
    const OpenSigned good = open_signed(store_, snapshot);
    const KeptVersion kept = resolve_kept(store_, branch);
    const ResolvedVersion& head = kept.version;
    const ResolvedVersion then = resolved(SnapshotRef(good.ref));
    const auto &info = head.head_info(), &wanted = then.head_info();
    if (!head.is_branch || info.region_bytes != wanted.region_bytes ||
        info.file_bytes != wanted.file_bytes) {
      return false;
    }
    const auto now = PageSource::open(store_, head.version, head.commits, head.label);
    const PageNumber end = format::pages_in(info.region_bytes);
    const auto ranges = ranges_that_may_differ(*good.source, then, *now, head);
    return std::ranges::none_of(ranges, [&](const auto& range) { return range.first < end; });
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted && e.code() != Errc::not_found) throw;
    return false;
  }
}

std::string SignatureChecker::problem_of_content(const OpenSigned& now) const {
  const std::uint64_t bytes = now.ref.version.region_bytes;
  const TreeHash& root = now.ref.signature->root;
  if (bytes > format::kMaxSignedRegionBytes) return "the region is too large to be signed";
  if (follows_checked(now) || root_of_content(*now.source, bytes) == root) return "";
  try {
    if (root_of_leaves(*now.source, bytes) == root) {
      if (const auto page = first_wrong_page(now))
        return fmt::format("page {} is not the one that was signed", *page);
    }
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;  // of the stored tree: the page cannot be named
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
    if (range.first < pages && range.count > pages - range.first) {
      fail(Errc::invalid_argument, "{} has {} pages, 0 to {}: {}+{} passes the end", label, pages,
           pages - 1, range.first, range.count);
    }
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
