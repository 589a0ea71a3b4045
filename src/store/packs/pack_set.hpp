// store/packs/pack_set.hpp: the packs of a store, open for reading.
//
// A pack may be rewritten under its name (store/gc/pack_rewriter.hpp) or moved to another directory
// (store/gc/pack_mover.hpp) while it is open here. The old file stays open and serves its readers
// for the lifetime of the set. If gc removed a pack, refresh() closes its file
// (store/packs/pack_file.hpp), and only a few bytes of memory stay allocated.
//
// A cache directory may have a copy of a pack. The copy is opened in addition to the pack, never
// instead of it. Its bytes are used only if tag and checksum match the reference. Code that writes
// durable references or frees data does not read copies.
//
// The first packs are kept open by their descriptors, the others by one mapping each
// (base/files/read_only_file.hpp): a store may have more packs than a process may have descriptors. A
// pin needs a descriptor during its lifetime.
//
// Threads: all calls from any thread. find() and locate() allocate nothing and take no lock: the
// fault handler uses them.
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
#include "store/packs/remote_packs.hpp"

namespace vellum::store {

// The translation table of a rewritten pack; null for any other pack. Throws Errc::corrupted,
// naming the file.
std::unique_ptr<const format::Translation> read_translation(const base::File& file,
                                                            const format::PackHeader& header,
                                                            const format::StoreKeys* keys);

class PackSet {
 public:
  // `remote`: the remote packs of the store; may be null.
  // `keys`: null for a plain store.
  PackSet(base::Fs& fs, std::string store_path, const format::Superblock& superblock,
          const format::StoreKeys* keys = nullptr, std::shared_ptr<RemotePacks> remote = nullptr);
  ~PackSet();

  // Opens a pack unless it is open already, and checks its header. Throws Errc::corrupted if the
  // pack is missing, is not a regular file or belongs to another store or name, and Errc::io if it
  // may be in an archive that is absent. The message names the file.
  void open(std::uint64_t pack);
  // Whether the store has local packs, and accepts new ones.
  bool are_files() const noexcept { return remote_ == nullptr || remote_->is_beside_files(); }
  // Whether a pack is remote. REQUIRES: open() was called for it.
  bool is_remote(std::uint64_t pack) const noexcept;
  // As in RemotePacks. REQUIRES: is_remote(), also of the record's pack.
  std::vector<RecordAtRemote> describe(std::uint64_t pack, std::uint64_t offset_bytes) const;
  std::vector<std::byte> fetch(const RecordAtRemote& record) const;
  // As in RemotePacks. Called before records of the version are read; does nothing in a store
  // without remote packs.
  void learn(const format::Version& version) const;
  // An open pack, or the representation of a remote one, or nullptr.
  const base::File* find(std::uint64_t pack) const noexcept;
  // The translation table of an open pack that was rewritten, or nullptr.
  const format::Translation* translation(std::uint64_t pack) const noexcept;
  // The location of the record, in a form that has these slots if any form has.
  RecordPlace locate(const format::RecordRef& ref,
                     const format::SlotRange& slots = {}) const noexcept;
  // Whether there may be remote packs; and their fetch_early(), as in RemotePacks.
  bool reaches_remote() const noexcept { return remote_ != nullptr; }
  std::shared_ptr<const void> fetch_early(std::vector<format::RecordRef> refs) const;
  // Pins a byte of a pack for all processes (base::File::pin_byte) until the last copy of the
  // result is destroyed, which may be after the set is. The pin is on the file that has the pack's
  // name now. REQUIRES: NamesShared is held (store/catalog/lock/version_pin.hpp), so that the pack
  // keeps its file meanwhile. A remote pack needs no lock: gc never changes it.
  std::shared_ptr<const void> pin(std::uint64_t pack, std::uint64_t offset_bytes);
  // Switches to the file that has the pack's name now. Needed before offsets in a pack are
  // published and before the pack is changed. Throws the errors of open(), also if no file has the
  // name any more; the old file is then kept. REQUIRES: NamesShared, NamesExclusive or GcExclusive
  // is held.
  void refresh(std::uint64_t pack);
  // The same for all open packs whose names still exist. Closes those of the others that gc
  // removed. Throws only after it has tried all packs.
  void refresh();
  const PackPlaces& places() const noexcept { return places_; }
  // The current path of the pack, or the path at which it would be written.
  std::string path_of(std::uint64_t pack) const { return places_.path_of(pack); }
  // Every local pack, ascending. Throws if an archive is absent.
  std::vector<std::uint64_t> list() const { return places_.list(); }
  // The same, and the remote packs.
  std::vector<std::uint64_t> list_with_remote() const;
  // The packs that are only remote, as of the last refresh().
  std::vector<std::uint64_t> list_remote() const;

 private:
  // A table that only grows: open addressing over atomic pointers, replaced when half full. Old
  // tables are kept for the lifetime of the set, so a reader in the fault handler never sees freed
  // memory.
  struct Table;
  struct OpenPack;
  std::shared_ptr<OpenPack> open_file(std::uint64_t pack) const;
  std::unique_ptr<base::File> open_copy(std::uint64_t pack, std::span<const std::byte> header,
                                        std::uint64_t size_bytes) const;
  std::unique_ptr<PackFile> hold(std::unique_ptr<base::File> file, OpenPack& entry) const;
  void close_unread(OpenPack& entry) noexcept;
  bool is_current(const OpenPack& entry) const;
  bool is_open(std::uint64_t pack) const noexcept;
  bool has_file(std::uint64_t pack) const;
  const base::File* find_remote(std::uint64_t pack) const noexcept;
  void add(std::shared_ptr<OpenPack> entry);
  void replace(std::shared_ptr<OpenPack>& entry);
  std::shared_ptr<OpenPack> current(std::uint64_t pack);

  base::Fs& fs_;
  PackPlaces places_;
  const std::shared_ptr<RemotePacks> remote_;
  const format::Uuid store_id_;
  const format::StoreKeys* const keys_;
  const std::uint64_t pack_bytes_;     // a pack that has passed this is sealed
  const std::size_t max_descriptors_;  // for packs and their copies
  mutable std::size_t descriptors_ = 0;
  std::mutex mutex_;                                // guards all but the atomic below
  std::vector<std::shared_ptr<OpenPack>> packs_;    // one for each pack
  std::vector<std::shared_ptr<OpenPack>> retired_;  // replaced by other files of the same names
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<const Table*> table_{nullptr};
};

}  // namespace vellum::store
