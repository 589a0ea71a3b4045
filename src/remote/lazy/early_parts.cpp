#include "remote/lazy/early_parts.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <set>

#include "base/threads/thread_pool.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kFewPieces = 4;
constexpr std::size_t kMaxThreadsOfParts = 32;
// A request costs as much as this many bytes.
constexpr std::uint64_t kRequestBytes = 128u << 10;
constexpr std::uint64_t kMaxPartsBytes = 64u << 20;

// Joins ranges whose gaps cost less than a request.
void join_neighbours(std::vector<ObjectRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ObjectRange& a, const ObjectRange& b) {
    return a.offset_bytes < b.offset_bytes;
  });
  std::vector<ObjectRange> out;
  for (const ObjectRange& range : ranges) {
    const std::uint64_t end = range.offset_bytes + range.length_bytes;
    if (!out.empty() &&
        range.offset_bytes <= out.back().offset_bytes + out.back().length_bytes + kRequestBytes) {
      ObjectRange& last = out.back();
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

// Uses as many threads as the remote serves concurrently. An outage ends it, since each request
// waits for the timeout.
void EarlyParts::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count == 0) return;
  const std::size_t threads = std::min({count, kMaxThreadsOfParts, objects_.connections()});
  base::ThreadPool pool(threads - 1);
  pool.parallel_for(count, [&](std::size_t i, std::size_t) {
    if (has_failed_.load()) return;
    try {
      work(i);
    } catch (const Error& e) {
      if (e.code() == Errc::io) note_outage();
    } catch (const std::exception&) {  // std::bad_alloc
    }
  });
  rethrow_after_timeout();
}

// REQUIRES: called in an exception handler.
void EarlyParts::note_outage() noexcept {
  assert(std::current_exception() != nullptr);
  if (!has_failed_.exchange(true)) outage_ = std::current_exception();
}

void EarlyParts::rethrow_after_timeout() {
  const auto waited = std::chrono::steady_clock::now() - start_;
  if (has_failed_.load() && waited >= fetcher_.timeout()) std::rethrow_exception(outage_);
}

void EarlyParts::fetch_indices(std::span<RemotePiece* const> pieces) {
  for_each(pieces.size(), [&](std::size_t i) {
    const PieceName& name = pieces[i]->name();
    const std::vector<PieceRecord> records = lists_.piece_index(name);
    if (name.index_bytes + records_bytes(records) != name.size_bytes) return;
    pieces[i]->set_index(std::make_unique<PieceIndex>(records, name.index_bytes));
  });
}

// False: the whole piece is to be fetched.
bool EarlyParts::plan_parts(RemotePiece& piece, std::vector<ObjectRange>& records) {
  assert(piece.index() != nullptr);
  join_neighbours(records);
  std::uint64_t bytes = 0, cost = 0;
  for (const ObjectRange& range : records) {
    bytes += range.length_bytes;
    cost += range.length_bytes + kRequestBytes;
  }
  if (cost > piece.name().size_bytes / 2 || bytes_ + bytes > kMaxPartsBytes) return false;
  bytes_ += bytes;
  for (const ObjectRange& range : records) {
    parts_.push_back({&piece, range.offset_bytes, range.length_bytes, {}});
  }
  return true;
}

void EarlyParts::fetch_parts() {
  for_each(parts_.size(), [&](std::size_t i) {
    PartRequest& part = parts_[i];
    part.bytes = lists_.piece_range(part.piece->name(), {part.at_bytes, part.length_bytes});
  });
}

// REQUIRES: the parts of one piece are adjacent in parts_ and ascend.
void EarlyParts::hand_over_parts() {
  std::vector<RemotePiece*> whole;
  for (std::size_t i = 0; i < parts_.size();) {
    RemotePiece* const piece = parts_[i].piece;
    auto found = std::make_unique<PieceParts>();
    bool is_complete = true;
    for (; i < parts_.size() && parts_[i].piece == piece; ++i) {
      is_complete &= !parts_[i].bytes.empty();
      if (!parts_[i].bytes.empty()) found->add(parts_[i].at_bytes, std::move(parts_[i].bytes));
    }
    // The piece may have the parts of another call.
    if (is_complete && piece->take_parts(std::move(found))) {
      with_parts_.push_back(piece);
    } else {
      whole.push_back(piece);
    }
  }
  fetcher_.fetch_early(whole);
}

namespace {

// Calls use(piece, record) for the piece that has the record. If no known index has it, calls
// use(piece, null) for the first piece without an index.
void find_piece(const EarlyParts::ForPieces& for_pieces, const format::RecordRef& ref,
                const std::function<void(RemotePiece&, const IndexedRecord*)>& use) {
  RemotePiece* likely = nullptr;
  const IndexedRecord* record = nullptr;
  for_pieces(ref, [&](RemotePiece& piece) {
    const PieceIndex* const index = piece.index();
    record = index == nullptr ? nullptr : index->find(ref);
    if (record != nullptr || (index == nullptr && likely == nullptr)) likely = &piece;
    return record != nullptr;
  });
  if (likely != nullptr && !likely->is_requested()) use(*likely, record);
}

}  // namespace

void EarlyParts::fetch(std::span<const format::RecordRef> refs, const ForPieces& for_pieces) {
  assert(parts_.empty() && with_parts_.empty());
  std::vector<RemotePiece*> pieces;  // in the order of `refs`
  std::set<const RemotePiece*> known;
  for (const format::RecordRef& ref : refs) {
    find_piece(for_pieces, ref, [&](RemotePiece& piece, const IndexedRecord*) {
      if (known.insert(&piece).second) pieces.push_back(&piece);
    });
  }
  std::vector<RemotePiece*> small, large;
  for (RemotePiece* const piece : pieces) {
    (piece->name().size_bytes / 2 <= kRequestBytes ? small : large).push_back(piece);
  }
  if (large.size() <= kFewPieces) return fetcher_.fetch_early(pieces);
  fetcher_.fetch_early(small);
  fetch_indices(large);
  std::map<RemotePiece*, std::vector<ObjectRange>> records;
  for (const format::RecordRef& ref : refs) {
    find_piece(for_pieces, ref, [&](RemotePiece& piece, const IndexedRecord* record) {
      if (record != nullptr) records[&piece].push_back({record->at_bytes, record->size_bytes});
    });
  }
  std::vector<RemotePiece*> whole;
  for (RemotePiece* const piece : large) {
    if (piece->index() == nullptr || !plan_parts(*piece, records[piece])) whole.push_back(piece);
  }
  fetcher_.fetch_early(whole);
  fetch_parts();
  hand_over_parts();
}

}  // namespace vellum::remote
