#include "store/branch/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <optional>

#include "store/branch/checkpoint/chain_deltas.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/packs/encode/block_encoder.hpp"
#include "store/packs/encode/payload.hpp"
#include "store/page_map/overlay.hpp"

namespace vellum::store {

using format::DeltaBatch;
using format::kPageBytes;
using format::MapEntry;
using format::PageKind;
using format::PageNumber;
using format::PartType;
using format::RecordRef;
using format::RecordType;

namespace {

// A write to one page, in one piece.
struct Item {
  PageNumber page;
  std::uint32_t piece;
  std::uint32_t index;  // of the delta in the batch, or of the page in the block
  std::uint32_t block;
  PartType type;
  bool full() const noexcept { return type != PartType::deltas; }
};

// The writes to one page, oldest first, from its newest full content on.
struct PageItems {
  PageNumber page;
  std::span<const Item> items;
  bool starts_full() const noexcept { return items.front().full(); }
};

// A page whose content is assembled, to be written whole or as one delta against its base.
struct Rebuild {
  PageItems from;
  bool against_base;
  std::uint8_t depth = 0;  // against_base: of its chain
};

// How the delta of a page against its base was computed.
enum class Rebased {
  known,      // from the changed spans of the chain
  compared,   // with the base
  too_large,  // the changed spans are too large: compared with the base to check
  whole,      // the changed spans are too large: no delta
};

// The results of some consecutive rebuilds.
struct Rebuilt {
  std::vector<std::byte> contents;  // of all their pages
  // Of the pages that are to become deltas.
  std::vector<MapEntry> bases;
  std::vector<Rebased> how;
  DeltaBatch deltas;  // a page that equals its base may have none
};

// Consecutive rebuilds, in parts of equal size: one part for each thread.
struct Rounds {
  std::span<const Rebuild> all;
  std::size_t each;
  std::size_t count() const noexcept { return (all.size() + each - 1) / each; }
  std::span<const Rebuild> operator[](std::size_t i) const {
    return all.subspan(i * each, std::min(each, all.size() - i * each));
  }
};

constexpr std::size_t kRebuildsAtOnce = 4096;  // 16 MiB, or twice that when written whole
constexpr std::size_t kChainsAtOnce = 32768;   // some 50 MiB

bool item_before(const Item& a, const Item& b) noexcept {
  return a.page != b.page ? a.page < b.page : a.piece < b.piece;
}

// The permission to encode blocks against base pages; see PackWriter::append_pages().
std::function<bool()> allow_based(const format::Encoding& encoding, Dedup& dedup) {
  if (!encoding.dedup || !encoding.deltas || encoding.compression != base::Compression::zstd)
    return nullptr;
  return [&dedup] { return dedup.keep_gc_out(); };
}

class Checkpointer {
 public:
  Checkpointer(const CheckpointContext& context, std::span<const PageWrites* const> pieces,
               std::vector<MapEntry> written)
      : context_(context),
        packs_(context.packs),
        encoding_(context.encoding),
        dedup_(context.dedup),
        chains_(context.chains),
        threads_(context.threads),
        pieces_(pieces),
        entries_(std::move(written)) {}

  std::vector<MapEntry> run();

 private:
  void gather();
  void sort_out();
  void place_blocks();
  void place_deltas();
  void compose_chains();
  void compose(std::span<const Rebuild> rebuilds, const ChainDeltas& chains, std::size_t first,
               DeltaBatch& out) const;
  void place_composed(std::span<const Rebuild> rebuilds, const ChainDeltas& chains,
                      std::size_t first, const DeltaBatch& deltas);
  void place_rebuilds();
  void rebuild(std::span<const Rebuild> rebuilds, Rebuilt& out);
  Rebased rebase(const Rebuild& r, const std::byte* now, format::DeltaComposer& changed,
                 Rebuilt& out);
  void place_rebuilt(std::span<const Rebuild> rebuilds, const Rebuilt& rebuilt);
  bool place_rebased(PageNumber page, const MapEntry& base, Rebased how, const Rebuilt& rebuilt,
                     std::size_t& next_delta);
  void assemble(const PageItems& p, std::byte* now);
  bool add_known_difference(const PageItems& p, const std::byte* now,
                            format::DeltaComposer& changed, DeltaBatch& out);
  void apply_items(const PageItems& p, format::DeltaComposer& composer) const;
  void read_base(PageNumber page, const MapEntry& base, std::byte* out);
  void find_pages();
  void write_pages();
  void write_deltas(const DeltaBatch& batch, std::span<const std::uint8_t> depths);

  const DeltaBatch::Page& delta_page(const Item& item) const {
    return pieces_[item.piece]->deltas.pages()[item.index];
  }
  bool in_memory(PageNumber page, std::byte* out = nullptr) const {
    return context_.committed != nullptr && context_.committed->copy_page(page, out);
  }
  void add_entry(PageNumber page, PageKind kind) { entries_.push_back({page, 1, 0, kind, 0, {}}); }

  const PageSource& last_checkpointed() const { return context_.last_checkpointed(); }

  const CheckpointContext& context_;
  PackWriter& packs_;
  const format::Encoding& encoding_;
  Dedup& dedup_;
  KnownChains& chains_;
  EncodingThreads& threads_;
  std::span<const PageWrites* const> pieces_;
  std::vector<MapEntry> entries_;

  std::vector<Item> items_;
  std::vector<PageItems> block_pages_;  // pages of blocks without later items
  std::vector<PageItems> pure_deltas_;
  std::vector<Rebuild> rebuilds_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> unpacked_;

  DeltaBatch deltas_, composed_, rebased_;
  std::vector<std::uint8_t> depths_;  // of deltas_
  std::vector<MapEntry> composed_bases_, rebased_bases_;

  std::vector<PageNumber> base_pages_;
  std::vector<std::byte> base_contents_;
};

std::vector<MapEntry> Checkpointer::run() {
  gather();
  sort_out();
  place_blocks();
  place_deltas();
  compose_chains();
  place_rebuilds();
  write_deltas(deltas_, depths_);
  write_deltas(composed_, std::vector<std::uint8_t>(composed_.pages().size(), 1));
  write_deltas(rebased_, std::vector<std::uint8_t>(rebased_.pages().size(), 1));
  chains_.changed.add(std::move(deltas_));
  chains_.changed.add(std::move(composed_), std::move(composed_bases_));
  chains_.changed.add(std::move(rebased_), std::move(rebased_bases_));
  std::sort(entries_.begin(), entries_.end(), [](const MapEntry& a, const MapEntry& b) {
    return a.page != b.page ? a.page < b.page : a.depth > b.depth;
  });
  assert(base_pages_.empty() && base_contents_.empty());
  return std::move(entries_);
}

void Checkpointer::gather() {
  for (std::uint32_t p = 0; p < pieces_.size(); ++p) {
    const PageWrites& piece = *pieces_[p];
    std::uint32_t index = 0;
    for (const auto& d : piece.deltas.pages()) {
      items_.push_back({d.page, p, index++, 0, PartType::deltas});
    }
    for (std::uint32_t b = 0; b < piece.blocks.size(); ++b) {
      index = 0;
      for (const PageNumber page : piece.blocks[b].pages) {
        items_.push_back({page, p, index++, b, PartType::pages});
      }
    }
    for (const PageNumber page : piece.zeros) items_.push_back({page, p, 0, 0, PartType::zeros});
  }
  if (!std::is_sorted(items_.begin(), items_.end(), item_before)) {
    std::sort(items_.begin(), items_.end(), item_before);
  }
}

// Sorts the pages by how they are written. Entries in `entries_` hide their pages: the newest commit
// has written them already.
void Checkpointer::sort_out() {
  std::vector<MapEntry> written = entries_;
  std::sort(written.begin(), written.end(),
            [](const MapEntry& a, const MapEntry& b) { return a.page < b.page; });
  assert(std::ranges::is_sorted(items_, item_before));
  auto hides = written.begin();
  for (std::size_t i = 0; i < items_.size();) {
    const PageNumber page = items_[i].page;
    std::size_t end = i, start = i;
    for (; end < items_.size() && items_[end].page == page; ++end) {
      if (items_[end].full()) start = end;
    }
    i = end;
    while (hides != written.end() && hides->page + hides->count <= page) ++hides;
    if (hides != written.end() && hides->page <= page) continue;

    const PageItems p{page, std::span(items_).subspan(start, end - start)};
    if (!p.starts_full()) {
      pure_deltas_.push_back(p);
    } else if (p.items.size() > 1) {
      rebuilds_.push_back({p, false});
    } else if (p.items[0].type == PartType::zeros) {
      add_entry(page, PageKind::zero);
    } else {
      block_pages_.push_back(p);
    }
  }
}

// Keeps a commit's block unchanged if no later commit has changed its pages. Pages of small blocks
// are regrouped.
void Checkpointer::place_blocks() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> live;
  for (const PageItems& p : block_pages_) ++live[{p.items[0].piece, p.items[0].block}];
  const std::size_t worth_keeping = encoding_.block_bytes / kPageBytes / 2;
  std::vector<const PageBlock*> kept;
  for (auto& [where, pages] : live) {
    const PageBlock& block = pieces_[where.first]->blocks[where.second];
    if (pages != block.pages.size() || pages < worth_keeping) continue;
    pages = 0;
    kept.push_back(&block);
  }
  append_blocks(kept, packs_, encoding_, dedup_, threads_, entries_);
  for (const PageItems& p : block_pages_) {
    if (live[{p.items[0].piece, p.items[0].block}] != 0) rebuilds_.push_back({p, false});
  }
}

void Checkpointer::place_deltas() {
  if (pure_deltas_.empty()) return;
  std::vector<PageNumber> pages;
  pages.reserve(pure_deltas_.size());
  for (const PageItems& p : pure_deltas_) pages.push_back(p.page);
  const std::vector<std::uint8_t> below = chains_.depths.lookup(last_checkpointed(), pages);

  format::DeltaComposer composer;
  deltas_.reserve(pure_deltas_.size());
  depths_.reserve(pure_deltas_.size());
  for (std::size_t i = 0; i < pure_deltas_.size(); ++i) {
    const PageItems& p = pure_deltas_[i];
    assert(!p.starts_full());
    if (below[i] >= kMaxDeltaDepth) {
      rebuilds_.push_back({p, true, below[i]});
      continue;
    }
    if (p.items.size() == 1) {
      const auto& batch = pieces_[p.items[0].piece]->deltas;
      const auto& d = delta_page(p.items[0]);
      deltas_.add_borrowed(p.page, batch.spans_of(d), batch.bytes_of(d));
    } else {
      composer.reset();
      apply_items(p, composer);
      composer.append_to(deltas_, p.page);
    }
    if (deltas_.last_cost_bytes() > kMaxDeltaCostBytes) {
      deltas_.pop_back();
      rebuilds_.push_back({p, false});
      continue;
    }
    depths_.push_back(static_cast<std::uint8_t>(below[i] + 1));
  }
}

// For pages at the end of their chains that are not in memory: composes the chain's deltas and the
// new ones into one, which does not need the page's content. rebuild() handles pages in memory,
// without reading a chain.
void Checkpointer::compose_chains() {
  std::vector<Rebuild> all, others;
  for (const Rebuild& r : rebuilds_) {
    (r.against_base && !in_memory(r.from.page) ? all : others).push_back(r);
  }
  rebuilds_ = std::move(others);
  const Rounds rounds{all, kChainsAtOnce};
  for (std::size_t round = 0; round < rounds.count(); ++round) {
    std::vector<PageNumber> pages;
    pages.reserve(rounds[round].size());
    for (const Rebuild& r : rounds[round]) pages.push_back(r.from.page);
    const ChainDeltas chains(context_.store, last_checkpointed(), pages, threads_);
    const Rounds shares{rounds[round], 256};
    std::vector<DeltaBatch> composed(shares.count());
    threads_.run(composed.size(), [&](std::size_t i, base::Compressor&) {
      compose(shares[i], chains, i * shares.each, composed[i]);
    });
    for (std::size_t i = 0; i < composed.size(); ++i) {
      place_composed(shares[i], chains, i * shares.each, composed[i]);
    }
  }
}

// `first`: the index of the first of the rebuilds in `chains`.
void Checkpointer::compose(std::span<const Rebuild> rebuilds, const ChainDeltas& chains,
                           std::size_t first, DeltaBatch& out) const {
  format::DeltaComposer composer;
  for (std::size_t i = 0; i < rebuilds.size(); ++i) {
    const PageItems& p = rebuilds[i].from;
    composer.reset();
    chains.apply(first + i, composer);
    apply_items(p, composer);
    composer.append_to(out, p.page);
  }
}

// REQUIRES: the items are deltas.
void Checkpointer::apply_items(const PageItems& p, format::DeltaComposer& composer) const {
  for (const Item& item : p.items) {
    assert(item.type == PartType::deltas);
    const auto& batch = pieces_[item.piece]->deltas;
    composer.apply(batch.spans_of(delta_page(item)), batch.bytes_of(delta_page(item)));
  }
}

// A delta that is too large may contain bytes that have changed back, which only a comparison with
// the base shows: such a page is rebuilt.
void Checkpointer::place_composed(std::span<const Rebuild> rebuilds, const ChainDeltas& chains,
                                  std::size_t first, const DeltaBatch& deltas) {
  assert(deltas.pages().size() == rebuilds.size());
  for (std::size_t i = 0; i < rebuilds.size(); ++i) {
    const auto& delta = deltas.pages()[i];
    assert(delta.page == rebuilds[i].from.page);
    composed_.add(delta.page, deltas.spans_of(delta), deltas.bytes_of(delta));
    if (composed_.last_cost_bytes() > kMaxDeltaCostBytes) {
      composed_.pop_back();
      rebuilds_.push_back(rebuilds[i]);
      continue;
    }
    composed_bases_.push_back(chains.base(first + i));
    entries_.push_back(chains.base(first + i));
  }
}

// Assembles the content of a page from the last checkpoint and the items since.
void Checkpointer::assemble(const PageItems& p, std::byte* now) {
  assert(!p.items.empty());
  std::span<const Item> later = p.items;
  if (!p.starts_full()) {
    last_checkpointed().read(p.page, 1, now);
  } else {
    const Item& first = p.items[0];
    if (first.type == PartType::zeros) {
      std::memset(now, 0, kPageBytes);
    } else {
      const auto at = unpacked_.find({first.piece, first.block});
      // The page was in memory when blocks were unpacked, and was evicted since.
      std::vector<std::byte> late;
      if (at == unpacked_.end()) late = unpack_block(pieces_[first.piece]->blocks[first.block]);
      const auto& content = late.empty() ? at->second : late;
      std::memcpy(now, content.data() + first.index * kPageBytes, kPageBytes);
    }
    later = later.subspan(1);
  }
  for (const Item& item : later) {
    const auto& batch = pieces_[item.piece]->deltas;
    format::apply_delta(batch.spans_of(delta_page(item)), batch.bytes_of(delta_page(item)), now);
  }
}

// Assembles the contents of pages, and the bases and deltas of those that are to become deltas.
// Threads: any number, for different pages.
void Checkpointer::rebuild(std::span<const Rebuild> rebuilds, Rebuilt& out) {
  out.contents.resize(rebuilds.size() * kPageBytes);
  format::DeltaComposer changed;
  std::byte* now = out.contents.data();
  for (const Rebuild& r : rebuilds) {
    if (!in_memory(r.from.page, now)) assemble(r.from, now);
    if (r.against_base) out.how.push_back(rebase(r, now, changed, out));
    now += kPageBytes;
  }
}

// Adds the base of a page, and its delta against the base. If the changed bytes are known, the base
// is not read.
Rebased Checkpointer::rebase(const Rebuild& r, const std::byte* now, format::DeltaComposer& changed,
                             Rebuilt& out) {
  const PageNumber page = r.from.page;
  std::optional<MapEntry> base;
  changed.reset();
  const bool known = chains_.changed.touch(page, r.depth, changed, base);
  if (!base) {
    auto chain = last_checkpointed().chain(page);
    base = take_base(chain, page);
  }
  out.bases.push_back(*base);
  if (known && add_known_difference(r.from, now, changed, out.deltas)) return Rebased::known;
  if (known && !chains_.sampler.worth_comparing(page)) return Rebased::whole;
  std::vector<std::byte> base_content(kPageBytes);
  read_base(page, *base, base_content.data());
  out.deltas.add_difference(page, base_content.data(), now);
  return known ? Rebased::too_large : Rebased::compared;
}

// Appends the page's delta against its base: the bytes that the chain has changed (`changed`), and
// those of the items. False: the delta is too large, and nothing was appended.
bool Checkpointer::add_known_difference(const PageItems& p, const std::byte* now,
                                        format::DeltaComposer& changed, DeltaBatch& out) {
  for (const Item& item : p.items) {
    changed.touch(pieces_[item.piece]->deltas.spans_of(delta_page(item)));
  }
  changed.append_to(out, p.page, now);
  if (out.last_cost_bytes() <= kMaxDeltaCostBytes) return true;
  out.pop_back();
  return false;
}

void Checkpointer::read_base(PageNumber page, const MapEntry& base, std::byte* out) {
  assert(base.kind != PageKind::delta);
  if (base.kind == PageKind::zero) {
    std::memset(out, 0, kPageBytes);
    return;
  }
  RecordCache::View view;
  ReadFailure failure;
  failure.page = page;
  if (!context_.store.records().get({base.record, RecordType::pages, {}, {base.slot, 1}}, view,
                                    failure)) {
    failure.page = page;
    last_checkpointed().raise(failure);
  }
  if (base.slot >= view.header().items || !view.holds(base.slot, 1)) {
    view.release();
    last_checkpointed().raise({"the record has no such page", base.record, page, 0});
  }
  std::memcpy(out, view.raw().data() + base.slot * kPageBytes, kPageBytes);
}

void Checkpointer::place_rebuilt(std::span<const Rebuild> rebuilds, const Rebuilt& rebuilt) {
  assert(rebuilt.contents.size() == rebuilds.size() * kPageBytes);
  assert(rebuilt.bases.size() == rebuilt.how.size());
  const std::byte* now = rebuilt.contents.data();
  std::size_t next_base = 0, next_delta = 0;
  for (std::size_t i = 0; i < rebuilds.size(); ++i, now += kPageBytes) {
    const PageNumber page = rebuilds[i].from.page;
    if (rebuilds[i].against_base) {
      const std::size_t b = next_base++;
      const Rebased how = rebuilt.how[b];
      const bool is_delta = place_rebased(page, rebuilt.bases[b], how, rebuilt, next_delta);
      if (how == Rebased::too_large) chains_.sampler.note_compared(is_delta);
      if (is_delta) continue;
    }
    base_pages_.push_back(page);
    base_contents_.insert(base_contents_.end(), now, now + kPageBytes);
  }
}

// False: the delta is too large.
bool Checkpointer::place_rebased(PageNumber page, const MapEntry& base, Rebased how,
                                 const Rebuilt& rebuilt, std::size_t& next_delta) {
  if (how == Rebased::whole) return false;
  const auto& deltas = rebuilt.deltas;
  if (next_delta < deltas.pages().size() && deltas.pages()[next_delta].page == page) {
    const auto& delta = deltas.pages()[next_delta++];
    rebased_.add(page, deltas.spans_of(delta), deltas.bytes_of(delta));
    if (rebased_.last_cost_bytes() > kMaxDeltaCostBytes) {
      rebased_.pop_back();
      return false;
    }
    rebased_bases_.push_back(base);
  }
  entries_.push_back(base);
  return true;
}

void Checkpointer::place_rebuilds() {
  std::sort(rebuilds_.begin(), rebuilds_.end(),
            [](const Rebuild& a, const Rebuild& b) { return a.from.page < b.from.page; });
  for (const Rebuild& r : rebuilds_) {
    const Item& first = r.from.items[0];
    if (first.type != PartType::pages || in_memory(r.from.page)) continue;
    auto& content = unpacked_[{first.piece, first.block}];
    if (content.empty()) content = unpack_block(pieces_[first.piece]->blocks[first.block]);
  }
  if (std::any_of(rebuilds_.begin(), rebuilds_.end(),
                  [](const Rebuild& r) { return !r.from.starts_full(); })) {
    last_checkpointed();  // opened once, before the threads need it
  }
  const Rounds rounds{rebuilds_, kRebuildsAtOnce};
  for (std::size_t round = 0; round < rounds.count(); ++round) {
    const Rounds shares{rounds[round], 64};
    std::vector<Rebuilt> rebuilt(shares.count());
    threads_.run(rebuilt.size(),
                 [&](std::size_t i, base::Compressor&) { rebuild(shares[i], rebuilt[i]); });
    for (std::size_t i = 0; i < rebuilt.size(); ++i) place_rebuilt(shares[i], rebuilt[i]);
    write_pages();
  }
}

// Replaces collected contents that the store already holds by references.
void Checkpointer::find_pages() {
  assert(base_contents_.size() == base_pages_.size() * kPageBytes);
  if (!dedup_.active()) return;
  std::vector<PageNumber> left = base_pages_;
  std::vector<PageRef> found;
  dedup_.find(left, [&](std::size_t i) { return base_contents_.data() + i * kPageBytes; }, found);
  if (found.empty()) return;
  append_found_entries(found, entries_);
  std::size_t kept = 0;
  for (std::size_t i = 0; kept < left.size(); ++i) {
    if (base_pages_[i] != left[kept]) continue;
    std::memmove(base_contents_.data() + kept * kPageBytes, base_contents_.data() + i * kPageBytes,
                 kPageBytes);
    ++kept;
  }
  base_contents_.resize(kept * kPageBytes);
  base_pages_ = std::move(left);
}

// Writes the collected contents in blocks.
void Checkpointer::write_pages() {
  find_pages();
  const std::size_t per_share = format::max_block_bytes(encoding_) / kPageBytes;
  const std::size_t pages = base_pages_.size();
  std::vector<std::vector<EncodedPayload>> shares((pages + per_share - 1) / per_share);
  threads_.run(shares.size(), [&](std::size_t share, base::Compressor& compressor) {
    BlockEncoder blocks(encoding_);
    const std::size_t end = std::min(pages, (share + 1) * per_share);
    for (std::size_t first = share * per_share; first < end;) {
      const std::size_t count = std::min(blocks.pages(), end - first);
      const auto raw = std::span(base_contents_).subspan(first * kPageBytes, count * kPageBytes);
      shares[share].push_back(blocks.encode(compressor, raw));
      first += count;
    }
  });
  std::vector<BlockView> views;
  std::size_t first = 0;
  for (const auto& share : shares) {
    for (const EncodedPayload& p : share) {
      const auto raw = std::span(base_contents_).subspan(first * kPageBytes, p.raw_bytes);
      views.push_back({p.codec, p.raw_bytes, p.stored, p.hash, raw});
      first += p.raw_bytes / kPageBytes;
    }
  }
  assert(first == pages);
  const auto refs = packs_.append_pages(views, allow_based(encoding_, dedup_), threads_);
  assert(refs.size() == views.size());
  first = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (dedup_.active()) {
      dedup_.note(refs[i], Dedup::worth_noting(views[i].raw, views[i].stored.size()));
    }
    append_block_entries(std::span(base_pages_).subspan(first, views[i].pages()), refs[i],
                         entries_);
    first += views[i].pages();
  }
  base_pages_.clear();
  base_contents_.clear();
}

void Checkpointer::write_deltas(const DeltaBatch& batch, std::span<const std::uint8_t> depths) {
  assert(depths.size() == batch.pages().size());
  struct Part {
    std::size_t first, count;
    EncodedPayload payload;
  };
  std::vector<Part> parts;
  for (std::size_t first = 0; first < batch.pages().size();) {
    const std::size_t count = format::deltas_that_fit(batch, first).count;
    parts.push_back({first, count, {}});
    first += count;
  }
  threads_.run(parts.size(), [&](std::size_t i, base::Compressor& compressor) {
    Part& part = parts[i];
    part.payload = encode_deltas(compressor, encoding_,
                                 format::encode_delta_batch(batch, part.first, part.count));
  });
  for (const Part& part : parts) {
    const RecordRef ref = packs_.append(
        {RecordType::deltas, part.payload.codec, part.payload.raw_bytes, part.payload.stored,
         static_cast<std::uint32_t>(part.count), part.payload.hash});
    for (std::size_t i = 0; i < part.count; ++i) {
      entries_.push_back({batch.pages()[part.first + i].page, 1, static_cast<std::uint32_t>(i),
                          PageKind::delta, depths[part.first + i], ref});
    }
  }
}

// The hash for the block's record; empty if the encoding asks for none. A block from the journal
// has no hash yet.
std::vector<std::byte> hash_of(const PageBlock& block, const format::Encoding& encoding) {
  if (!encoding.sha256 || !block.hash.empty()) return block.hash;
  return payload_hash(encoding, unpack_block(block));
}

}  // namespace

void append_blocks(std::span<const PageBlock* const> blocks, PackWriter& packs,
                   const format::Encoding& encoding, Dedup& dedup, EncodingThreads& threads,
                   std::vector<MapEntry>& out) {
  std::vector<std::vector<std::byte>> hashes;
  std::vector<BlockView> views;
  for (const PageBlock* b : blocks) {
    hashes.push_back(hash_of(*b, encoding));
    const auto count = static_cast<std::uint32_t>(b->pages.size());
    views.push_back({b->codec, count * std::uint32_t{kPageBytes}, b->stored, hashes.back()});
  }
  const auto refs = packs.append_pages(views, allow_based(encoding, dedup), threads);
  assert(refs.size() == blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    dedup.note(refs[i], blocks[i]->noted);
    append_block_entries(blocks[i]->pages, refs[i], out);
  }
}

void append_block_entries(std::span<const PageNumber> pages, const RecordRef& record,
                          std::vector<MapEntry>& out) {
  assert(std::ranges::is_sorted(pages));
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t n = 1;
    while (i + n < pages.size() && pages[i + n] == pages[i] + n) ++n;
    out.push_back({pages[i], static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(i),
                   PageKind::base, 0, record});
    i += n;
  }
}

void append_found_entries(std::span<const PageRef> found, std::vector<MapEntry>& out) {
  assert(std::ranges::is_sorted(found, {}, &PageRef::page));
  for (std::size_t i = 0; i < found.size();) {
    const PageRef& first = found[i];
    std::uint32_t n = 1;
    while (i + n < found.size() && found[i + n].page == first.page + n &&
           found[i + n].record == first.record && found[i + n].slot == first.slot + n) {
      ++n;
    }
    out.push_back({first.page, n, first.slot, PageKind::base, 0, first.record});
    i += n;
  }
}

std::vector<MapEntry> checkpoint_pieces(const CheckpointContext& context,
                                        std::span<const PageWrites* const> pieces,
                                        std::vector<MapEntry> written) {
  return Checkpointer(context, pieces, std::move(written)).run();
}

}  // namespace vellum::store
