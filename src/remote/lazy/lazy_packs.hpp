// remote/lazy/lazy_packs.hpp: packs at a remote, read piece by piece.
//
// The names of pieces and the indices of fetched pieces stay in memory for the lifetime of the
// object.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "remote/engine/object_store.hpp"
#include "remote/fetch/fetcher.hpp"
#include "remote/fetch/piece_cache.hpp"
#include "remote/session/local_cache.hpp"
#include "remote/session/remote.hpp"
#include "store/packs/remote_packs.hpp"

namespace vellum::remote {

struct LazyOptions {
  std::string cache_directory;  // empty: none
  std::uint64_t cache_bytes = 0;
  std::chrono::milliseconds timeout{0};
};

// A subclass provides the lists of pieces.
class LazyPacks : public store::RemotePacks {
 public:
  ~LazyPacks() override;

  std::vector<std::uint64_t> list() const override;
  store::RecordPlace locate(const format::RecordRef& ref,
                            const format::SlotRange& slots) const noexcept override;
  std::shared_ptr<const void> fetch_early(std::span<const format::RecordRef> refs) override;
  std::vector<store::RecordAtRemote> describe(std::uint64_t pack,
                                              std::uint64_t offset_bytes) const override;
  std::vector<std::byte> fetch(const store::RecordAtRemote& record) const override;

 protected:
  // `lists_directory` is the cache of lists and piece indices; empty: none.
  LazyPacks(base::Fs& fs, std::shared_ptr<ObjectStore> objects, const format::StoreSeal& seal,
            const LazyOptions& options, const std::string& lists_directory,
            const std::string& tmp_directory);

  // For lists and indices; it uses the cache of lists.
  const Remote& remote() const noexcept;
  // The pieces of these versions may be in heads.
  void learn_embedded(const Head& head);
  // Adds unknown pieces and roots. `roots_path` is the object with the roots, for messages. Returns
  // the pieces of `found`, in its order. REQUIRES: mutex_ is held.
  std::vector<RemotePiece*> add(const VersionPieces& found, const std::string& roots_path);
  void fetch_ahead(std::span<RemotePiece* const> pieces);
  // Calls visit(piece) for each piece that may have the record, until it returns true.
  void for_pieces(const format::RecordRef& ref,
                  const std::function<bool(RemotePiece&)>& visit) const;
  // Whether a piece has records of the pack. Neither allocates nor locks.
  bool has_pack(std::uint64_t pack) const noexcept;

  mutable std::mutex mutex_;  // guards the following members except the atomics

 private:
  struct PieceSpan;
  struct SpanIndex;
  struct RemoteAccess;
  static void link(const VersionPieces& found, std::span<RemotePiece* const> pieces);
  RemotePiece& piece_of(const PieceName& name, const std::vector<PackSpan>& spans);
  void add_roots(const OpeningData& opening, const std::string& path);
  void rebuild_span_index();
  store::RecordPlace look_up(const SpanIndex& index, const format::RecordRef& ref,
                             const format::SlotRange& slots) const noexcept;
  void add_roots_piece(std::span<const PieceRecord> roots, std::vector<std::byte> bytes,
                       const std::string& path);
  static bool find_in(const RemotePiece& piece, const format::RecordRef& ref,
                      store::RecordPlace& out) noexcept;
  const std::vector<PieceRecord>& piece_index(const PieceName& name) const;
  const PieceRecord* record_in(const PieceName& name, const format::RecordRef& at) const;
  std::vector<RemotePiece*> candidates(const format::RecordRef& ref) const;

  std::unique_ptr<RemoteAccess> access_;
  std::map<PieceName, std::unique_ptr<RemotePiece>> pieces_;
  std::vector<std::unique_ptr<RemotePiece>> roots_;
  std::set<format::RecordRef> known_roots_;
  std::vector<PieceSpan> spans_;
  std::vector<std::unique_ptr<const SpanIndex>>
      span_indices_;  // the last one is current; the others may have readers
  std::atomic<const SpanIndex*> span_index_{nullptr};
  mutable std::atomic<std::uint32_t> readers_{0};                        // of a span index
  mutable std::map<PieceName, std::vector<PieceRecord>> piece_indices_;  // for describe()
};

}  // namespace vellum::remote
