// remote/pieces/base_lists.hpp: whole lists of pieces that the list of another version may stand on.
#pragma once

#include <memory>
#include <vector>

#include "remote/objects/list_on_base.hpp"

namespace vellum::remote {

class BaseLists {
 public:
  // Of many, those that were added last are tried. REQUIRES: the head before the one that names the new
  // list refers to `name`, or it is of that head's generation: else a gc may take it.
  void add(const ObjectName& name, std::shared_ptr<const BaseList> list);

  struct Encoded {
    ObjectName base;  // size 0: it is a whole list
    std::vector<std::byte> bytes;
  };
  // The list on the base that makes it smallest, or whole where that is not much larger.
  Encoded encode(const VersionPieces& pieces, const format::Uuid& store_id) const;

 private:
  struct Base {
    ObjectName name;
    std::shared_ptr<const BaseList> list;
  };
  std::vector<Base> bases_;  // the one that was added last stands last
};

}  // namespace vellum::remote
