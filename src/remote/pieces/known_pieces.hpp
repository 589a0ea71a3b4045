// remote/pieces/known_pieces.hpp: which records pieces hold, and which pieces make up a version.
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

  // Does nothing for a piece that is known.
  void add(const PieceName& name, const std::vector<PieceRecord>& records);
  bool has(const PieceName& name) const { return ids_.contains(name); }

  // What a version is made of: pieces that are used as they are, and the records that no used piece
  // has. A piece is not used again where the version needs little of it; where a version would have
  // many small pieces, the records of the smaller ones are missing, too, and so come together.
  struct PiecePlan {
    std::vector<PieceId> used;
    std::vector<std::size_t> missing;  // indices of `needed`, ascending
  };
  PiecePlan plan(const std::vector<PieceRecord>& needed) const;

  // The list of these pieces, in the order that lists have, and where their records lie.
  PieceList list(std::vector<PieceId> pieces) const;
  std::vector<std::vector<PackSpan>> spans(const PieceList& list) const;
  // The pieces of a list that have these records, in their order, by their numbers in the list.
  // Those of which the records are a small part are left out.
  std::vector<std::uint32_t> pieces_with(const PieceList& list,
                                         const std::vector<PieceRecord>& records) const;
  // Checks that these pieces have the records, with all slots that the given forms have.
  // Errc::corrupted names one that is missing. REQUIRES: the pieces are known.
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
