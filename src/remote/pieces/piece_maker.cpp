#include "remote/pieces/piece_maker.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "remote/pieces/version_records.hpp"

namespace vellum::remote {
namespace {

// Parts of about kPieceBytes; a larger record is a part of its own. The places in a part are
// disjoint.
std::vector<std::span<const PieceRecord>> parts_of(const std::vector<PieceRecord>& records) {
  std::vector<std::span<const PieceRecord>> out;
  std::size_t first = 0;
  std::uint64_t bytes = 0;
  TakenPlaces places;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const bool is_full = i > first && bytes + records[i].size_bytes > kPieceBytes;
    if (is_full || !places.take(records[i])) {
      out.push_back(std::span(records).subspan(first, i - first));
      first = i;
      bytes = 0;
      places = {};
      places.take(records[i]);
    }
    bytes += records[i].size_bytes;
  }
  if (first < records.size()) out.push_back(std::span(records).subspan(first));
  return out;
}

}  // namespace

PieceMaker::PieceMaker(store::StoreDirectory& store, const Remote& remote,
                       const SeenObjects& seen_objects, std::uint32_t generation,
                       base::ThreadPool& pool, const ProgressFn& progress)
    : store_(store),
      remote_(remote),
      seen_objects_(seen_objects),
      generation_(generation),
      progress_(progress),
      pool_(pool) {}

MadePiece PieceMaker::make_one(std::span<const PieceRecord> records, Uploads& uploads) {
  assert(!records.empty());
  MadePiece out;
  out.records.assign(records.begin(), records.end());
  std::vector<std::byte> bytes = encode_piece_index(records, remote_.file_seal());
  if (bytes.size() > kMaxPieceIndexBytes)
    fail(Errc::invalid_argument, "too many records for a piece");
  out.name.index_bytes = bytes.size();
  for (const PieceRecord& record : records) {
    const auto content = read_record_bytes(store_, record);
    bytes.insert(bytes.end(), content.begin(), content.end());
  }
  out.name.size_bytes = bytes.size();
  out.name.content = {generation_, base::sha256(bytes)};
  const std::string key = piece_key(out.name.content);
  remote_.keep_in_cache(key,
                        std::span(bytes).first(static_cast<std::size_t>(out.name.index_bytes)));
  if (!seen_objects_.has(key, bytes.size())) uploads.add(key, std::move(bytes));
  return out;
}

std::vector<MadePiece> PieceMaker::make(const std::vector<PieceRecord>& records, Uploads& uploads) {
  assert(std::ranges::is_sorted(records, {}, &PieceRecord::ref));
  const auto parts = parts_of(records);
  std::vector<MadePiece> out(parts.size());
  total_bytes_ += records_bytes(records);
  for (std::size_t first = 0; first < parts.size();) {
    const std::size_t count = std::min(parts.size() - first, 4 * (pool_.workers() + 1));
    pool_.parallel_for(count, [&](std::size_t i, std::size_t) {
      out[first + i] = make_one(parts[first + i], uploads);
    });
    for (std::size_t i = first; i < first + count; ++i)
      done_bytes_ += records_bytes(out[i].records);
    first += count;
    if (progress_) progress_({done_bytes_, total_bytes_, "bytes"});
  }
  return out;
}

}  // namespace vellum::remote
