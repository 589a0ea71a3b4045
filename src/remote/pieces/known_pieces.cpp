#include "remote/pieces/known_pieces.hpp"

#include <algorithm>
#include <cassert>

#include "base/bytes/mix64.hpp"
#include "base/fail.hpp"
#include "remote/pieces/merged_record.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kSmallPieceBytes = 1u << 20;
constexpr std::size_t kMaxSmallPieces = 128;
constexpr int kMaxPlanRounds = 4;
constexpr std::uint64_t kMinShare = 4;  // a piece is reused if the version needs a quarter of it

}  // namespace

std::size_t KnownPieces::RefHash::operator()(const format::RecordRef& ref) const noexcept {
  return static_cast<std::size_t>(base::mix64(ref.pack) ^ base::mix64(ref.offset_bytes + ref.tag));
}

// Compares with all slots of the local form. The version may need fewer; to find that out costs
// more.
bool KnownPieces::RecordForm::serves(const PieceRecord& needed) const {
  return has_slots_of(dropped, needed.dropped);
}

void KnownPieces::require_records(const PieceList& list,
                                  const std::vector<PieceRecord>& needed) const {
  assert(std::ranges::all_of(list, [&](const PieceName& name) { return has(name); }));
  std::set<PieceId> own;
  for (const PieceName& name : list) own.insert(id_of(name));
  for (const PieceRecord& record : needed) {
    const auto forms = forms_.find(record.ref);
    if (forms != forms_.end() && std::ranges::any_of(forms->second, [&](const RecordForm& form) {
          return own.contains(form.piece) && form.serves(record);
        })) {
      continue;
    }
    fail(Errc::corrupted, "pack {:016x} at byte {}: the pieces of the version lack {}",
         record.ref.pack, record.ref.offset_bytes, forms == forms_.end() ? "a record" : "pages");
  }
}

void KnownPieces::add(const PieceName& name, const std::vector<PieceRecord>& records) {
  assert(!records.empty());
  const auto [at, fresh] = ids_.try_emplace(name, static_cast<PieceId>(pieces_.size()));
  if (!fresh) return;
  pieces_.push_back({name, records.front().ref, spans_of(records), records_bytes(records)});
  for (const PieceRecord& r : records) {
    forms_[r.ref].push_back({at->second, r.dropped});
  }
}

// The smaller half of too many small pieces, and larger ones as long as each at most doubles the
// sum. Thus a record is uploaded again O(log n) times, where n is the size of its final piece.
std::vector<KnownPieces::PieceId> KnownPieces::pieces_to_merge(
    const std::map<PieceId, std::uint64_t>& used_bytes) const {
  std::vector<PieceId> small;
  for (const auto& use : used_bytes) {
    if (pieces_[use.first].records_bytes < kSmallPieceBytes) small.push_back(use.first);
  }
  if (small.size() <= kMaxSmallPieces) return {};
  std::ranges::sort(small, {},
                    [&](PieceId id) { return std::pair(pieces_[id].records_bytes, id); });
  std::uint64_t merged_bytes = 0;
  std::size_t count = 0;
  for (; count < small.size(); ++count) {
    const std::uint64_t bytes = pieces_[small[count]].records_bytes;
    if (count >= kMaxSmallPieces / 2 && bytes > merged_bytes) break;
    merged_bytes += bytes;
  }
  small.resize(count);
  return small;
}

// For each record the largest piece that has it and is not excluded: merged pieces stay merged.
KnownPieces::PieceChoice KnownPieces::choose(const std::vector<PieceRecord>& needed,
                                             const std::set<PieceId>& excluded) const {
  PieceChoice out;
  out.pieces.assign(needed.size(), kNoPiece);
  const auto is_preferred = [&](PieceId a, PieceId b) {
    if (b == kNoPiece) return true;
    const std::uint64_t bytes_a = pieces_[a].records_bytes, bytes_b = pieces_[b].records_bytes;
    return bytes_a != bytes_b ? bytes_a > bytes_b : a < b;
  };
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const auto at = forms_.find(needed[i].ref);
    if (at == forms_.end()) continue;
    PieceId& chosen = out.pieces[i];
    for (const RecordForm& form : at->second) {
      if (excluded.contains(form.piece) || !form.serves(needed[i])) continue;
      if (is_preferred(form.piece, chosen)) chosen = form.piece;
    }
    if (chosen != kNoPiece) out.used_bytes[chosen] += needed[i].size_bytes;
  }
  return out;
}

KnownPieces::PiecePlan KnownPieces::plan(const std::vector<PieceRecord>& needed) const {
  std::set<PieceId> excluded;  // pieces of which the version needs too little
  PieceChoice choice;
  for (int round = 0; round < kMaxPlanRounds; ++round) {
    choice = choose(needed, excluded);
    const std::size_t before = excluded.size();
    for (const auto& [id, bytes] : choice.used_bytes) {
      if (bytes < pieces_[id].records_bytes / kMinShare) excluded.insert(id);
    }
    if (excluded.size() == before) break;
  }
  auto& used_bytes = choice.used_bytes;
  std::erase_if(used_bytes, [&](const auto& use) { return excluded.contains(use.first); });
  for (const PieceId id : pieces_to_merge(used_bytes)) used_bytes.erase(id);
  PiecePlan out;
  for (const auto& use : used_bytes) out.used.push_back(use.first);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (!used_bytes.contains(choice.pieces[i])) out.missing.push_back(i);
  }
  return out;
}

PieceList KnownPieces::list(std::vector<PieceId> pieces) const {
  assert(std::ranges::all_of(pieces, [&](PieceId id) { return id < pieces_.size(); }));
  std::sort(pieces.begin(), pieces.end(), [&](PieceId a, PieceId b) {
    return std::tie(pieces_[a].first, pieces_[a].name) <
           std::tie(pieces_[b].first, pieces_[b].name);
  });
  pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
  PieceList out;
  for (const PieceId id : pieces) out.push_back(pieces_[id].name);
  return out;
}

std::vector<std::uint32_t> KnownPieces::pieces_with(const PieceList& list,
                                                    const std::vector<PieceRecord>& records) const {
  assert(std::ranges::all_of(list, [&](const PieceName& name) { return has(name); }));
  std::unordered_map<PieceId, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < list.size(); ++i) numbers.emplace(id_of(list[i]), i);
  std::vector<std::uint64_t> bytes(list.size());
  std::vector<std::uint32_t> out;
  for (const PieceRecord& record : records) {
    const auto forms = forms_.find(record.ref);
    if (forms == forms_.end()) continue;
    for (const RecordForm& form : forms->second) {
      const auto number = numbers.find(form.piece);
      if (number == numbers.end() || !form.serves(record)) continue;
      if (bytes[number->second] == 0) out.push_back(number->second);
      bytes[number->second] += record.size_bytes;
      break;
    }
  }
  std::erase_if(out, [&](std::uint32_t number) {
    return bytes[number] < pieces_[id_of(list[number])].records_bytes / kMinShare;
  });
  return out;
}

std::vector<std::vector<PackSpan>> KnownPieces::spans(const PieceList& list) const {
  std::vector<std::vector<PackSpan>> out;
  out.reserve(list.size());
  for (const PieceName& name : list) out.push_back(pieces_[id_of(name)].spans);
  return out;
}

}  // namespace vellum::remote
