// store/branch/signing.cpp: the signature of a snapshot, and the pages of its hash tree.
#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <vector>

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

// The signed version whose tree the version may still have. One that another key has signed says
// nothing about the content that this key signs.
std::optional<OpenSigned> tree_before(StoreDirectory& store,
                                      const std::optional<SnapshotRef>& parent,
                                      const Version& version, const base::Ed25519Public& key) {
  if (!parent.has_value() || parent->signature->key != key) return std::nullopt;
  OpenSigned before = open_signed(store, parent->name);
  if (!(before.ref == *parent) || parent->version.region_bytes > version.region_bytes) {
    return std::nullopt;
  }
  return before;
}

TreeHash new_tree(const Version& version, const PageSource& now, TreePieces& pieces) {
  std::vector<PageNumber> fresh, stale;
  const TreeHash root = root_of_content(
      now, version.region_bytes, [&](unsigned level, std::uint64_t number, const TreeNodes& nodes) {
        fresh.push_back(format::tree_page(level, number));
        pieces.add(level, number, nodes);
      });
  std::ranges::sort(fresh);
  std::ranges::set_difference(tree_pages_of(now), fresh, std::back_inserter(stale));
  for (const PageNumber page : stale) pieces.add_zero(page);
  return root;
}

}  // namespace

// Writes what has changed in the tree since the signed version before. Without that version, or if the
// stored tree is not that version's, computes the tree from the whole content.
TreeHash BranchWriter::Impl::write_tree(Version& version, const std::optional<SnapshotRef>& parent,
                                        const base::Ed25519Public& key) {
  const std::shared_ptr<PageSource> now = open_with_tree(store, version, label);
  const std::uint64_t bytes_before =
      version.bytes_added - (packs->bytes_appended() - counted_bytes);
  EncodingThreads threads(store.pool(), packs->compressor());
  std::vector<MapEntry> written;
  checkpointing = true;
  const auto write_blocks = [&](std::vector<PageBlock>&& blocks) {
    std::vector<const PageBlock*> all;
    for (const PageBlock& block : blocks) all.push_back(&block);
    append_blocks(all, *packs, encoding, dedup, threads, written);
  };
  std::optional<TreePieces> pieces;
  pieces.emplace(encoding, *now, packs->compressor(), write_blocks);
  std::optional<TreeHash> root;
  if (const auto before = tree_before(store, parent, version, key)) {
    root = root_after(*before, *now, *now, version,
                      [&](const auto&... page) { pieces->add(page...); });
  }
  if (!root.has_value()) {
    written.clear();  // no map names these records
    pieces.emplace(encoding, *now, packs->compressor(), write_blocks);
    root = new_tree(version, *now, *pieces);
  }
  const auto changed = pieces->finish();
  if (changed.empty() && written.empty()) return *root;
  checkpointed = now;  // the deltas of tree pages are against these
  auto entries = write_pieces(version, changed, std::move(written), nullptr, dedup, threads);
  chains.depths.update(entries);
  if (!entries.empty()) add_run(version, std::move(entries), threads);
  write_version_copy(version, bytes_before);
  checkpointed.reset();
  return *root;
}

namespace {

// Of a parent that somebody has forged, nothing is taken.
void require_parent(const PackStore& store, const SnapshotRef& parent) {
  if (signature_fits(store, parent) && parent.signature->number < UINT64_MAX) return;
  fail(Errc::untrusted,
       "snapshot '{}': its signature is forged, or of another version: remove it, or put the "
       "genuine one in its place",
       parent.name);
}

}  // namespace

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
    signature.key = base::ed25519_public(key);
    if (parent.has_value()) {
      require_parent(store, *parent);
      signature.parent_name = parent->name;
      signature.parent = base::sha256(statement_of(store, *parent));
      signature.number = parent->signature->number + 1;
    }
    signature.root = write_tree(ref.version, parent, signature.key);
    ref.signature = signature;
    ref.signature->signature = base::ed25519_sign(key, statement_of(store, ref));
  });
}

void BranchWriter::sign(SnapshotRef& ref) { impl_->sign(ref); }

}  // namespace vellum::store
