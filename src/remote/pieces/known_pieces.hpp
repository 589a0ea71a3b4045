// remote/pieces/known_pieces.hpp: the records of known pieces, and the choice of pieces for a
// version.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "remote/objects/piece.hpp"
#include "remote/objects/piece_list.hpp"

namespace vellum::remote {

class KnownPieces {
 public:
  using PieceId = std::uint32_t;

  // Does nothing if the piece is known. REQUIRES: at least one record.
  void add(const PieceName& name, const std::vector<PieceRecord>& records);
  bool has(const PieceName& name) const { return ids_.contains(name); }

  // The pieces that a version reuses, and the records that none of them has. A piece is not reused
  // if the version needs little of it. If a version would have many small pieces, the records of
  // the smaller ones count as missing, so that new pieces merge them.
  struct PiecePlan {
    std::vector<PieceId> used;
    std::vector<std::size_t> missing;  // indices of `needed`, ascending
  };
  PiecePlan plan(const std::vector<PieceRecord>& needed) const;

  // The list of these pieces, in the order of lists, and the spans of a list's pieces.
  PieceList list(std::vector<PieceId> pieces) const;
  std::vector<std::vector<PackSpan>> spans(const PieceList& list) const;
  // The numbers of the list's pieces that have these records, in the order of the records. Omits
  // pieces of which these records are a small part. REQUIRES: the pieces are known.
  std::vector<std::uint32_t> pieces_with(const PieceList& list,
                                         const std::vector<PieceRecord>& records) const;
  // Checks that these pieces have the records with all slots of the given forms. Errc::corrupted
  // names a missing record. REQUIRES: the pieces are known.
  void require_records(const PieceList& list, const std::vector<PieceRecord>& needed) const;
  PieceId id_of(const PieceName& name) const { return ids_.at(name); }

 private:
  struct KnownPiece {
    PieceName name;
    format::RecordRef first;
    std::vector<PackSpan> spans;
    std::uint64_t records_bytes = 0;
  };
  // A record's form in a piece.
  struct RecordForm {
    PieceId piece;
    std::vector<format::SlotRange> dropped;
    bool serves(const PieceRecord& needed) const;
  };
  struct RefHash {
    std::size_t operator()(const format::RecordRef& ref) const noexcept;
  };

  static constexpr PieceId kNoPiece = UINT32_MAX;
  struct PieceChoice {
    std::vector<PieceId> pieces;  // for each record
    std::map<PieceId, std::uint64_t> used_bytes;
  };
  PieceChoice choose(const std::vector<PieceRecord>& needed,
                     const std::set<PieceId>& excluded) const;
  std::vector<PieceId> pieces_to_merge(const std::map<PieceId, std::uint64_t>& used_bytes) const;

  std::vector<KnownPiece> pieces_;
  std::map<PieceName, PieceId> ids_;
  std::unordered_map<format::RecordRef, std::vector<RecordForm>, RefHash> forms_;
};

}  // namespace vellum::remote
