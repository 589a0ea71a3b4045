// remote/lazy/away_packs.hpp: the packs of a remote's versions, read piece by piece.
//
// What it learns of versions stays until it dies: the names of their pieces and, of pieces that were
// here once, which records they have.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "remote/engine/object_store.hpp"
#include "remote/lazy/fetcher.hpp"
#include "remote/lazy/piece_cache.hpp"
#include "remote/session/local_cache.hpp"
#include "remote/session/remote.hpp"
#include "store/pack/packs_elsewhere.hpp"

namespace vellum::remote {

struct LazyOptions {
  std::string cache_directory;  // empty: none
  std::uint64_t cache_bytes = 0;
  std::chrono::milliseconds longest_wait{0};
};

class AwayPacks final : public store::PacksElsewhere {
 public:
  AwayPacks(base::Fs& fs, std::unique_ptr<ObjectStore> objects, const format::Uuid& store_id,
            Head head, const LazyOptions& options);
  ~AwayPacks() override;

  void learn(const format::Version& version) override;
  const base::File* pack() const noexcept override;
  store::RecordPlace locate(const format::RecordRef& ref) const noexcept override;

 private:
  struct Span;
  struct Index;
  struct Parts;
  AwayPiece& piece_of(const PieceName& name, const std::vector<PackSpan>& spans);
  void add_roots(const RemoteName& version, const OpeningIndex& index);
  void rebuild_index();
  store::RecordPlace look_up(const Index& index, const format::RecordRef& ref) const noexcept;
  void fetch_changes(const format::Version& version, std::span<AwayPiece* const> pieces);
  static bool find_in(const AwayPiece& piece, const format::RecordRef& ref,
                      store::RecordPlace& out) noexcept;

  std::unique_ptr<Parts> parts_;
  const Head head_;
  std::mutex mutex_;  // guards what follows, but for the atomic
  std::set<ContentName> learned_;
  std::map<PieceName, std::unique_ptr<AwayPiece>> pieces_;
  std::vector<std::unique_ptr<AwayPiece>> roots_;
  std::vector<Span> spans_;
  std::vector<std::unique_ptr<const Index>>
      indices_;  // the last one; others while readers may use them
  std::atomic<const Index*> index_{nullptr};
  mutable std::atomic<std::uint32_t> readers_{0};  // of an index
};

}  // namespace vellum::remote
