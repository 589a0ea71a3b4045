#include "remote/lazy/early_parts.hpp"

#include <algorithm>
#include <exception>
#include <set>

#include "base/threads/thread_pool.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kFewPieces = 4;
constexpr std::size_t kMaxThreadsOfParts = 32;
// One more request is as dear as so many bytes.
constexpr std::uint64_t kRequestBytes = 128u << 10;
constexpr std::uint64_t kMaxPartsBytes = 64u << 20;

// Joins what lies close together.
void join_close(std::vector<ByteRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset_bytes < b.offset_bytes; });
  std::vector<ByteRange> out;
  for (const ByteRange& range : ranges) {
    const std::uint64_t end = range.offset_bytes + range.length_bytes;
    if (!out.empty() &&
        range.offset_bytes <= out.back().offset_bytes + out.back().length_bytes + kRequestBytes) {
      ByteRange& last = out.back();
      last.length_bytes = std::max(last.offset_bytes + last.length_bytes, end) - last.offset_bytes;
    } else {
      out.push_back(range);
    }
  }
  ranges = std::move(out);
}

}  // namespace

EarlyParts::~EarlyParts() {
  for (RemotePiece* const piece : with_parts_) piece->drop_parts();
}

// By as many threads as the remote serves at once. An outage ends it, since each request waits for as
// long as it may.
void EarlyParts::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count == 0) return;
  const std::size_t threads = std::min({count, kMaxThreadsOfParts, objects_.connections()});
  base::ThreadPool pool(threads - 1);
  pool.parallel_for(count, [&](std::size_t i, std::size_t) {
    if (is_out_.load()) return;
    try {
      work(i);
    } catch (const Error& e) {
      if (e.code() == Errc::io) note_outage();
    } catch (const std::exception&) {  // no memory
    }
  });
  require_time_left();
}

// REQUIRES: an exception is being handled.
void EarlyParts::note_outage() noexcept {
  if (!is_out_.exchange(true)) outage_ = std::current_exception();
}

void EarlyParts::require_time_left() {
  const auto waited = std::chrono::steady_clock::now() - start_;
  if (is_out_.load() && waited >= fetcher_.longest_wait()) std::rethrow_exception(outage_);
}

void EarlyParts::learn(std::span<RemotePiece* const> pieces) {
  for_each(pieces.size(), [&](std::size_t i) {
    const PieceName& name = pieces[i]->name();
    const std::vector<PieceRecord> records = lists_.contents(name);
    if (name.contents_bytes + records_bytes(records) != name.size_bytes) return;
    pieces[i]->learn(std::make_unique<PieceContents>(records, name.contents_bytes));
  });
}

// False: the whole piece is to come.
bool EarlyParts::plan(RemotePiece& piece, std::vector<ByteRange>& records) {
  join_close(records);
  std::uint64_t bytes = 0, cost = 0;
  for (const ByteRange& range : records) {
    bytes += range.length_bytes;
    cost += range.length_bytes + kRequestBytes;
  }
  if (cost > piece.name().size_bytes / 2 || bytes_ + bytes > kMaxPartsBytes) return false;
  bytes_ += bytes;
  for (const ByteRange& range : records) {
    parts_.push_back({&piece, range.offset_bytes, range.length_bytes, {}});
  }
  return true;
}

void EarlyParts::fetch_parts() {
  for_each(parts_.size(), [&](std::size_t i) {
    Part& part = parts_[i];
    part.bytes =
        objects_.get_range(piece_key(part.piece->name().name), {part.at_bytes, part.length_bytes});
  });
}

// REQUIRES: parts of one piece stand side by side and ascend.
void EarlyParts::hand_out() {
  std::vector<RemotePiece*> whole;
  for (std::size_t i = 0; i < parts_.size();) {
    RemotePiece* const piece = parts_[i].piece;
    auto found = std::make_unique<PieceParts>();
    bool is_complete = true;
    for (; i < parts_.size() && parts_[i].piece == piece; ++i) {
      is_complete &= !parts_[i].bytes.empty();
      if (!parts_[i].bytes.empty()) found->add(parts_[i].at_bytes, std::move(parts_[i].bytes));
    }
    // Another call's parts may lie there.
    if (is_complete && piece->take_parts(std::move(found))) {
      with_parts_.push_back(piece);
    } else {
      whole.push_back(piece);
    }
  }
  fetcher_.fetch_early(whole);
}

namespace {

// Calls use(piece, record) for the piece that has the record; where that is not known, for the one that
// is looked into first, with null.
void find_piece(const EarlyParts::ForPieces& for_pieces, const format::RecordRef& ref,
                const std::function<void(RemotePiece&, const PieceContents::Record*)>& use) {
  RemotePiece* likely = nullptr;
  const PieceContents::Record* record = nullptr;
  for_pieces(ref, [&](RemotePiece& piece) {
    const PieceContents* const contents = piece.contents();
    record = contents == nullptr ? nullptr : contents->find(ref);
    if (record != nullptr || (contents == nullptr && likely == nullptr)) likely = &piece;
    return record != nullptr;
  });
  if (likely != nullptr && !likely->is_asked_for()) use(*likely, record);
}

}  // namespace

void EarlyParts::fetch(std::span<const format::RecordRef> refs, const ForPieces& for_pieces) {
  std::vector<RemotePiece*> pieces;  // in the order in which they are needed
  std::set<const RemotePiece*> known;
  for (const format::RecordRef& ref : refs) {
    find_piece(for_pieces, ref, [&](RemotePiece& piece, const PieceContents::Record*) {
      if (known.insert(&piece).second) pieces.push_back(&piece);
    });
  }
  std::vector<RemotePiece*> small, large;
  for (RemotePiece* const piece : pieces) {
    (piece->name().size_bytes / 2 <= kRequestBytes ? small : large).push_back(piece);
  }
  if (large.size() <= kFewPieces) return fetcher_.fetch_early(pieces);
  fetcher_.fetch_early(small);
  learn(large);
  std::map<RemotePiece*, std::vector<ByteRange>> records;
  for (const format::RecordRef& ref : refs) {
    find_piece(for_pieces, ref, [&](RemotePiece& piece, const PieceContents::Record* record) {
      if (record != nullptr) records[&piece].push_back({record->at_bytes, record->size_bytes});
    });
  }
  std::vector<RemotePiece*> whole;
  for (RemotePiece* const piece : large) {
    if (piece->contents() == nullptr || !plan(*piece, records[piece])) whole.push_back(piece);
  }
  fetcher_.fetch_early(whole);
  fetch_parts();
  hand_out();
}

}  // namespace vellum::remote
