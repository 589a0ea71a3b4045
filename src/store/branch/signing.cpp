// store/branch/signing.cpp: the signature of a snapshot, and the pages of its hash tree.
#include <algorithm>
#include <array>
#include <cassert>
#include <set>

#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "store/branch/branch_writer_impl.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/packs/encode/block_encoder.hpp"
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
  TreePieces(const format::Encoding& encoding, const PageSource& now, base::Compressor& compressor,
             WriteBlocks write)
      : now_(now), compressor_(compressor), blocks_(encoding), write_(std::move(write)) {
    const std::size_t most = std::max<std::size_t>(encoding.block_bytes / kPageBytes, 1);
    block_pages_ = std::min<std::size_t>(most, 16);
  }

  void add(unsigned level, std::uint64_t number, const TreeNodes& nodes) {
    const PageNumber page = format::tree_page(level, number);
    const auto* const bytes = reinterpret_cast<const std::byte*>(nodes.data());
    std::array<std::byte, kPageBytes> old;
    now_.read(page, 1, old.data());
    if (std::memcmp(old.data(), bytes, kPageBytes) == 0) return;
    Level& l = levels_[level];
    if (base::is_zero({bytes, kPageBytes})) {
      l.writes.zeros.push_back(page);
      return;
    }
    if (l.writes.deltas.add_difference(page, old.data(), bytes)) {
      if (l.writes.deltas.last_cost_bytes() <= kMaxDeltaCostBytes) return;
      l.writes.deltas.pop_back();
    }
    l.pages.push_back(page);
    l.raw.insert(l.raw.end(), bytes, bytes + kPageBytes);
    if (l.pages.size() == block_pages_) pack(l);
  }
  void add_zero(PageNumber page) { cleared_.zeros.push_back(page); }

  // Called once. All but the blocks that were passed on.
  std::vector<const PageWrites*> finish() {
    std::vector<const PageWrites*> out;
    for (Level& l : levels_) {
      if (!l.pages.empty()) pack(l);
      if (!l.writes.deltas.empty() || !l.writes.zeros.empty()) out.push_back(&l.writes);
    }
    if (!cleared_.zeros.empty()) out.push_back(&cleared_);
    if (!packed_.empty()) write_(std::move(packed_));
    return out;
  }

 private:
  static constexpr std::size_t kBlocksAtOnce = 64;
  struct Level {
    PageWrites writes;  // deltas and zeros
    std::vector<PageNumber> pages;
    std::vector<std::byte> raw;  // of `pages`
  };
  void pack(Level& l) {
    auto payload = blocks_.encode(compressor_, l.raw);
    PageBlock& block = packed_.emplace_back();
    block.pages = std::exchange(l.pages, {});
    block.codec = payload.codec;
    block.stored = std::move(payload.stored);
    block.hash = std::move(payload.hash);
    l.raw.clear();
    if (packed_.size() == kBlocksAtOnce) write_(std::exchange(packed_, {}));
  }

  const PageSource& now_;
  base::Compressor& compressor_;
  BlockEncoder blocks_;
  const WriteBlocks write_;
  std::size_t block_pages_ = 1;
  std::array<Level, format::kStoredLevels> levels_;
  PageWrites cleared_;
  std::vector<PageBlock> packed_;
};

// The pages of trees in the version, ascending.
std::set<PageNumber> tree_pages_of(const PageSource& now) {
  constexpr std::size_t kMaxTreePages = std::size_t{1} << 28;
  std::set<PageNumber> out;
  PageNumber page = format::kFirstTreePage;
  for (const PageNumber end = page + kMaxTreePages; page < end;) {
    const std::size_t zeros = now.zeros_from(page, static_cast<std::size_t>(end - page));
    page += zeros;
    if (zeros == 0) out.insert(page++);
  }
  return out;
}

// The signed version whose tree the version still has, if it is at hand.
std::optional<OpenSigned> tree_before(StoreDirectory& store,
                                      const std::optional<SnapshotRef>& parent,
                                      const Version& version, const PageSource& now) {
  if (!parent.has_value()) return std::nullopt;
  OpenSigned before = open_signed(store, parent->name);
  const std::uint64_t bytes = before.ref.version.region_bytes;
  if (!before.ref.signature.has_value() || bytes > version.region_bytes ||
      stored_root(now, bytes) != before.ref.signature->root) {
    return std::nullopt;
  }
  return before;
}

TreeHash update_tree(const OpenSigned& before, const Version& version, const PageSource& now,
                     TreePieces& pieces) {
  TreeUpdate update(&now, before.ref.version.region_bytes, version.region_bytes,
                    [&](const auto&... page) { pieces.add(page...); });
  ResolvedVersion a = resolved(SnapshotRef(before.ref)), b;
  b.version = version;
  for (const auto& range : ranges_that_may_differ(*before.source, a, now, b)) {
    update.set_content(now, range);
  }
  return update.finish();
}

TreeHash new_tree(const Version& version, const PageSource& now, TreePieces& pieces) {
  std::set<PageNumber> old = tree_pages_of(now);
  const TreeHash root = root_of_content(
      now, version.region_bytes, [&](unsigned level, std::uint64_t number, const TreeNodes& nodes) {
        old.erase(format::tree_page(level, number));
        pieces.add(level, number, nodes);
      });
  for (const PageNumber page : old) pieces.add_zero(page);
  return root;
}

}  // namespace

// Writes what has changed in the tree since the signed version before. Without that version, or if the
// stored tree is not that version's, computes the tree from the whole content.
TreeHash BranchWriter::Impl::write_tree(Version& version,
                                        const std::optional<SnapshotRef>& parent) {
  const std::shared_ptr<PageSource> now = open_with_tree(store, version, label);
  const std::uint64_t bytes_before =
      version.bytes_added - (packs->bytes_appended() - counted_bytes);
  EncodingThreads threads(store.pool(), packs->compressor());
  std::vector<MapEntry> written;
  checkpointing = true;
  TreePieces pieces(encoding, *now, packs->compressor(), [&](std::vector<PageBlock>&& blocks) {
    std::vector<const PageBlock*> all;
    for (const PageBlock& block : blocks) all.push_back(&block);
    append_blocks(all, *packs, encoding, dedup, threads, written);
  });
  const auto before = tree_before(store, parent, version, *now);
  const TreeHash root = before.has_value() ? update_tree(*before, version, *now, pieces)
                                           : new_tree(version, *now, pieces);
  const auto changed = pieces.finish();
  if (changed.empty() && written.empty()) return root;
  checkpointed = now;  // the deltas of tree pages are against these
  auto entries = write_pieces(version, changed, std::move(written), nullptr, dedup, threads);
  chains.depths.update(entries);
  if (!entries.empty()) add_run(version, std::move(entries), threads);
  write_version_copy(version, bytes_before);
  checkpointed.reset();
  return root;
}

void BranchWriter::Impl::sign(SnapshotRef& ref) {
  const base::Secret key = signing_key_for(store, ref.branch);
  if (key.empty()) return;
  with_context(label, [&] {
    if (ref.version.region_bytes > format::kMaxSignedRegionBytes) {
      fail(Errc::unsupported, "snapshot '{}': a region of {} bytes is too large to be signed",
           ref.name, ref.version.region_bytes);
    }
    const auto parent = newest_signed(store, ref.version.parent);
    format::VersionSignature signature;
    signature.root = write_tree(ref.version, parent);
    if (parent.has_value()) {
      signature.parent_name = parent->name;
      signature.parent = base::sha256(statement_of(store, *parent));
      signature.number = parent->signature->number + 1;
    }
    signature.key = base::ed25519_public(key);
    ref.signature = signature;
    ref.signature->signature = base::ed25519_sign(key, statement_of(store, ref));
  });
}

void BranchWriter::sign(SnapshotRef& ref) { impl_->sign(ref); }

}  // namespace vellum::store
