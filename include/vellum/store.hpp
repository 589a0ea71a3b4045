// vellum/store.hpp: a directory that holds every version of its regions.
//
// A store has branches and snapshots, in one name space. A branch is a mutable line of versions
// with one writer at a time and any number of readers, in any processes. A snapshot is one version,
// kept until you remove it. Names have 1..200 bytes of letters, digits and . _ + - (or UTF-8), and
// do not start with '.' or '-'. "vellum-snapshot-" with 16 hex digits is reserved for snapshots
// that are being created. If several threads or processes create one name at once, one succeeds.
//
// Threads: every call may be made from any thread, concurrently. A Store is a handle; copies share
// the open store. Regions keep their store open.
//
// Errors are vellum::Error. io and corrupted are possible wherever files are read, no_space and
// read_only wherever they are written; the calls below list the others.
#ifndef VELLUM_STORE_HPP
#define VELLUM_STORE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vellum/byte_range.hpp>
#include <vellum/encoding.hpp>
#include <vellum/error.hpp>
#include <vellum/key.hpp>
#include <vellum/region.hpp>
#include <vellum/remote.hpp>
#include <vellum/remote_options.hpp>
#include <vellum/report.hpp>
#include <vellum/signature.hpp>
#include <vellum/tier.hpp>

namespace vellum {

// Fixed when a store is created: the encoding of its regions, unless a branch was created or is
// opened with another Encoding, and the sizes of its files. The defaults need no tuning.
struct StoreOptions {
  Encoding encoding;
  std::uint64_t pack_bytes = 256ULL << 20;  // size at which a pack file is sealed: 1 MiB..1 TiB
  // The amount of small commits that the packs may lack, on disk and in memory: 64 KiB..64 MiB, a
  // multiple of 4096. A branch's journal grows to two halves of this size while the branch is
  // written; closing it frees them. With 256 KiB and more, checkpoints are written concurrently
  // with commits.
  std::uint32_t journal_half_bytes = 16u << 20;
  // Encrypt the store's files. `key` is the secret of the first key slot, from the first of: key
  // file, recipient, command, passphrase. Later openings use key_source() (vellum/key.hpp).
  // Store::open_or_create() then refuses a plain store (Errc::wrong_key).
  bool encrypt = false;
  KeySource key = {};
};

struct VersionInfo {
  std::string name;
  bool is_branch = false;      // a branch's head; otherwise a snapshot
  std::string branch;          // the branch on which it was created
  std::uint64_t sequence = 0;  // commits on its line
  std::chrono::system_clock::time_point committed_at;
  // When the snapshot or branch was created: a snapshot of an old commit is younger than the
  // commit.
  std::chrono::system_clock::time_point created_at;
  // For a snapshot: larger than the order of every earlier snapshot in this store, independent of
  // the clock. 0: a branch.
  std::uint64_t order = 0;
  std::string message;
  std::string parent;  // the snapshot before it on its line; empty: none
  std::uint64_t region_bytes = 0;
  std::uint64_t file_bytes = 0;     // of these, the plain file's: see Region::file_bytes()
  std::uint64_t pages_changed = 0;  // since the parent
  std::uint64_t bytes_added = 0;    // to packs, since the parent
  // For a branch: the encoding of its commits. Without a value: the store's (StoreOptions).
  std::optional<Encoding> encoding;
  std::optional<Signature> signature;  // of a signed snapshot; not checked
};

struct GcOptions {
  bool dry_run = false;  // only report the space to be freed; works on a read-only medium
  // 1 to 19: also rewrite the packs that no longer have a writer, compressed at this level of zstd
  // and without the unneeded pages of blocks. Slow: megabytes per second, not gigabytes. 0: do not
  // rewrite.
  int recompress_level = 0;
};

// Store::apply_tiers().
struct ApplyTiersOptions {
  bool dry_run = false;  // only report the work
};

// Store::verify().
struct VerifyOptions {
  // Also read and check every byte that a version needs. Without it: refs, journals, page maps,
  // presence of packs.
  bool read_data = false;
};

// Store::repair().
struct RepairOptions {
  bool dry_run = false;  // only read, and report what can be saved
  // Also save versions without a name, which were presumably removed, as far as no garbage
  // collection has freed them. Without it they are saved where a corrupted name may have been
  // theirs.
  bool include_removed = false;
};

// Store::diff() with the bytes.
struct DiffOptions {
  // Ranges consist of whole units of this size, from offset 0 on, such as the size of a record. At
  // most 1 MiB.
  std::uint64_t granularity_bytes = 1;
};
// A range that differs, and its bytes on both sides. Past the end of the shorter side they are
// zero. The bytes are valid until the visitor returns.
struct DiffRange {
  ByteRange range;
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
};

// The plain file that was last a branch's image (RegionOptions::image).
struct BranchImage {
  std::string path;
  bool in_use = false;  // now, or until a crash: the next opening of the branch with it repairs it
  // When not in use: the file has been replaced or written since then, judging by inode, size and
  // times. The next opening of the branch with it takes its current content.
  bool changed = false;
};

// Writes the next bytes to `to` and returns their number; 0: no more bytes.
using ReadFn = std::function<std::size_t(void* to, std::size_t capacity_bytes)>;

class Store {
 public:
  // `path` must not exist, or be an empty directory; its parent must exist.
  static Store create(const std::string& path, const StoreOptions& options = StoreOptions());
  // Opens a directory (wrong_key: it is encrypted, and key_source() has no secret that opens it), or
  // the URL of a remote (s3://bucket/prefix, file:///mnt/x), whose versions
  // can then be read without a clone. not_found, not_a_store, newer_format. Opening a remote costs
  // the listing and two round trips, whatever its age; pages are fetched when they are touched. The
  // list of names is fixed when the remote is opened. Calls that write throw Errc::read_only;
  // stat() and verify() throw Errc::unsupported. Touching a page may wait for the network: see
  // RemoteOptions.
  [[nodiscard]] static Store open(const std::string& path);
  // The same; `options` apply to a URL, and to a directory that is a lazy clone.
  [[nodiscard]] static Store open(const std::string& url, const RemoteOptions& options);
  static Store open_or_create(const std::string& path,
                              const StoreOptions& options = StoreOptions());

  const std::string& path() const noexcept;
  std::string id() const;  // 32 hex digits
  StoreOptions options() const;

  // Regions. A branch's region is writable and holds the branch's lock: Errc::busy when another
  // writer has it, in any process. create_region() stores RegionOptions::encoding with the branch,
  // for all later openings; a call that only opens a branch uses it for that opening.
  // already_exists, not_found; invalid_argument for a size of 0 or above 64 TiB.
  Region create_region(const std::string& branch, std::uint64_t size_bytes,
                       const RegionOptions& options = RegionOptions());
  [[nodiscard]] Region open_region(const std::string& branch,
                                   const RegionOptions& options = RegionOptions());
  // Opens, or creates with `size_bytes`; an existing region is grown when it is smaller.
  Region open_or_create_region(const std::string& branch, std::uint64_t size_bytes,
                               const RegionOptions& options = RegionOptions());
  // Read-only: a snapshot, or a branch's current head (later commits are not visible). Takes no
  // lock. A store to its memory is a SIGSEGV, as to any read-only memory. not_found.
  [[nodiscard]] Region open_version(const std::string& name,
                                    const RegionOptions& options = RegionOptions());

  // Versions. A call that reads a version also accepts these names, as git-rev-parse(1) has them
  // and the command line does:
  //   main~2             two snapshots before it on its line; main~ is main~1
  //   main@{yesterday}   the newest snapshot of its line that is not younger than this time: a time
  //                      is 2026-11-24, 2026-11-24T10:30 (UTC), `yesterday`, `3 days ago`
  //   @{3 days ago}      the same, of all snapshots
  //   latest             the newest snapshot, unless a version has this name
  //   main@12            commit 12 of the branch, until its writer's next checkpoint
  // resolve() returns the name of the version: not_found, invalid_argument.
  std::string resolve(const std::string& version) const;
  std::vector<VersionInfo> versions() const;           // snapshots by order, then branches by name
  VersionInfo version(const std::string& name) const;  // Errc::not_found
  bool contains(const std::string& name) const;
  // The new branch uses `encoding` if it is given, otherwise the source branch's, otherwise the
  // store's. already_exists, not_found.
  void create_branch(const std::string& name, const std::string& from_version,
                     const std::optional<Encoding>& encoding = std::nullopt);
  // From a branch: a snapshot of its last commit, also while a writer works in any process. Data
  // that only the writer's journal holds is then written once more; the branch's next snapshot does
  // not have this one as its parent, and the parent of this one is no snapshot that the writer has
  // created since its last checkpoint. already_exists, not_found.
  void create_snapshot(const std::string& name, const std::string& from_version,
                       const std::string& message = std::string());
  // Converts a snapshot into a branch of the same name: it can be opened to write, and its content
  // is no longer kept unchanged. After a crash the snapshot, the branch, or both exist, and are the
  // same version; the next opening of the branch to write, or the next call of this function,
  // removes the snapshot. For a branch it does nothing.
  void convert_to_branch(const std::string& name);
  // The branch `to` has the head of `from`, which is removed. Snapshots keep the name of the branch
  // that they were created on. After a crash both names may exist, with the same content. Errc::busy
  // while it has a writer, or its image has changed since the last commit.
  void rename_branch(const std::string& from, const std::string& to);
  void remove_snapshot(const std::string& name);  // the next garbage collection frees its space
  void remove_branch(const std::string& name);    // Errc::busy while it has a writer
  // No value: the branch never had an image, or only one in the store.
  std::optional<BranchImage> branch_image(const std::string& branch) const;

  // Frees the space of data that no version needs: removed snapshots and branches, pages and page
  // maps that later commits have superseded. The cost is reading every version's page map, plus the
  // work on the freed data. Needed data is neither moved nor rewritten, except by recompression.
  // Regions that are open to write collect garbage in the background
  // (RegionOptions::background_gc); this call collects at once.
  //
  // Runs concurrently with writers and readers, in any processes. A version that is open by
  // open_version(), open_region(), export_file() or diff() keeps its data until it is closed, even
  // when its snapshot is removed meanwhile; opening it again is then Errc::not_found. (Each open
  // version holds a lock on a byte of a pack, fcntl(2), which ends with its process. On a file
  // system without these locks gc is Errc::busy while the version is open.)
  //
  // It also removes leftovers of killed processes: files and branches that were being created.
  //
  // One collection at a time, and none during verify() or a repair: Errc::busy. Errc::corrupted
  // when a version's name or page map cannot be read, Errc::io when an archive is absent: nothing
  // is freed then. The call may be killed at any time, and `progress` may throw to end it: the
  // store stays whole, and the next call continues. A process that has a pack open while it is
  // rewritten keeps the old file, and its space on the medium, until it closes the store.
  GcReport collect_garbage(const GcOptions& options = GcOptions(),
                           const ProgressFn& progress = nullptr);

  // The key slots of an encrypted store; Errc::unsupported for another. The data key stays the same:
  // who has opened the store with a secret, and kept the data key, can still read it after the slot
  // is removed. A changed slot replaces the file of slots at once, durably.
  std::vector<KeySlot> keys() const;
  // 32 hexadecimal digits that show which data key the store has: KeySource::fingerprint.
  std::string key_fingerprint() const;
  KeySlot add_key(const KeySource& secret, const std::string& label = std::string());
  void remove_key(std::uint32_t number);  // Errc::invalid_argument for the last slot
  KeySlot replace_key(std::uint32_t number, const KeySource& secret);  // keeps the label

  // Tiers: home first, then the others in the order in which they were added.
  std::vector<Tier> tiers() const;
  // The directory is created, or is empty, or was this tier before, perhaps under another path.
  // After a store has moved, or was restored from a copy, add its tiers again: the store takes them
  // over, and their former store only reads them from then on. Adding a cache recreates a lost one
  // and sets its limit.
  void add_archive(const std::string& directory);
  void add_cache(const std::string& directory, std::uint64_t limit_bytes = 0);
  // Errc::busy when it is an archive that holds packs: move them home first.
  void remove_tier(const std::string& directory);
  // Sets the limit of home ("") or of a cache.
  void limit_tier(const std::string& directory, std::uint64_t limit_bytes);
  // Moves packs that no branch will write again. The packs that new versions need least are moved
  // to the (first) archive first; the packs that they need most are moved home first. Runs
  // concurrently with readers and writers; a process that has a moved pack open keeps the old file,
  // and its space, until it closes the store. One call at a time, like collect_garbage(), and it
  // may be killed in the same way. Errc::not_found: there is no archive.
  TierReport move_packs(const TierMove& move, const ProgressFn& progress = nullptr);
  // Applies the limits: moves packs to the archive until home is within its limit, and copies the
  // packs that new versions need most into each cache. Run it periodically.
  TierReport apply_tiers(const ApplyTiersOptions& options = ApplyTiersOptions(),
                         const ProgressFn& progress = nullptr);

  // Calls `visit` for every maximal range of differing bytes, ascending. The cost is proportional
  // to the difference.
  DiffTotals diff(const std::string& a, const std::string& b,
                  const std::function<void(const ByteRange&)>& visit) const;
  // The same with the bytes of both sides. A range of more than 1 MiB is visited in parts.
  DiffTotals diff(const std::string& a, const std::string& b, const DiffOptions& options,
                  const std::function<void(const DiffRange&)>& visit) const;
  // Reads bytes of a version without mapping it. Past the region's end: Errc::invalid_argument.
  void read(const std::string& name, std::uint64_t offset_bytes, void* out,
            std::size_t length_bytes) const;
  // Writes a version as a plain sparse file of VersionInfo::file_bytes, durable on return. `file`
  // must not exist (already_exists); it gets its name when it is whole. An interrupted call leaves
  // nothing under that name, and a file `.vellum-new.*` next to it, which the next export to that
  // directory removes.
  void export_file(const std::string& name, const std::string& file,
                   const ProgressFn& progress = nullptr) const;
  // Replaces the content of a branch by a plain file, in one commit. Only pages that differ are
  // stored, and the file's exact size (Region::resize_file()); the file may be empty. A missing
  // branch is created, and becomes visible when it is whole. All processors work while the file is
  // read; holes are skipped, and memory is bounded whatever the file's size. Errc::busy: the branch
  // has a writer, or the file has become shorter meanwhile.
  CommitReport import_file(const std::string& branch, const std::string& file,
                           const std::string& message, const ProgressFn& progress = nullptr);
  // The same, from the bytes that `read` returns, which may be more or fewer than `expected_bytes`.
  // An exception from `read` ends the import and leaves the branch as it was.
  CommitReport import_stream(const std::string& branch, const ReadFn& read,
                             std::uint64_t expected_bytes, const std::string& message,
                             const ProgressFn& progress = nullptr);

  // The same, from a version of another store: its content becomes the branch's.
  CommitReport import_version(const std::string& branch, const Store& from, const std::string& name,
                              const std::string& message, const ProgressFn& progress = nullptr);

  // Remotes: versions are sent to other machines and fetched from them (vellum/remote.hpp). One
  // push, pull or round of a replication at a time for each store, in all processes: Errc::busy.
  std::vector<RemoteInfo> remotes() const;  // sorted by name
  // Adds a remote under a name local to this store, such as "origin". First it probes whether the
  // server's conditional writes are reliable, by some hundred small requests. False: several
  // creators of one object succeeded, and only this store may push (AddRemoteOptions::one_writer;
  // otherwise Errc::unsupported). Errc::already_exists: the name is in use; invalid_argument: the
  // remote has the versions of another store, or the URL is malformed.
  bool add_remote(const std::string& name, const std::string& url,
                  const AddRemoteOptions& options = AddRemoteOptions());
  void remove_remote(const std::string& name);  // the remote's content stays
  // Sends versions to a remote, all or none, concurrently with writers in any processes. All that
  // the report lists is durable there. A call that is cut off leaves the remote as it was, and the
  // next call continues.
  // Errc::not_found: there is no such remote or version; busy: another store has pushed a branch
  // since, or is the only one that may push; already_exists: the remote has another version of a
  // snapshot's name; io: the server does not answer, after attempts of about a minute.
  PushReport push(const std::string& remote, const PushOptions& options = PushOptions(),
                  const ProgressFn& progress = nullptr);
  // Fetches versions from a remote. Snapshots and branches that the store lacks are created. A
  // branch that has not changed since it was last pushed or pulled gets the remote's head; a branch
  // with local commits stays as it is. Each version gets its name when it is whole; after a call
  // that is cut off the next call continues. Errc::not_found: there is no such remote or version;
  // already_exists: the store has another snapshot of the name; busy: the branch has a writer, or a
  // garbage collection is running; io: branch and remote have both changed.
  PullReport pull(const std::string& remote, const PullOptions& options = PullOptions(),
                  const ProgressFn& progress = nullptr);
  // Creates the store `directory` from a remote, which becomes its remote "origin". `directory`
  // must not exist; it gets its name when it is whole, and after a call that was cut off the next
  // call continues from `directory`.vellum-clone. A lazy clone writes a list of the pieces that it
  // needs to the remote, whose gc keeps them.
  static PullReport clone(const std::string& url, const std::string& directory,
                          const CloneOptions& options = CloneOptions(),
                          const ProgressFn& progress = nullptr);
  // Sends each commit and each new snapshot to the remote at `url`, in the calling thread,
  // concurrently with writers in any processes, until `told` returns false; then it sends once more
  // and returns. `told` is called about ten times per second. A new remote is added as "replica".
  // Snapshots that are removed here stay there, and those removed there are not sent again: `vellum
  // forget URL` and `vellum gc URL` remove them. A push that fails is retried; an error that no
  // retry can repair is thrown: Errc::busy when another store has pushed a branch.
  ReplicateState replicate(const std::string& url, const ReplicateOptions& options,
                           const ReplicateFn& told);

  StoreStat stat() const;
  // Checks for damage, and names the versions that it affects. Damage is no error of the call.
  VerifyReport verify(const VerifyOptions& options = VerifyOptions(),
                      const ProgressFn& progress = nullptr) const;
  // Checks signatures (vellum/signature.hpp): each of these snapshots, oldest first, has to be signed
  // by one of the keys, to have the content that was signed, and to follow the signed version before
  // it, if that is there. Without names: all snapshots. What is wrong is no error of the call. Reads
  // the first version whole, and of each later one on the same branch what differs from the one before.
  SignatureReport check_signatures(const std::vector<PublicKey>& keys,
                                   const std::vector<std::string>& versions = {}) const;
  // A proof that the pages with these bytes belong to a signed version, for a program without Vellum:
  // docs/format.md, Proofs. Reads these pages and a page of the tree for every seventh level.
  // Errc::untrusted: the version has no signature, or its pages are not what was signed.
  std::vector<std::byte> prove(const std::string& version, const ByteRange& range) const;
  // Snapshots of the branch have to be signed by one of these keys: others are refused here
  // (Errc::untrusted). No keys: none has to be. This is policy, not protection: whoever can write the
  // store's files can change it, and a remote does not have it.
  void set_signers(const std::string& branch, const std::vector<PublicKey>& keys);
  std::vector<PublicKey> signers(const std::string& branch) const;

  // Saves every version that is whole into a new store, `destination`, which must not exist. The
  // corrupted store is only read, and no Store need be open on it. A version is saved if all of it
  // can be read and verified; for a corrupted name or journal, an older state is saved where the
  // packs still have one (SavedVersion::exact). With RepairOptions::dry_run, `destination` is not
  // used. Throws when nothing can be saved: the store's first file (vellum.store) is corrupted, the
  // destination exists or is inside the store, the disk is full; then there is no new store.
  static RepairReport repair(const std::string& path, const std::string& destination,
                             const RepairOptions& options = RepairOptions(),
                             const ProgressFn& progress = nullptr);

 private:
  friend struct StoreAccess;  // src/region/api/store_impl.hpp
  struct Impl;
  explicit Store(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace vellum

#endif  // VELLUM_STORE_HPP
