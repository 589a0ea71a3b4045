#include "remote/session/missing_pieces.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <set>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "remote/session/known_remotes.hpp"

namespace vellum::remote {
namespace {

constexpr const char* kListSuffix = ".pieces";

std::string name_of_list() { return std::string(kDefaultRemoteName) + kListSuffix; }

// By the first record, as in all lists.
void sort_pieces(VersionPieces& pieces) {
  std::vector<std::size_t> order(pieces.list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return std::tie(pieces.opening.spans[a].front(), pieces.list[a]) <
           std::tie(pieces.opening.spans[b].front(), pieces.list[b]);
  });
  PieceList list;
  std::vector<std::vector<PackSpan>> spans;
  for (const std::size_t i : order) {
    list.push_back(pieces.list[i]);
    spans.push_back(std::move(pieces.opening.spans[i]));
  }
  pieces.list = std::move(list);
  pieces.opening.spans = std::move(spans);
}

// Adds only the roots of runs: other records would make the file larger with each version.
void add_roots(OpeningData& to, const OpeningData& more) {
  struct OwnedRoot {
    PieceRecord record;
    std::vector<std::byte> bytes;
  };
  std::map<format::RecordRef, OwnedRoot> roots;
  for (const OpeningData* opening : {&std::as_const(to), &more}) {
    for_records(opening->roots, opening->root_bytes, 0,
                [&](const PieceRecord& record, std::span<const std::byte> bytes, std::size_t) {
                  if (record.type != format::RecordType::run_root) return;
                  roots.try_emplace(record.ref, OwnedRoot{record, {bytes.begin(), bytes.end()}});
                });
  }
  to.roots.clear();
  to.root_bytes.clear();
  for (auto& [ref, root] : roots) {
    to.roots.push_back(std::move(root.record));
    to.root_bytes.insert(to.root_bytes.end(), root.bytes.begin(), root.bytes.end());
  }
}

}  // namespace

std::string missing_pieces_path(const std::string& store_path) {
  return store_path + "/" + kRemotesDirectoryName + "/" + name_of_list();
}

bool has_missing_pieces(base::Fs& fs, const std::string& store_path) {
  return fs.exists(missing_pieces_path(store_path));
}

VersionPieces read_missing_pieces(base::Fs& fs, const std::string& store_path,
                                  const format::FileSeal& seal) {
  const std::string path = missing_pieces_path(store_path);
  VersionPieces out;
  const auto bytes = base::read_whole(fs, path, kMaxListBytes);
  const char* problem = decode_piece_list(bytes, seal, out);
  if (problem != nullptr) fail(Errc::corrupted, "{}: {}", path, problem);
  return out;
}

void write_missing_pieces(store::StoreDirectory& store, const VersionPieces& pieces) {
  const auto bytes = encode_piece_list(pieces, store.file_seal());
  VersionPieces again;
  if (const char* problem = decode_piece_list(bytes, store.file_seal(), again)) {
    fail(Errc::invalid_argument,
         "{}: {}: clone without --lazy, or fetch the packs (`vellum pull --packs`)",
         missing_pieces_path(store.path()), problem);
  }
  make_remotes_directory(store);
  base::publish_file(store.fs(), store.tmp_directory(), remotes_directory(store), name_of_list(),
                     bytes, true);
}

void remove_missing_pieces(store::StoreDirectory& store) {
  store.fs().unlink(missing_pieces_path(store.path()));
  store.fs().sync_directory(remotes_directory(store));
}

bool add_pieces(VersionPieces& to, const VersionPieces& more) {
  assert(to.list.size() == to.opening.spans.size());
  assert(more.list.size() == more.opening.spans.size());
  const std::set<PieceName> known(to.list.begin(), to.list.end());
  const std::size_t pieces = to.list.size(), roots = to.opening.roots.size();
  for (std::size_t i = 0; i < more.list.size(); ++i) {
    if (known.contains(more.list[i])) continue;
    to.list.push_back(more.list[i]);
    to.opening.spans.push_back(more.opening.spans[i]);
  }
  sort_pieces(to);
  add_roots(to.opening, more.opening);
  return to.list.size() != pieces || to.opening.roots.size() != roots;
}

void remove_remote(store::StoreDirectory& store, const std::string& name) {
  if (name == kDefaultRemoteName && has_missing_pieces(store.fs(), store.path())) {
    fail(Errc::busy,
         "{}: packs of the store exist only at remote '{}': `vellum pull --packs` fetches them",
         store.path(), name);
  }
  remove_remote_file(store, name);
}

}  // namespace vellum::remote
