#include "remote/lazy/lazy_packs.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/fail.hpp"
#include "remote/fetch/bytes_file.hpp"
#include "remote/lazy/early_parts.hpp"
#include "store/gc/reach/slot_uses.hpp"

namespace vellum::remote {
namespace {

using Readers = std::atomic<std::uint32_t>;

// Counts a reader of a span index. REQUIRES: it is created before the index is loaded.
class Reading {
 public:
  explicit Reading(Readers& readers) noexcept : readers_(readers) { readers_.fetch_add(1); }
  ~Reading() { readers_.fetch_sub(1); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  Readers& readers_;
};

}  // namespace

// The records of one pack in one piece.
struct LazyPacks::PieceSpan {
  PackSpan at;
  RemotePiece* piece = nullptr;
};

// Spans may overlap. They ascend by pack and start. `last_until[i]` is the largest end of the spans
// 0..i of the same pack: there a backward search ends.
struct LazyPacks::SpanIndex {
  std::vector<PieceSpan> spans;
  std::vector<std::uint64_t> last_until;

  explicit SpanIndex(std::vector<PieceSpan> all) : spans(std::move(all)) {
    std::sort(spans.begin(), spans.end(),
              [](const PieceSpan& a, const PieceSpan& b) { return a.at < b.at; });
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const PackSpan& span = spans[i].at;
      const bool same = i > 0 && spans[i - 1].at.pack == span.pack;
      last_until.push_back(same ? std::max(last_until.back(), span.last_offset_bytes)
                                : span.last_offset_bytes);
    }
  }
  // Calls visit(piece) for each piece that may have the record, the closest start first, until it
  // returns true.
  template <typename Visit>
  void for_pieces(const format::RecordRef& ref, const Visit& visit) const noexcept {
    auto at = static_cast<std::size_t>(std::partition_point(spans.begin(), spans.end(),
                                                            [&](const PieceSpan& s) {
                                                              return s.at.pack < ref.pack ||
                                                                     (s.at.pack == ref.pack &&
                                                                      s.at.first_offset_bytes <=
                                                                          ref.offset_bytes);
                                                            }) -
                                       spans.begin());
    while (at-- > 0) {
      const PieceSpan& span = spans[at];
      if (span.at.pack != ref.pack || last_until[at] < ref.offset_bytes) return;
      if (span.at.last_offset_bytes >= ref.offset_bytes && visit(*span.piece)) return;
    }
  }
};

// A forked child leaks it: it has none of the threads that a destruction needs.
struct LazyPacks::RemoteAccess {
  std::shared_ptr<ObjectStore> objects;
  LocalCache lists;
  Remote lists_remote, remote;
  PieceCache cache;
  BytesFile nowhere;
  Fetcher fetcher;

  RemoteAccess(base::Fs& fs, std::shared_ptr<ObjectStore> o, const format::StoreSeal& seal,
               const LazyOptions& options, const std::string& lists_directory,
               const std::string& tmp_directory)
      : objects(std::move(o)),
        lists(fs, lists_directory, tmp_directory),
        lists_remote(*objects, seal, lists_directory.empty() ? nullptr : &lists),
        remote(*objects, seal),
        cache(fs, options.cache_directory, options.cache_bytes,
              objects->objects_key() != nullptr ? objects->objects_key()->keys : nullptr),
        nowhere(objects->url(), {}),
        fetcher(remote, cache, options.timeout) {}
};

LazyPacks::LazyPacks(base::Fs& fs, std::shared_ptr<ObjectStore> objects,
                     const format::StoreSeal& seal, const LazyOptions& options,
                     const std::string& lists_directory, const std::string& tmp_directory)
    : access_(std::make_unique<RemoteAccess>(fs, std::move(objects), seal, options, lists_directory,
                                             tmp_directory)) {
  rebuild_span_index();
}

LazyPacks::~LazyPacks() {
  if (access_->fetcher.is_of_this_process()) {
    // A request that waits for a server would delay closing the store.
    if (access_->objects.use_count() == 1) access_->objects->stop();
    access_->fetcher.stop();  // before the pieces are destroyed
  } else {
    static_cast<void>(access_.release());
  }
}

const Remote& LazyPacks::remote() const noexcept { return access_->lists_remote; }

void LazyPacks::learn_embedded(const Head& head) {
  for (const Remote* remote : {&access_->lists_remote, &access_->remote}) {
    remote->learn_embedded(head);
  }
}

std::vector<RemotePiece*> LazyPacks::add(const VersionPieces& found,
                                         const std::string& roots_path) {
  assert(found.list.size() == found.opening.spans.size());
  std::vector<RemotePiece*> pieces;
  for (std::size_t i = 0; i < found.list.size(); ++i) {
    pieces.push_back(&piece_of(found.list[i], found.opening.spans[i]));
  }
  link(found, pieces);
  add_roots(found.opening, roots_path);
  rebuild_span_index();
  return pieces;
}

// Links each piece to the next one of a sequential read. The pieces of a working set have a chain
// of their own: a sequential read of the others does not need them.
void LazyPacks::link(const VersionPieces& found, std::span<RemotePiece* const> pieces) {
  assert(found.list.size() == pieces.size());
  std::vector<bool> is_used(pieces.size());
  for (const std::uint32_t number : found.in_use.pieces) is_used[number] = true;
  std::array<RemotePiece*, 2> last{};  // of the pieces outside the working set, and inside
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    RemotePiece*& before = last[is_used[i] ? 1 : 0];
    if (before != nullptr && before->following.load() == nullptr)
      before->following.store(pieces[i]);
    before = pieces[i];
  }
}

RemotePiece& LazyPacks::piece_of(const PieceName& name, const std::vector<PackSpan>& spans) {
  std::unique_ptr<RemotePiece>& piece = pieces_[name];
  if (piece == nullptr) {
    piece = std::make_unique<RemotePiece>(access_->fetcher, name,
                                          access_->remote.name_of(piece_key(name.content)), spans);
    for (const PackSpan& span : spans) spans_.push_back({span, piece.get()});
  }
  return *piece;
}

// The roots were in a list whose hash was checked. Roots of two stores that have rewritten a pack
// may have the same place: these are in separate pieces.
void LazyPacks::add_roots(const OpeningData& opening, const std::string& path) {
  std::vector<PieceRecord> roots;
  std::vector<std::byte> bytes;
  TakenPlaces places;
  for_records(opening.roots, opening.root_bytes, 0,
              [&](const PieceRecord& root, std::span<const std::byte> own, std::size_t) {
                if (!known_roots_.insert(root.ref).second) return;
                if (!places.take(root)) {
                  add_roots_piece(std::exchange(roots, {}), std::exchange(bytes, {}), path);
                  places = {};
                  places.take(root);
                }
                roots.push_back(root);
                bytes.insert(bytes.end(), own.begin(), own.end());
              });
  if (!roots.empty()) add_roots_piece(roots, std::move(bytes), path);
}

void LazyPacks::add_roots_piece(std::span<const PieceRecord> roots, std::vector<std::byte> bytes,
                                const std::string& path) {
  const std::vector<PackSpan> spans = spans_of(roots);
  auto piece = std::make_unique<RemotePiece>(access_->fetcher, PieceName{}, path, spans);
  piece->fetched(std::make_unique<BytesFile>(path, std::move(bytes)),
                 std::make_unique<PieceIndex>(roots, 0), true, false);
  for (const PackSpan& span : spans) spans_.push_back({span, piece.get()});
  roots_.push_back(std::move(piece));
}

void LazyPacks::rebuild_span_index() {
  span_indices_.push_back(std::make_unique<const SpanIndex>(spans_));
  span_index_.store(span_indices_.back().get());
  // A reader is counted before it loads the index: without readers, old indices are unused.
  if (readers_.load() == 0) span_indices_.erase(span_indices_.begin(), span_indices_.end() - 1);
}

void LazyPacks::fetch_ahead(std::span<RemotePiece* const> pieces) {
  access_->fetcher.fetch_ahead(pieces);
}

void LazyPacks::for_pieces(const format::RecordRef& ref,
                           const std::function<bool(RemotePiece&)>& visit) const {
  const Reading reading(readers_);
  span_index_.load()->for_pieces(ref, visit);
}

bool LazyPacks::has_pack(std::uint64_t pack) const noexcept {
  const Reading reading(readers_);
  const std::vector<PieceSpan>& spans = span_index_.load()->spans;
  const auto at = std::partition_point(spans.begin(), spans.end(),
                                       [&](const PieceSpan& s) { return s.at.pack < pack; });
  return at != spans.end() && at->at.pack == pack;
}

std::vector<std::uint64_t> LazyPacks::list() const {
  const Reading reading(readers_);
  std::vector<std::uint64_t> out;
  for (const PieceSpan& span : span_index_.load()->spans) {
    if (out.empty() || out.back() != span.at.pack) out.push_back(span.at.pack);
  }
  return out;
}

// REQUIRES: mutex_ is held.
const std::vector<PieceRecord>& LazyPacks::piece_index(const PieceName& name) const {
  auto& index = piece_indices_[name];
  if (!index.empty()) return index;
  try {
    return index = access_->lists_remote.piece_index(name);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
  fail(Errc::corrupted, "{}: the object is missing at the remote",
       access_->remote.name_of(piece_key(name.content)));
}

// By pack and offset; null: the piece does not have it. REQUIRES: mutex_ is held.
const PieceRecord* LazyPacks::record_in(const PieceName& name, const format::RecordRef& ref) const {
  const auto place = [](const format::RecordRef& r) { return std::pair(r.pack, r.offset_bytes); };
  const auto& index = piece_index(name);
  const auto at = std::ranges::lower_bound(index, place(ref), {},
                                           [&](const PieceRecord& r) { return place(r.ref); });
  return at != index.end() && place(at->ref) == place(ref) ? &*at : nullptr;
}

// The pieces that may have the record, without the roots of lists.
std::vector<RemotePiece*> LazyPacks::candidates(const format::RecordRef& ref) const {
  std::vector<RemotePiece*> out;
  for_pieces(ref, [&](RemotePiece& piece) {
    if (piece.name() != PieceName{}) out.push_back(&piece);
    return false;
  });
  return out;
}

std::vector<store::RecordAtRemote> LazyPacks::describe(std::uint64_t pack,
                                                       std::uint64_t offset_bytes) const {
  const format::RecordRef ref{pack, offset_bytes, 0};
  const std::lock_guard lock(mutex_);
  std::vector<store::RecordAtRemote> out;
  for (const RemotePiece* piece : candidates(ref)) {
    const PieceRecord* const found = record_in(piece->name(), ref);
    if (found == nullptr) continue;
    out.push_back({found->type, found->ref, found->place, found->size_bytes, found->dropped});
    if (found->dropped.empty()) break;  // no other form has more slots
  }
  std::ranges::sort(out, {}, [](const store::RecordAtRemote& form) {
    return std::pair(store::slots_in(form.dropped), form.place);
  });
  if (!out.empty()) return out;
  fail(Errc::corrupted, "{}: no piece has the record at byte {} of pack {:016x}",
       access_->objects->url(), offset_bytes, pack);
}

std::vector<std::byte> LazyPacks::fetch(const store::RecordAtRemote& record) const {
  RemotePiece* from = nullptr;
  std::uint64_t at_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    for (RemotePiece* piece : candidates(record.ref)) {
      const PieceRecord* const found = record_in(piece->name(), record.ref);
      if (found == nullptr || found->place != record.place) continue;
      const auto& index = piece_index(piece->name());
      at_bytes = piece->name().index_bytes + records_bytes(std::span(index.data(), found));
      from = piece;
      break;
    }
  }
  if (from == nullptr) {
    fail(Errc::corrupted, "{}: no piece has the record at byte {} of pack {:016x} as it was",
         access_->objects->url(), record.ref.offset_bytes, record.ref.pack);
  }
  std::vector<std::byte> out(static_cast<std::size_t>(record.size_bytes));
  RemotePiece::FetchFailure failure;
  if (!from->await(true, failure)) {
    fail(failure.os_errno == 0 ? Errc::corrupted : Errc::io, "{}: {}", from->path(),
         failure.reason);
  }
  if (from->read(true, out, at_bytes) != 0) {
    fail(Errc::io, "{}: the copy here cannot be read", from->path());
  }
  return out;
}

// Readers check the record. They read the unproven file first; if the record is damaged there, they
// read the proven one, whose piece has the hash of its name.
bool LazyPacks::find_in(const RemotePiece& piece, const format::RecordRef& ref,
                        store::RecordPlace& out) noexcept {
  const PieceIndex& index = *piece.index();
  const IndexedRecord* const record = index.find(ref);
  if (record == nullptr) return false;
  out = {nullptr,
         piece.in_pack(ref.pack, true),
         record->place,
         index.dropped_of(*record),
         piece.in_pack(ref.pack, false),
         0};
  return true;
}

// Searches the pieces with a known index first, then the others, which it fetches. Waits for the
// piece here, since the caller's later reads hold locks. A form without the slots is the result
// only if no other piece has the record with them.
store::RecordPlace LazyPacks::look_up(const SpanIndex& index, const format::RecordRef& ref,
                                      const format::SlotRange& slots) const noexcept {
  store::RecordPlace out{
      "no piece of the version has the record", &access_->nowhere, ref, {}, nullptr, 0};
  const auto has_slots = [&] {
    return out.problem == nullptr && !format::any_dropped(out.dropped, slots.first, slots.count);
  };
  for (const bool only_known : {true, false}) {
    index.for_pieces(ref, [&](RemotePiece& piece) {
      const PieceIndex* const piece_index =
          piece.index();  // loaded once: another thread may set it
      const auto* const record = piece_index == nullptr ? nullptr : piece_index->find(ref);
      if (record == nullptr && (piece_index != nullptr || only_known)) return false;
      const bool is_part_here = record != nullptr && piece.has_part_with(*record);
      RemotePiece::FetchFailure failure;
      if (!is_part_here && !piece.await(false, failure)) {
        out = {failure.reason, piece.in_pack(ref.pack, true), ref, {}, nullptr, failure.os_errno};
        return piece_index != nullptr;
      }
      return find_in(piece, ref, out) && has_slots();
    });
    if (has_slots()) break;
  }
  return out;
}

std::shared_ptr<const void> LazyPacks::fetch_early(std::span<const format::RecordRef> refs) {
  if (!access_->fetcher.is_of_this_process()) return nullptr;
  const auto early =
      std::make_shared<EarlyParts>(access_->lists_remote, *access_->objects, access_->fetcher);
  early->fetch(refs,
               [&](const format::RecordRef& ref, const auto& visit) { for_pieces(ref, visit); });
  return early;
}

store::RecordPlace LazyPacks::locate(const format::RecordRef& ref,
                                     const format::SlotRange& slots) const noexcept {
  const Reading reading(readers_);
  return look_up(*span_index_.load(), ref, slots);
}

}  // namespace vellum::remote
