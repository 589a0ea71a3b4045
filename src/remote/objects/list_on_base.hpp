// remote/objects/list_on_base.hpp: a list of pieces that says how it differs from a whole one.
//
// Versions that follow each other share most of their pieces. So a list may stand on a whole list,
// its base: it says which pieces of the base it has, too, and has the others itself.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "remote/objects/piece_list.hpp"

namespace vellum::remote {

// What others take of a whole list.
class BaseList {
 public:
  // `hash` is that of its object.
  BaseList(const base::Sha256& hash, const VersionPieces& whole);

  const base::Sha256& hash() const noexcept { return hash_; }
  std::size_t size() const noexcept { return list_.size(); }
  const PieceName& piece(std::size_t number) const { return list_[number]; }
  const std::vector<PackSpan>& spans(std::size_t number) const { return spans_[number]; }
  // The number of the piece, if it is here with these spans.
  std::optional<std::size_t> find(const PieceName& piece, std::span<const PackSpan> spans) const;

 private:
  base::Sha256 hash_;
  PieceList list_;
  std::vector<std::vector<PackSpan>> spans_;
  std::map<ContentName, std::size_t> numbers_;
};

// How many pieces a list on the base has itself.
std::size_t own_piece_count(const BaseList& base, const VersionPieces& pieces);

// As encode_piece_list() and decode_piece_list(). Decoding gives what the whole list gives.
std::vector<std::byte> encode_list_on_base(const VersionPieces& pieces, const BaseList& base,
                                           const format::Uuid& store_id);
const char* decode_list_on_base(std::span<const std::byte> bytes, const format::Uuid& store_id,
                                const BaseList& base, VersionPieces& out);

class BaseLists {
 public:
  // Of many, those that were added last are tried. REQUIRES: the head before the one that names the new
  // list refers to `name`, or it is of that head's generation: else a gc may take it.
  void add(const ObjectName& name, std::shared_ptr<const BaseList> list);

  struct EncodedList {
    ObjectName base;  // size 0: it is a whole list
    std::vector<std::byte> bytes;
  };
  // The list on the base that makes it smallest, or whole where that is not much larger.
  EncodedList encode(const VersionPieces& pieces, const format::Uuid& store_id) const;

 private:
  struct NamedBase {
    ObjectName name;
    std::shared_ptr<const BaseList> list;
  };
  std::vector<NamedBase> bases_;  // the one that was added last stands last
};

}  // namespace vellum::remote
