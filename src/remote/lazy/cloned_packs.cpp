#include "remote/lazy/cloned_packs.hpp"

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "remote/session/known_remotes.hpp"
#include "remote/session/missing_pieces.hpp"

namespace vellum::remote {

ClonedPacks::ClonedPacks(base::Fs& fs, std::string store_path, std::shared_ptr<ObjectStore> objects,
                         const format::StoreSeal& seal, const LazyOptions& options)
    : LazyPacks(fs, objects, seal, options,
                store_path + "/" + kRemotesDirectoryName + "/" + kRemoteCacheName,
                store_path + "/tmp"),
      beneath_(base::beneath(fs, store_path)),
      fs_(*beneath_),
      store_path_(std::move(store_path)),
      seal_(seal),
      placeholder_(objects->url(), {}) {
  refresh();
}

void ClonedPacks::learn(const format::Version&) { refresh(); }

// Pieces are never removed: readers of open versions need them even after all packs are fetched.
void ClonedPacks::refresh() {
  const std::string path = missing_pieces_path(store_path_);
  const std::lock_guard lock(mutex_);
  try {
    const auto now = fs_.open(path, base::OpenMode::read_only)->identity();
    if (now == read_) return;
    add(read_missing_pieces(fs_, store_path_, seal_.of_files()), path);
    read_ = now;
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
}

const base::File* ClonedPacks::find(std::uint64_t pack) const noexcept {
  return has_pack(pack) ? &placeholder_ : nullptr;
}

}  // namespace vellum::remote
