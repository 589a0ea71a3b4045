#include "remote/pieces/base_lists.hpp"

#include <algorithm>

namespace vellum::remote {
namespace {

constexpr std::size_t kMaxBases = 8;
constexpr std::size_t kMinTimesSmaller = 2;  // what one more request of a reader is worth

// Each push sends the pieces that its list has beside the base; a push of every n-th sends a whole
// list. Both cost the same where n is the root of twice the pieces.
bool is_far(const BaseList& base, const VersionPieces& pieces) {
  const std::size_t own = pieces_beside(base, pieces);
  return own * own > 2 * pieces.list.size();
}

}  // namespace

void BaseLists::add(const ObjectName& name, std::shared_ptr<const BaseList> list) {
  std::erase_if(bases_, [&](const Base& base) { return base.name == name; });
  bases_.push_back({name, std::move(list)});
  if (bases_.size() > kMaxBases) bases_.erase(bases_.begin());
}

BaseLists::Encoded BaseLists::encode(const VersionPieces& pieces,
                                     const format::Uuid& store_id) const {
  Encoded best{{}, encode_piece_list(pieces, store_id)};
  std::size_t most_bytes = best.bytes.size() / kMinTimesSmaller;
  for (const Base& base : bases_) {
    if (is_far(*base.list, pieces)) continue;
    auto bytes = encode_list_on_base(pieces, *base.list, store_id);
    if (bytes.size() > most_bytes) continue;
    most_bytes = bytes.size() - 1;
    best = {base.name, std::move(bytes)};
  }
  return best;
}

}  // namespace vellum::remote
