#include "remote/pieces/new_pack.hpp"

#include "base/fail.hpp"
#include "format/records/record.hpp"

namespace vellum::remote {

std::vector<std::byte> new_pack_header(const store::StoreDirectory& store, std::uint64_t pack) {
  return format::encode_pack_header({store.superblock().store_id, pack, pack >> 32, 0, 0});
}

void require_not_ours(const store::StoreDirectory& store, const store::Roots& roots,
                      std::uint64_t pack) {
  if (roots.settled_bytes(pack) != 0) return;
  fail(Errc::corrupted,
       "{}: this store will write another pack {:016x} than the remote has: they are two copies of "
       "one store that have gone apart. Clone the remote into a new directory",
       store.path(), pack);
}

}  // namespace vellum::remote
