#include "remote/pieces/named_packs.hpp"

#include <set>

#include "base/files/new_file.hpp"
#include "remote/pieces/new_pack.hpp"
#include "store/gc/reach/roots.hpp"
#include "store/page_map/run_reader.hpp"

namespace vellum::remote {
namespace {

std::set<std::uint64_t> missing_packs(store::StoreDirectory& store,
                                      const format::Version& version) {
  std::set<std::uint64_t> out;
  for (const format::RunRef& ref : version.runs) {
    for (const std::uint64_t pack : store::read_run_root(store, ref).packs) {
      if (store.packs().is_remote(pack) || store.fs().exists(store.packs().path_of(pack))) continue;
      out.insert(pack);
    }
  }
  return out;
}

}  // namespace

void make_named_packs(store::StoreDirectory& store, const format::Version& version) {
  const auto missing = missing_packs(store, version);
  if (missing.empty()) return;
  const store::Roots roots = store::read_roots(store);
  for (const std::uint64_t pack : missing) {
    require_not_ours(store, roots, pack);
    const std::string path = store.packs().path_of(pack);
    base::publish_file(store.fs(), store.tmp_directory(), base::parent_of(path),
                       path.substr(path.rfind('/') + 1), new_pack_header(store, pack), false);
  }
  store.packs().refresh();
}

}  // namespace vellum::remote
