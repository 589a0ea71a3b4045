// store/branch/signing.cpp: the signature of a snapshot, and the pages of its hash tree.
#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <iterator>
#include <vector>

#include "base/fail.hpp"
#include "store/branch/branch_writer_impl.hpp"
#include "store/branch/checkpoint/page_difference.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/page_map/diff.hpp"
#include "store/signature/signed_versions.hpp"
#include "store/signature/tree_update.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::MapEntry;
using format::PageNumber;
using format::SnapshotRef;
using format::TreeHash;
using format::Version;

namespace {

// The changed pages of a tree, encoded. Blocks are passed on when there are many.
class TreePieces {
 public:
  using WriteBlocks = std::function<void(std::vector<PageBlock>&& blocks)>;
  TreePieces(const format::Encoding& encoding, const PageSource& stored,
             base::Compressor& compressor, WriteBlocks write)
      : stored_(stored), write_(std::move(write)) {
    const std::size_t most = std::max<std::size_t>(encoding.block_bytes / kPageBytes, 1);
    levels_.reserve(format::kStoredLevels);
    for (unsigned level = 0; level < format::kStoredLevels; ++level)
      levels_.emplace_back(encoding, compressor, std::min<std::size_t>(most, 16));
  }

  void add(const ChangedTreePage& changed) {
    const PageNumber page = format::tree_page(changed.level, changed.number);
    TreeNodes read;
    const TreeNodes* before = changed.before;
    if (before == nullptr) {
      stored_.read(page, 1, reinterpret_cast<std::byte*>(read.data()));
      before = &read;
    }
    PageDifference& level = levels_[changed.level];
    level.add(page, std::as_bytes(std::span(*before)).data(), std::as_bytes(changed.nodes).data());
    if (level.blocks().size() >= kBlocksAtOnce) write_(std::exchange(level.blocks(), {}));
  }
  void add_zero(PageNumber page) { cleared_.zeros.push_back(page); }

  // Called once. All but the blocks, which are passed on.
  std::vector<PageWrites> finish() {
    std::vector<PageWrites> out;
    for (PageDifference& level : levels_) {
      PageWrites writes = level.take();
      if (!writes.blocks.empty()) write_(std::exchange(writes.blocks, {}));
      if (!writes.deltas.empty() || !writes.zeros.empty()) out.push_back(std::move(writes));
    }
    if (!cleared_.zeros.empty()) out.push_back(std::move(cleared_));
    return out;
  }

 private:
  static constexpr std::size_t kBlocksAtOnce = 64;
  const PageSource& stored_;
  const WriteBlocks write_;
  std::vector<PageDifference> levels_;
  PageWrites cleared_;
};

// The pages of trees in the version, ascending.
std::vector<PageNumber> tree_pages_of(const PageSource& now) {
  std::vector<PageNumber> out;
  PageNumber page = format::kFirstTreePage;
  for (const PageNumber end = page + format::kMaxTreePages; page < end;) {
    const std::size_t zeros = now.zeros_from(page, static_cast<std::size_t>(end - page));
    page += zeros;
    if (zeros == 0) out.push_back(page++);
  }
  return out;
}

// Without an earlier one. Its pages that are no longer needed become zero.
TreeHash new_tree(const Version& version, const PageSource& stored,
                  std::span<const TreeLeaf> leaves, KeptTree& kept, TreePieces& pieces) {
  std::vector<PageNumber> fresh, stale;
  const auto visit = [&](const ChangedTreePage& changed) {
    fresh.push_back(format::tree_page(changed.level, changed.number));
    pieces.add(changed);
  };
  const TreeHash root = root_of_content(stored, version.region_bytes, visit, leaves, &kept);
  std::ranges::sort(fresh);
  std::ranges::set_difference(tree_pages_of(stored), fresh, std::back_inserter(stale));
  for (const PageNumber page : stale) pieces.add_zero(page);
  return root;
}

// 40 bytes a leaf: 10 MiB, for 1 GiB of pages.
constexpr std::size_t kMaxLeaves = std::size_t{1} << 18;
constexpr std::size_t kLeavesAtOnce = 16;

// The pages of the entries, with the leaves of zero pages.
std::optional<std::vector<TreeLeaf>> pages_of(std::span<const MapEntry> entries,
                                              std::vector<std::size_t>& not_zero) {
  std::vector<TreeLeaf> out;
  bool too_many = false;
  for_each_newest(entries, [&](const MapEntry& e, PageNumber first, PageNumber end) {
    too_many = too_many || end - first > kMaxLeaves - out.size();
    for (PageNumber page = first; page < end && !too_many; ++page) {
      if (e.kind != format::PageKind::zero) not_zero.push_back(out.size());
      out.push_back({page, format::kZeroSubtree});
    }
  });
  if (too_many) return std::nullopt;
  return out;
}

// The leaves of the pages of these entries. nullopt: not all of them are in memory.
std::optional<std::vector<TreeLeaf>> leaves_in_memory(std::span<const MapEntry> entries,
                                                      const CommittedPages* committed,
                                                      base::ThreadPool& pool) {
  std::vector<std::size_t> not_zero;
  auto leaves = pages_of(entries, not_zero);
  if (!leaves.has_value() || (committed == nullptr && !not_zero.empty())) return std::nullopt;
  std::atomic<bool> is_missing = false;
  const auto hash_some = [&](std::size_t share, std::size_t) {
    std::array<std::byte, kPageBytes> content;
    const std::size_t end = std::min(not_zero.size(), (share + 1) * kLeavesAtOnce);
    for (std::size_t i = share * kLeavesAtOnce; i < end && !is_missing; ++i) {
      TreeLeaf& leaf = (*leaves)[not_zero[i]];
      if (committed->copy_page(leaf.page, content.data())) {
        leaf.stored = format::stored_leaf(content);
      } else {
        is_missing = true;
      }
    }
  };
  const std::size_t shares = (not_zero.size() + kLeavesAtOnce - 1) / kLeavesAtOnce;
  if (shares <= 1) {
    for (std::size_t share = 0; share < shares; ++share) hash_some(share, 0);
  } else {
    pool.parallel_for(shares, hash_some);
  }
  if (is_missing) return std::nullopt;
  return leaves;
}

// Of a parent that somebody has forged, nothing is taken.
void require_parent(const PackStore& store, const SnapshotRef& parent) {
  if (signature_fits(store, parent) && parent.signature->number < UINT64_MAX) return;
  fail(Errc::untrusted,
       "snapshot '{}': its signature is forged, or of another version: remove it, or put the "
       "genuine one in its place",
       parent.name);
}

}  // namespace

// The order is assigned when a snapshot is published.
bool BranchWriter::Impl::is_signed_last(const SnapshotRef& ref) const {
  if (!signed_last.has_value()) return false;
  SnapshotRef last = *signed_last;
  last.order = ref.order;
  return last == ref;
}

std::optional<Signing> BranchWriter::Impl::begin_signing(const base::Secret& key,
                                                         const std::string& snapshot,
                                                         const Version& version) const {
  if (key.empty()) return std::nullopt;
  return with_context(label, [&] {
    if (version.region_bytes > format::kMaxSignedRegionBytes) {
      fail(Errc::unsupported, "snapshot '{}': a region of {} bytes is too large to be signed",
           snapshot, version.region_bytes);
    }
    Signing out{&key, newest_signed(store, version.parent), {}};
    out.signature.key = base::ed25519_public(key);
    if (const auto& parent = out.parent; parent.has_value()) {
      if (!is_signed_last(*parent)) require_parent(store, *parent);
      out.signature.parent_name = parent->name;
      out.signature.parent = base::sha256(statement_of(store, *parent));
      out.signature.number = parent->signature->number + 1;
    }
    return std::optional(std::move(out));
  });
}

void sign_statement(const PackStore& store, const Signing& signing, SnapshotRef& ref) {
  ref.signature = signing.signature;
  ref.signature->signature = base::ed25519_sign(*signing.key, statement_of(store, ref));
}

// The signed version whose tree the version may still have. One that another key has signed says
// nothing about the content that this key signs. Of one that this writer has signed itself, it knows
// the ref, and the kept pages are those of its tree. If the parent is another one, somebody may have
// exchanged a ref: then nothing is taken, and the next snapshot is hashed as a whole.
std::optional<OpenSigned> BranchWriter::Impl::take_tree_before(const Version& version,
                                                               const Signing& signing) {
  const auto& parent = signing.parent;
  const bool is_own = parent.has_value() && is_signed_last(*parent);
  const bool may_be_exchanged = signed_last.has_value() && !is_own;
  // From here on, the kept pages are those of the next tree.
  if (!std::exchange(keeps_last, false) || !is_own) kept_tree.clear();
  if (!parent.has_value() || may_be_exchanged || parent->signature->key != signing.signature.key ||
      parent->version.region_bytes > version.region_bytes) {
    return std::nullopt;
  }
  if (is_own && parent->version.runs == version.runs) return OpenSigned{*parent, nullptr};
  OpenSigned before = open_signed(store, parent->name);
  if (before.ref == *parent) return before;
  return std::nullopt;
}

// Adds the entries of the tree's changed pages to `entries`. Without the signed version before, or if
// the stored tree is not that version's, computes the tree from the whole content. REQUIRES: the runs
// of `version` are those of the last checkpoint; the content of all other pages is in `leaves`.
TreeHash BranchWriter::Impl::write_tree_pages(const Version& version,
                                              std::span<const TreeLeaf> leaves,
                                              const Signing& signing,
                                              std::vector<MapEntry>& entries,
                                              EncodingThreads& threads) {
  const PageSource& stored = last_checkpointed(version);
  std::vector<MapEntry> written;
  std::optional<TreePieces> pieces;
  const auto begin = [&] {
    written.clear();  // no map names these records
    pieces.emplace(encoding, stored, packs->compressor(), [&](std::vector<PageBlock>&& blocks) {
      std::vector<const PageBlock*> all;
      for (const PageBlock& block : blocks) all.push_back(&block);
      append_blocks(all, *packs, encoding, dedup, threads, written);
    });
  };
  begin();
  std::optional<TreeHash> root;
  if (const auto before = take_tree_before(version, signing)) {
    root = root_after(*before, {stored, stored, leaves, &kept_tree}, version,
                      [&](const ChangedTreePage& changed) { pieces->add(changed); });
  }
  if (!root.has_value()) {
    begin();
    kept_tree.clear();
    root = new_tree(version, stored, leaves, kept_tree, *pieces);
  }
  const std::vector<PageWrites> changed = pieces->finish();
  if (changed.empty() && written.empty()) return *root;
  std::vector<const PageWrites*> all;
  append_pointers(changed, all);
  auto added = write_pieces(version, all, std::move(written), nullptr, dedup, threads);
  chains.depths.update(added);
  entries.insert(entries.end(), added.begin(), added.end());
  return *root;
}

void BranchWriter::Impl::write_tree(Version& version, std::vector<MapEntry>& entries,
                                    const CommittedPages* committed, Signing& signing,
                                    EncodingThreads& threads) {
  auto leaves = leaves_in_memory(entries, committed, store.pool());
  if (!leaves.has_value()) {  // read back, from a run of its own
    add_run(version, std::exchange(entries, {}), threads);
    packs->sync();
    checkpointed.reset();
    leaves.emplace();
  }
  with_context(label, [&] {
    signing.signature.root = write_tree_pages(version, *leaves, signing, entries, threads);
  });
}

void BranchWriter::Impl::write_tree_of_head(Version& version, Signing& signing) {
  const std::uint64_t bytes_before =
      version.bytes_added - (packs->bytes_appended() - counted_bytes);
  EncodingThreads threads(store.pool(), packs->compressor());
  std::vector<MapEntry> entries;
  checkpointing = true;
  write_tree(version, entries, nullptr, signing, threads);
  if (entries.empty()) return;
  add_run(version, std::move(entries), threads);
  write_version_copy(version, bytes_before);
  checkpointed.reset();
}

void BranchWriter::sign(SnapshotRef& ref) {
  Impl& w = *impl_;
  const base::Secret key = signing_key_for(w.store, ref.branch);
  auto signing = w.begin_signing(key, ref.name, ref.version);
  if (!signing.has_value()) return;
  w.write_tree_of_head(ref.version, *signing);
  sign_statement(w.store, *signing, ref);
}

}  // namespace vellum::store
