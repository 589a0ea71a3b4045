// store/catalog/store_directory.hpp: a store directory: create, open, list, name, remove.
// The public C++ interface (vellum/store.hpp) is built on it.
//
// Threads: all calls from any thread. Processes: a caller that creates or removes a name locks it
// (store/catalog/lock/name_lock.hpp), and one rename or unlink is the commit point. Readers take no
// lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vellum/key.hpp>

#include "base/files/file.hpp"
#include "format/version.hpp"
#include "format/wire/superblock.hpp"
#include "store/catalog/branch_ids.hpp"
#include "store/catalog/lock/name_lock.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"
#include "store/journal/journal_state.hpp"
#include "store/packs/record/pack_store.hpp"
#include "store/page_map/resolved_version.hpp"

namespace vellum::store {

struct BranchHead {
  std::string name;
  JournalState journal;  // base version and the commits after it
};

// When the writers of an open store work in the background.
struct WriterPolicy {
  // store/branch/background_checkpoint.hpp
  struct Checkpoints {
    // The smallest half of a journal for which a thread is used.
    std::uint32_t least_half_bytes = 256u << 10;
    bool in_call = false;  // for tests: the commit writes the checkpoint itself, without a thread
  };
  // region/background_gc.hpp
  struct Gc {
    std::uint64_t slack_bytes = 32u << 20;  // the minimum of freeable bytes for a gc
    std::uint64_t step_bytes = 4u << 20;    // the minimum of written bytes between two checks
    // The minimum of bytes that are written during a gc, beyond the freed ones, before a commit
    // waits for its end.
    std::uint64_t ahead_bytes = 16u << 20;
    bool in_call = false;  // for tests: no thread; the commit itself collects, at the same points
  };
  Checkpoints checkpoints;
  Gc gc;
};

// Which plain stores open: those that key_source() accepts; for a command on a remote, also those
// with an encrypted remote, whose secret was given then (KeySource::or_encrypted_remote); or all,
// since the caller asks it.
enum class PlainStores { if_wanted, with_encrypted_remote, all };

class StoreDirectory : public PackStore {
 public:
  // `path` must not exist or must be an empty directory; its parents must exist. Sets the
  // superblock's id and time.
  static std::shared_ptr<StoreDirectory> create(base::Fs& fs, const std::string& path,
                                                format::Superblock options);
  // The same, encrypted, with one key slot for the secret of `source` (store/catalog/key_file.hpp).
  static std::shared_ptr<StoreDirectory> create_encrypted(base::Fs& fs, const std::string& path,
                                                          format::Superblock options,
                                                          const KeySource& source);
  // The same with an unchanged superblock: a copy of an existing store.
  static std::shared_ptr<StoreDirectory> create_copy(base::Fs& fs, const std::string& path,
                                                     const format::Superblock& superblock,
                                                     PlainStores plain = PlainStores::if_wanted);
  // The same of an encrypted store: `keys` are those that `key_slots`, its file, gave.
  static std::shared_ptr<StoreDirectory> create_encrypted_copy(
      base::Fs& fs, const std::string& path, const format::Superblock& superblock,
      std::span<const std::byte> key_slots, std::shared_ptr<const base::StoreKeys> keys);
  // Errc::not_found, not_a_store, newer_format, corrupted; each names the path. Errc::wrong_key: the
  // store is encrypted, and key_source() has no secret for it, or plain, and key_source() wants only
  // encrypted ones. Works on a read-only medium. `remote`: see PackSet. `keys`: those of an earlier
  // opening; null: asks key_source().
  static std::shared_ptr<StoreDirectory> open(base::Fs& fs, const std::string& path,
                                              std::shared_ptr<RemotePacks> remote = nullptr,
                                              std::shared_ptr<const base::StoreKeys> keys = nullptr,
                                              PlainStores plain = PlainStores::if_wanted);

  std::vector<std::string> branch_names() const;  // sorted

  // Errc::not_found names the branch, corrupted the file.
  BranchHead read_branch(const std::string& name) const;

  // Creates an empty branch and returns its id, or creates one that starts at a version.
  // Errc::already_exists if a branch or a snapshot has the name, invalid_argument if the name is
  // malformed. The branch has the given encoding or, without one, the store's; see
  // check_encoding().
  std::uint64_t create_branch(const std::string& name, std::uint64_t region_bytes,
                              std::uint64_t base_address,
                              const std::optional<format::Encoding>& encoding = std::nullopt);
  void create_branch_at(const std::string& name, const format::Version& version,
                        const std::string& parent_snapshot,
                        const std::optional<format::Encoding>& encoding = std::nullopt,
                        std::uint32_t journal_half_bytes = 0);  // 0: that of the store
  // REQUIRES: `claim` is of claim_name().
  void create_branch_at(const NameLock& claim, const format::Version& version,
                        const std::string& parent_snapshot,
                        const std::optional<format::Encoding>& encoding = std::nullopt);
  // Creates a staging branch (store/branch/staging_branch.hpp). REQUIRES: is_staging_name(name);
  // the name is new and not locked.
  void create_staging_branch(const std::string& name, const format::Version& version,
                             const std::string& parent_snapshot,
                             const std::optional<format::Encoding>& encoding);
  // Creates a branch from the head of a staging branch, with its id and packs. REQUIRES: the caller
  // holds `names` until the staging branch is removed, and its writer writes no more.
  void publish_staging_branch(const NameLock& claim, const NamesShared& names,
                              const format::Version& head,
                              const std::optional<format::Encoding>& encoding);
  // Errc::invalid_argument: its blocks are larger than the store's readers accept.
  void check_encoding(const format::Encoding& encoding) const;
  // Errc::corrupted unless the header, read from `file`, is possible for the branch.
  void check_journal(const std::string& file, const std::string& branch,
                     const format::JournalHeader& header) const;
  // Names a version with its order (format::SnapshotRef::order), or as the last one if that is 0.
  // Errors as in create_branch(); none of these with a claim.
  void create_snapshot(const std::string& name, const format::SnapshotRef& like);
  void create_snapshot(const NameLock& claim, const format::SnapshotRef& like);
  // The same, with the current time. If `message` is empty, the version keeps its own.
  void create_snapshot(const NameLock& claim, const std::string& branch,
                       const format::Version& version, const std::string& message);
  void create_snapshot(const std::string& name, const std::string& branch,
                       const format::Version& version, const std::string& message);
  // Turns a snapshot into a branch of the same name; does nothing to a branch. Errc::not_found.
  void convert_to_branch(const std::string& name);
  // Removes the ref that a convert_to_branch() left when it was interrupted between its two steps.
  // Called before the branch is written, since the two would then differ. Errc::corrupted: they
  // differ already.
  void settle_name(const std::string& name);
  void remove_snapshot(const std::string& name);
  // A snapshot that the holder of the claim has just created.
  void remove_snapshot(const NameLock& claim);
  // Errc::busy if it has a writer.
  void remove_branch(const std::string& name);
  // Undoes create_branch(): removes the branch only if it has this id and no commits.
  void remove_new_branch(const std::string& name, std::uint64_t branch_id);
  // Removes a branch whose journal is locked (store/catalog/names.hpp). REQUIRES: the name is
  // locked, or is_staging_name(name); `journal` is the locked journal of the branch.
  void drop_branch(const std::string& name, const base::File& journal);

  // Throws unless `name` is well-formed and neither a branch nor a snapshot
  // (store/catalog/names.hpp).
  void require_free_name(const std::string& name) const;

  const WriterPolicy& writer_policy() const noexcept { return writer_policy_; }
  // REQUIRES: no branch has a writer of this object.
  void set_writer_policy(const WriterPolicy& policy) noexcept { writer_policy_ = policy; }

 private:
  using PackStore::PackStore;
  std::uint64_t publish_branch(const std::string& name, const format::Version& version,
                               const std::string& parent_snapshot,
                               const std::optional<format::Encoding>& encoding,
                               std::uint32_t journal_half_bytes = 0);
  void publish_journal(const std::string& name, const format::Version& base,
                       const std::optional<format::Encoding>& encoding,
                       std::uint32_t journal_half_bytes);
  void remove_ref(const std::string& name);
  BranchIds branch_ids_;
  WriterPolicy writer_policy_;
};

// Errc::not_found names `name` and the store.
ResolvedVersion resolve_snapshot(const StoreDirectory& store, const std::string& name);
ResolvedVersion resolve_version(const StoreDirectory& store, const std::string& name);
ResolvedVersion resolved(format::SnapshotRef ref);

// The result of resolve_version(). It stays readable during the lifetime of the pin.
struct KeptVersion {
  ResolvedVersion version;
  VersionPin version_pin;
};
KeptVersion resolve_kept(StoreDirectory& store, const std::string& name);

// Locks a free name to create it. Errc::invalid_argument if the name is malformed or reserved,
// already_exists if a branch or snapshot has it.
NameLock claim_name(StoreDirectory& store, const std::string& name);

}  // namespace vellum::store
