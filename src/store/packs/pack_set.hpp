// store/packs/pack_set.hpp: the packs of a store, open for reading.
//
// A pack may be rewritten under its name (store/gc/pack_rewriter.hpp) or moved to another directory
// (store/gc/pack_mover.hpp) while it is open here. The old file stays open and serves its readers
// for as long as the set lives. When gc has removed a pack, refresh() closes its file
// (store/packs/pack_file.hpp) and only a few bytes of memory remain.
//
// A cache directory may hold a copy of a pack. The copy is opened beside the pack, never in its
// place. Its bytes count only if tag and checksum prove that they are the record that a reference
// means. Code that makes durable references or frees anything does not read copies.
//
// The first packs are held open by their descriptors, the others by one mapping each
// (base/files/mapped_file.hpp): a store may have more packs than a process may have descriptors. A pin
// needs a descriptor while it stands.
//
// Threads: all calls from any thread. find() and locate() allocate nothing and take no lock,
// because the fault handler uses them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/files/file.hpp"
#include "format/records/record.hpp"
#include "format/records/translation.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/types.hpp"
#include "store/packs/pack_file.hpp"
#include "store/packs/pack_places.hpp"
#include "store/packs/record_place.hpp"
#include "store/packs/remote_packs.hpp"

namespace vellum::store {

// The translation table of a rewritten pack; null for any other pack. Throws Errc::corrupted,
// naming the file.
std::unique_ptr<const format::Translation> read_translation(const base::File& file,
                                                            const format::PackHeader& header);

class PackSet {
 public:
  // `elsewhere`, if it is not null, has the packs that are no files of the store.
  PackSet(base::Fs& fs, std::string store_path, const format::Superblock& superblock,
          std::shared_ptr<RemotePacks> elsewhere = nullptr);
  ~PackSet();

  // Opens a pack unless it is open already, and checks its header. Throws Errc::corrupted when the
  // pack is missing, is not a regular file or belongs elsewhere, and Errc::io when it may be in an
  // archive that is absent. The message names the file.
  void open(std::uint64_t pack);
  // Whether the store has packs that are files, and takes new ones.
  bool are_files() const noexcept { return elsewhere_ == nullptr || elsewhere_->is_beside_files(); }
  // Whether a pack, which was open()ed, is elsewhere.
  bool is_remote(std::uint64_t pack) const noexcept;
  // What is known of a record of such a pack, and its bytes: as in RemotePacks.
  std::vector<RecordAtRemote> describe(std::uint64_t pack, std::uint64_t offset_bytes) const;
  std::vector<std::byte> fetch(const RecordAtRemote& record) const;
  // Prepares for a version of which packs may be elsewhere. Before its records are read.
  void learn(const format::Version& version) const;
  // An open pack, or what stands for one elsewhere, or nullptr.
  const base::File* find(std::uint64_t pack) const noexcept;
  // The translation table of an open pack that was rewritten, or nullptr.
  const format::Translation* translation(std::uint64_t pack) const noexcept;
  // With these slots, if they are anywhere.
  RecordPlace locate(const format::RecordRef& ref,
                     const format::SlotRange& slots = {}) const noexcept;
  // Whether there may be packs elsewhere, and what prepares for their records, as in RemotePacks.
  bool reaches_remote() const noexcept { return elsewhere_ != nullptr; }
  std::shared_ptr<const void> fetch_early(std::vector<format::RecordRef> refs) const;
  // Pins a byte of a pack for all processes (base::File::pin_byte) until the last copy of the
  // result dies, which may be after the set. The pin is on the file that has the pack's name now.
  // REQUIRES: names are held (store/catalog/lock/version_pin.hpp), so that no pack gets another file
  // meanwhile. Nobody takes away what is elsewhere, so nothing is locked there.
  std::shared_ptr<const void> pin(std::uint64_t pack, std::uint64_t offset_bytes);
  // Switches to the file that has the pack's name now. This is needed before places in a pack are
  // passed on and before the pack is changed. Throws what open() throws, even when no file has the
  // name any more; the old file stays then. REQUIRES: names are held, or the lock of gc.
  void refresh(std::uint64_t pack);
  // The same for all open packs except those whose names are gone; it closes those of them that gc
  // has removed. Throws only after it has tried all packs.
  void refresh();
  const PackPlaces& places() const noexcept { return places_; }
  // Where the pack lies now, or where it would be written if it lies nowhere.
  std::string path_of(std::uint64_t pack) const { return places_.path_of(pack); }
  // Every pack that is a file, ascending. Throws when an archive is absent.
  std::vector<std::uint64_t> list() const { return places_.list(); }
  // The same with those that are elsewhere.
  std::vector<std::uint64_t> list_with_away() const;
  // Those that are elsewhere alone, as of the last refresh().
  std::vector<std::uint64_t> list_away() const;

 private:
  // A table that only grows: open addressing over atomic pointers, replaced when half full; old
  // tables are kept until the set dies, so a reader in the fault handler never sees freed memory.
  struct Table;
  struct OpenPack;
  std::shared_ptr<OpenPack> open_file(std::uint64_t pack) const;
  std::unique_ptr<base::File> open_copy(std::uint64_t pack, std::span<const std::byte> header,
                                        std::uint64_t size_bytes) const;
  std::unique_ptr<PackFile> hold(std::unique_ptr<base::File> file, OpenPack& entry) const;
  void let_go(OpenPack& entry) noexcept;
  bool is_current(const OpenPack& entry) const;
  bool is_open(std::uint64_t pack) const noexcept;
  bool has_file(std::uint64_t pack) const;
  const base::File* find_elsewhere(std::uint64_t pack) const noexcept;
  void add(std::shared_ptr<OpenPack> entry);
  void replace(std::shared_ptr<OpenPack>& entry);
  std::shared_ptr<OpenPack> current(std::uint64_t pack);

  base::Fs& fs_;
  PackPlaces places_;
  const std::shared_ptr<RemotePacks> elsewhere_;
  const format::Uuid store_id_;
  const std::uint64_t pack_bytes_;      // a pack that has passed this is sealed
  const std::size_t most_descriptors_;  // for packs and their copies
  mutable std::size_t descriptors_ = 0;
  std::mutex mutex_;                                // guards all but the atomic below
  std::vector<std::shared_ptr<OpenPack>> packs_;    // one for each pack
  std::vector<std::shared_ptr<OpenPack>> retired_;  // replaced by other files of the same names
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<const Table*> table_{nullptr};
};

}  // namespace vellum::store
