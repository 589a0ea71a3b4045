// remote/lazy/head_packs.hpp: the packs of a store that is opened by its URL. The pieces of a
// version are those of its list in the head.
#pragma once

#include "remote/fetch/bytes_file.hpp"
#include "remote/lazy/lazy_packs.hpp"
#include "remote/lazy/remote_files.hpp"

namespace vellum::remote {

class HeadPacks final : public LazyPacks {
 public:
  // `names` are the head's; learn() adds the working sets of lists. REQUIRES: they outlive this.
  HeadPacks(base::Fs& fs, std::shared_ptr<ObjectStore> objects, const format::StoreSeal& seal,
            Head head, RemoteFiles& names, const LazyOptions& options);
  void give_lists(Remote::Lists lists) const { remote().give_lists(std::move(lists)); }

  bool is_beside_files() const noexcept override { return false; }
  void learn(const format::Version& version) override;
  void refresh() override {}  // the head never changes
  const base::File* find(std::uint64_t pack) const noexcept override;

 private:
  VersionPieces list_of(const RemoteVersion& name);
  void note_working_set(const format::Version& version, const PagesInUse& in_use);
  void fetch_pages_in_use(const PagesInUse& in_use, std::span<RemotePiece* const> pieces);
  void fetch_changes(const format::Version& version, std::span<RemotePiece* const> pieces);

  base::Fs& fs_;
  const std::string locks_;
  const Head head_;
  RemoteFiles& names_;
  const BytesFile placeholder_;
  std::set<ContentName> learned_;
};

}  // namespace vellum::remote
