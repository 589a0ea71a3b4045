// remote/objects/list_on_base.hpp: a list of pieces as the difference to a whole list.
//
// Successive versions share most of their pieces. A list may have a whole list as its base: it
// refers to the shared pieces in the base and has only the others itself.
#pragma once

#include <cassert>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "remote/objects/piece_list.hpp"

namespace vellum::remote {

// The part of a whole list to which other lists refer.
class BaseList {
 public:
  // `hash` is that of the list's object. REQUIRES: `whole` has spans for each of its pieces.
  BaseList(const base::Sha256& hash, const VersionPieces& whole);

  const base::Sha256& hash() const noexcept { return hash_; }
  std::size_t size() const noexcept { return list_.size(); }
  // REQUIRES, of both: number < size().
  const PieceName& piece(std::size_t number) const {
    assert(number < list_.size());
    return list_[number];
  }
  const std::vector<PackSpan>& spans(std::size_t number) const {
    assert(number < spans_.size());
    return spans_[number];
  }
  // The number of the piece if the list has it with these spans.
  std::optional<std::size_t> find(const PieceName& piece, std::span<const PackSpan> spans) const;

 private:
  base::Sha256 hash_;
  PieceList list_;
  std::vector<std::vector<PackSpan>> spans_;
  std::map<ContentName, std::size_t> numbers_;
};

// The number of pieces that a list on the base has itself.
std::size_t own_piece_count(const BaseList& base, const VersionPieces& pieces);

// Like encode_piece_list() and decode_piece_list(). The decoded value is that of the whole list.
std::vector<std::byte> encode_list_on_base(const VersionPieces& pieces, const BaseList& base,
                                           const format::FileSeal& seal);
const char* decode_list_on_base(std::span<const std::byte> bytes, const format::FileSeal& seal,
                                const BaseList& base, VersionPieces& out);

// The whole lists that a push may use as bases.
class BaseLists {
 public:
  // Only the lists that were added last are tried. REQUIRES: the head before the one that names the
  // new list refers to `name`, or `name` has that head's generation: otherwise gc may delete it.
  void add(const ObjectName& name, std::shared_ptr<const BaseList> list);

  struct EncodedList {
    ObjectName base;  // size 0: a whole list
    std::vector<std::byte> bytes;
  };
  // The list on the base that makes it smallest; a whole list if that is not much larger.
  EncodedList encode(const VersionPieces& pieces, const format::FileSeal& seal) const;

 private:
  struct NamedBase {
    ObjectName name;
    std::shared_ptr<const BaseList> list;
  };
  std::vector<NamedBase> bases_;  // in the order in which they were added
};

}  // namespace vellum::remote
