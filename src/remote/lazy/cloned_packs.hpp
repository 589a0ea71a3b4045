// remote/lazy/cloned_packs.hpp: the remote packs of a lazy clone. The list of their pieces
// (remote/session/missing_pieces.hpp) is read again when it has changed.
#pragma once

#include "remote/fetch/bytes_file.hpp"
#include "remote/lazy/lazy_packs.hpp"

namespace vellum::remote {

class ClonedPacks final : public LazyPacks {
 public:
  // Makes no request.
  ClonedPacks(base::Fs& fs, std::string store_path, std::shared_ptr<ObjectStore> objects,
              const format::StoreSeal& seal, const LazyOptions& options);

  bool is_beside_files() const noexcept override { return true; }
  void learn(const format::Version& version) override;
  void refresh() override;
  const base::File* find(std::uint64_t pack) const noexcept override;

 private:
  const std::shared_ptr<base::Fs> beneath_;
  base::Fs& fs_;
  const std::string store_path_;
  const format::StoreSeal seal_;
  const BytesFile placeholder_;
  base::FileIdentity read_;  // of the list when it was last read
};

}  // namespace vellum::remote
