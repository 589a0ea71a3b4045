#include "remote/lazy/away_packs.hpp"

#include <algorithm>
#include <cerrno>

#include "base/fail.hpp"
#include "remote/lazy/bytes_file.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kMostChangesFetched = 32u << 20;

}  // namespace

// Records of one pack in one piece.
struct AwayPacks::Span {
  PackSpan at;
  AwayPiece* piece = nullptr;
};

// Spans may overlap. They ascend by pack and start; `last_until` is the largest end up to each one
// in its pack, so a search backwards knows where to stop.
struct AwayPacks::Index {
  std::vector<Span> spans;
  std::vector<std::uint64_t> last_until;

  explicit Index(std::vector<Span> all) : spans(std::move(all)) {
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.at < b.at; });
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
                                                            [&](const Span& s) {
                                                              return s.at.pack < ref.pack ||
                                                                     (s.at.pack == ref.pack &&
                                                                      s.at.first_offset_bytes <=
                                                                          ref.offset_bytes);
                                                            }) -
                                       spans.begin());
    while (at-- > 0) {
      const Span& span = spans[at];
      if (span.at.pack != ref.pack || last_until[at] < ref.offset_bytes) return;
      if (span.at.last_offset_bytes >= ref.offset_bytes && visit(*span.piece)) return;
    }
  }
};

// A fork has none of the threads that these need to come to an end.
struct AwayPacks::Parts {
  std::unique_ptr<ObjectStore> objects;
  LocalCache lists;
  Remote lists_remote, remote;
  PieceCache cache;
  BytesFile pack;
  Fetcher fetcher;

  Parts(base::Fs& fs, std::unique_ptr<ObjectStore> o, const format::Uuid& store_id,
        const LazyOptions& options)
      : objects(std::move(o)),
        lists(fs, options.cache_directory + "/lists", options.cache_directory + "/tmp"),
        lists_remote(*objects, store_id, options.cache_directory.empty() ? nullptr : &lists),
        remote(*objects, store_id),
        cache(fs, options.cache_directory, options.cache_bytes),
        pack(objects->url(), {}),
        fetcher(remote, cache, options.longest_wait) {}
};

AwayPacks::AwayPacks(base::Fs& fs, std::unique_ptr<ObjectStore> objects,
                     const format::Uuid& store_id, Head head, const LazyOptions& options)
    : parts_(std::make_unique<Parts>(fs, std::move(objects), store_id, options)),
      head_(std::move(head)) {
  rebuild_index();
}

AwayPacks::~AwayPacks() {
  if (parts_->fetcher.is_of_this_process()) {
    parts_->fetcher.stop();  // before the pieces go
  } else {
    static_cast<void>(parts_.release());
  }
}

const base::File* AwayPacks::pack() const noexcept { return &parts_->pack; }

// A version is known by its runs; a snapshot and the head that it was made of have the same.
void AwayPacks::learn(const format::Version& version) {
  if (version.runs.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const RemoteName& name : head_.names) {
    if (name.ref.version.runs != version.runs || name.list.size_bytes == 0) continue;
    if (learned_.contains(name.list.name)) return;
    const VersionPieces found = parts_->lists_remote.pieces_of(name.list);
    std::vector<AwayPiece*> pieces;
    for (std::size_t i = 0; i < found.list.size(); ++i) {
      pieces.push_back(&piece_of(found.list[i], found.index.spans[i]));
      if (i > 0 && pieces[i - 1]->following.load() == nullptr) {
        pieces[i - 1]->following.store(pieces[i]);
      }
    }
    add_roots(name, found.index);
    rebuild_index();
    learned_.insert(name.list.name);
    fetch_changes(version, pieces);
    return;
  }
  fail(Errc::not_found, "{}: the remote has no such version", parts_->objects->url());
}

AwayPiece& AwayPacks::piece_of(const PieceName& name, const std::vector<PackSpan>& spans) {
  std::unique_ptr<AwayPiece>& piece = pieces_[name];
  if (piece == nullptr) {
    piece = std::make_unique<AwayPiece>(parts_->fetcher, name,
                                        parts_->remote.name_of(piece_key(name.name)), spans);
    for (const PackSpan& span : spans) spans_.push_back({span, piece.get()});
  }
  return *piece;
}

// The roots came with the list, whose hash the head has.
void AwayPacks::add_roots(const RemoteName& version, const OpeningIndex& index) {
  if (index.roots.empty()) return;
  const std::string path = parts_->remote.name_of(list_key(version.list.name));
  const std::vector<PackSpan> spans = spans_of(index.roots);
  auto piece = std::make_unique<AwayPiece>(parts_->fetcher, PieceName{}, path, spans);
  piece->fetched(std::make_unique<BytesFile>(path, index.root_bytes),
                 std::make_unique<PieceContents>(index.roots, 0), true, false);
  for (const PackSpan& span : spans) spans_.push_back({span, piece.get()});
  roots_.push_back(std::move(piece));
}

void AwayPacks::rebuild_index() {
  indices_.push_back(std::make_unique<const Index>(spans_));
  index_.store(indices_.back().get());
  // A reader counts itself before it takes an index.
  if (readers_.load() == 0) indices_.erase(indices_.begin(), indices_.end() - 1);
}

// What the version itself has changed stands before the root of its newest run.
void AwayPacks::fetch_changes(const format::Version& version, std::span<AwayPiece* const> pieces) {
  const format::RecordRef& root = version.runs.front().root;
  const std::uint64_t most = std::min(version.bytes_added, kMostChangesFetched);
  std::vector<AwayPiece*> wanted;
  std::uint64_t bytes = 0;
  index_.load()->for_pieces(root, [&](AwayPiece& piece) {
    const auto at = std::find(pieces.begin(), pieces.end(), &piece);
    for (auto i = at == pieces.end() ? 0 : at - pieces.begin() + 1; i > 0; --i) {
      wanted.push_back(pieces[static_cast<std::size_t>(i - 1)]);
      bytes += wanted.back()->name().size_bytes;
      if (bytes >= most) break;
    }
    return !wanted.empty();
  });
  parts_->fetcher.fetch_ahead(wanted);
}

// Each read checks the record. The copy here is tried first; where it is damaged, the file has the
// piece with the hash of its name.
bool AwayPacks::find_in(const AwayPiece& piece, const format::RecordRef& ref,
                        store::RecordPlace& out) noexcept {
  const PieceContents& contents = *piece.contents();
  const PieceContents::Record* const record = contents.find(ref);
  if (record == nullptr) return false;
  out = {nullptr,
         piece.in_pack(ref.pack, true),
         record->place,
         contents.dropped_of(*record),
         piece.in_pack(ref.pack, false),
         0};
  return true;
}

// First in the pieces whose contents are known, then in those that have to come. Waits for the piece
// here, since the reader that follows holds locks.
store::RecordPlace AwayPacks::look_up(const Index& index,
                                      const format::RecordRef& ref) const noexcept {
  store::RecordPlace out{"no piece of the version has the record", pack(), ref, {}, nullptr, 0};
  for (const bool only_known : {true, false}) {
    index.for_pieces(ref, [&](AwayPiece& piece) {
      const PieceContents* const contents = piece.contents();  // another thread may bring it now
      if (contents == nullptr ? only_known : contents->find(ref) == nullptr) return false;
      AwayPiece::Failure failure;
      if (!piece.await(false, failure)) {
        out = {failure.reason, piece.in_pack(ref.pack, true), ref, {}, nullptr, failure.os_errno};
        return contents != nullptr;
      }
      return find_in(piece, ref, out);
    });
    if (out.problem == nullptr) break;
  }
  return out;
}

store::RecordPlace AwayPacks::locate(const format::RecordRef& ref) const noexcept {
  readers_.fetch_add(1);
  const store::RecordPlace out = look_up(*index_.load(), ref);
  readers_.fetch_sub(1);
  return out;
}

}  // namespace vellum::remote
