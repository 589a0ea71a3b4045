// vellum/store.hpp: a directory that holds every version of its regions.
//
// A store has branches and snapshots, in one name space. A branch is a mutable line of versions
// with one writer at a time and any number of readers, in any processes. A snapshot is one version,
// kept permanently until it is removed. Names are 1..200 bytes of letters, digits and . _ + - (or
// UTF-8), and do not start with '.' or '-'; "vellum-snapshot-" with 16 hex digits is reserved for
// snapshots in the making. If several threads or processes want one name at once, one gets it.
//
// Threads: every call from any thread. A Store is a handle; copies share it. Regions keep their
// store open.
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
#include <vellum/region.hpp>
#include <vellum/remote.hpp>
#include <vellum/remote_options.hpp>
#include <vellum/report.hpp>
#include <vellum/tier.hpp>

namespace vellum {

// Fixed when a store is made: how its regions are stored, unless a branch was made, or is opened,
// with another Encoding; and the sizes of its files. The defaults need no tuning.
struct StoreOptions {
  Encoding encoding;
  std::uint64_t pack_bytes = 256ULL << 20;  // size at which a pack file is sealed: 1 MiB..1 TiB
  // How far small commits may be ahead of the packs, on disk and in memory: 64 KiB..64 MiB. A
  // branch's journal grows to two such halves while it is written, and closing gives them back. In
  // halves of 256 KiB and more, checkpoints are written beside commits.
  std::uint32_t journal_half_bytes = 16u << 20;
};

struct VersionInfo {
  std::string name;
  bool is_branch = false;      // a branch's head; otherwise a snapshot
  std::string branch;          // the branch it was made on
  std::uint64_t sequence = 0;  // commits on its line
  std::chrono::system_clock::time_point committed_at;
  // When the snapshot or branch was made: a snapshot of an old commit is younger than that commit.
  std::chrono::system_clock::time_point created_at;
  // For a snapshot: larger than the order of every earlier snapshot in this store, whatever the
  // clock said. 0: a branch.
  std::uint64_t order = 0;
  std::string message;
  std::string parent;  // the snapshot before it on its line; empty: none
  std::uint64_t region_bytes = 0;
  std::uint64_t file_bytes = 0;     // of these, the plain file's: see Region::file_bytes()
  std::uint64_t pages_changed = 0;  // since the parent
  std::uint64_t bytes_added = 0;    // to packs, since the parent
  // For a branch: how its commits are stored. Without a value: as the store says (StoreOptions).
  std::optional<Encoding> encoding;
};

struct GcOptions {
  bool dry_run = false;  // only report the space to be freed; works on a read-only medium
  // 1 to 19: also rewrite the packs that have no writer any more, compressed at this level of zstd,
  // and without the unneeded parts of blocks. Slow: megabytes a second, not gigabytes. 0: do not
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
  // Also save versions without a name, which were presumably removed, as far as no collection has
  // taken them yet. Without it they are saved where a corrupted name may have been theirs.
  bool include_removed = false;
};

// Store::diff() with the bytes.
struct DiffOptions {
  // Ranges are made of whole units of so many bytes, from offset 0 on: the size of a record, say.
  std::uint64_t granularity_bytes = 1;
};
// A range that differs, and what it is on both sides. Beyond the end of a side that is shorter,
// zeros. The bytes live as long as the call that gives them.
struct DiffRange {
  ByteRange range;
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
};

// The plain file that was last a branch's image (RegionOptions::image).
struct BranchImage {
  std::string path;
  bool in_use = false;  // now, or until a crash: the next opening of the branch with it mends it
  // When not in use: the file has been replaced or written since, judging by inode, size and times.
  // The next opening of the branch with it takes its present content.
  bool changed = false;
};

// Writes the next bytes to `to` and returns their number; 0: no more bytes.
using ReadFn = std::function<std::size_t(void* to, std::size_t capacity_bytes)>;

class Store {
 public:
  // `path` must not exist, or be an empty directory; its parent must exist.
  static Store create(const std::string& path, const StoreOptions& options = StoreOptions());
  // A directory, or the URL of a remote (s3://bucket/prefix, file:///mnt/x), whose versions can then
  // be read without a clone. Opening one takes the listing and two round trips, whatever its age;
  // its pages come when they are touched. Names are those of the moment of opening. A call that
  // would write throws Errc::read_only; stat() and verify() throw Errc::unsupported. Touching a page
  // may wait for the network: see RemoteOptions.
  [[nodiscard]] static Store open(const std::string& path);
  // The same; `options` count for a URL, and for a directory that was cloned lazily.
  [[nodiscard]] static Store open(const std::string& url, const RemoteOptions& options);
  static Store open_or_create(const std::string& path,
                              const StoreOptions& options = StoreOptions());

  const std::string& path() const noexcept;
  std::string id() const;  // 32 hex digits
  StoreOptions options() const;

  // Regions. A branch's region is writable and takes the branch's lock: Errc::busy when another
  // writer has it. create_region() keeps RegionOptions::encoding with the branch, for all later
  // openings; a call that only opens a branch uses it for that opening.
  Region create_region(const std::string& branch, std::uint64_t size_bytes,
                       const RegionOptions& options = RegionOptions());
  [[nodiscard]] Region open_region(const std::string& branch,
                                   const RegionOptions& options = RegionOptions());
  // Opens, or creates with `size_bytes`; an existing region is grown when it is smaller.
  Region open_or_create_region(const std::string& branch, std::uint64_t size_bytes,
                               const RegionOptions& options = RegionOptions());
  // Read-only: a snapshot, or a branch's head as it is now (later commits do not show). Takes no
  // lock. A store there is a SIGSEGV, as on any read-only memory.
  [[nodiscard]] Region open_version(const std::string& name,
                                    const RegionOptions& options = RegionOptions());

  // Versions. Where a call takes the name of a version that is to be read, it takes these, too, as
  // the command line does:
  //   main~2             two snapshots before it on its line; main~ is main~1
  //   main@{yesterday}   the newest snapshot of its line that was made then or before; a time is
  //                      2026-11-24, 2026-11-24T10:30 (UTC), `yesterday`, `3 days ago`
  //   @{3 days ago}      the same, of all snapshots
  //   latest             the snapshot made last, unless a version has this name
  // resolve() gives the name that is meant: not_found, invalid_argument.
  std::string resolve(const std::string& version) const;
  std::vector<VersionInfo> versions() const;           // snapshots by order, then branches by name
  VersionInfo version(const std::string& name) const;  // Errc::not_found
  bool contains(const std::string& name) const;
  // The new branch's commits are stored as `encoding` says; or else, from a branch, as that
  // branch's; or else as the store says.
  void create_branch(const std::string& name, const std::string& from_version,
                     const std::optional<Encoding>& encoding = std::nullopt);
  // From a branch: a snapshot of its last commit now, even while a writer is at work in any
  // process. Data that only the writer's journal holds is then written once more. The branch's next
  // snapshot does not take this one as its parent, and this one takes no snapshot as its parent
  // that the writer has made since its last checkpoint.
  void create_snapshot(const std::string& name, const std::string& from_version,
                       const std::string& message = std::string());
  // Makes a branch of a snapshot, under the same name: it can be opened to write, and is no longer
  // kept as it was. After a crash there is the snapshot, the branch, or both, which are the same
  // version; then the next opening of the branch to write, or the next call of this, removes the
  // snapshot. For a branch it does nothing.
  void convert_to_branch(const std::string& name);
  void remove_snapshot(const std::string& name);  // its space comes back with the next collection
  void remove_branch(const std::string& name);    // Errc::busy while it has a writer
  // Nothing: the branch never had an image, or only one in the store.
  std::optional<BranchImage> branch_image(const std::string& branch) const;

  // Gives back the space of data that no version needs any more: removed snapshots and branches,
  // pages and page maps that later commits have superseded. It costs reading every version's page
  // map, plus the work on the freed data. Needed data is neither moved nor rewritten, unless
  // recompression is asked for. Regions that are open to write collect by themselves now and then
  // (RegionOptions::background_gc); this call collects at once, also where that is switched off.
  //
  // Runs beside writers and readers, in any processes. A version that is open, by open_version(),
  // open_region(), export_file() or diff(), keeps its data until it is closed, even when its
  // snapshot is removed meanwhile; opening it again is then Errc::not_found. (Each open version
  // holds a lock on a byte of a pack, which dies with its process. On a file system without such
  // locks gc is Errc::busy as long as the version is open.)
  //
  // It also removes leftovers of killed processes: files and branches in the making.
  //
  // One collection at a time, and not beside verify() or a repair: Errc::busy. Errc::corrupted when
  // a version's name or page map cannot be read, Errc::io when an archive is absent: nothing is
  // freed then. The call may be killed at any moment, and `progress` may throw to end it: the store
  // stays whole, and the next call continues. A process that has a pack open while it is rewritten
  // keeps the old file, and its space on the medium, until it closes the store.
  GcReport collect_garbage(const GcOptions& options = GcOptions(),
                           const ProgressFn& progress = nullptr);

  // Tiers: home first, then the others in the order in which they were added.
  std::vector<Tier> tiers() const;
  // The directory is made, or is empty, or was this tier before, perhaps under another path. After
  // a store has moved, or was restored from a copy, add its tiers again: this takes them over, and
  // their former store only reads them from then on. Adding a cache recreates a lost one, and
  // changes its limit.
  void add_archive(const std::string& directory);
  void add_cache(const std::string& directory, std::uint64_t limit_bytes = 0);
  // Errc::busy when it is an archive that holds packs: move them home first.
  void remove_tier(const std::string& directory);
  // Sets the limit of home ("") or of a cache.
  void limit_tier(const std::string& directory, std::uint64_t limit_bytes);
  // Moves packs that no branch will write any more. The packs that new versions need the least go
  // to the (first) archive first; the packs that they need the most come home first. Runs beside
  // readers and writers; a process that has such a pack open keeps the old file, and its space,
  // until it closes the store. One call at a time, like collect_garbage(), and it may be killed in
  // the same way. Errc::not_found: there is no archive.
  TierReport move_packs(const TierMove& move, const ProgressFn& progress = nullptr);
  // Applies the limits: moves packs to the archive until home keeps its limit, and gives each cache
  // copies of the packs that new versions need the most. Run it now and then.
  TierReport apply_tiers(const ApplyTiersOptions& options = ApplyTiersOptions(),
                         const ProgressFn& progress = nullptr);

  // Calls `visit` for every maximal range of differing bytes, ascending. The cost follows the size
  // of the difference.
  DiffTotals diff(const std::string& a, const std::string& b,
                  const std::function<void(const ByteRange&)>& visit) const;
  // The same with the bytes of both sides. A range of more than 1 MiB comes in parts.
  DiffTotals diff(const std::string& a, const std::string& b, const DiffOptions& options,
                  const std::function<void(const DiffRange&)>& visit) const;
  // Reads bytes of a version without mapping it. Past the region's end: Errc::invalid_argument.
  void read(const std::string& name, std::uint64_t offset_bytes, void* out,
            std::size_t length_bytes) const;
  // Writes a version as a plain sparse file of VersionInfo::file_bytes, durable on return. `file`
  // must not exist; it gets its name when it is whole. An interrupted call leaves nothing under
  // that name, and a file `.vellum-new.*` beside it, which the next export there removes.
  void export_file(const std::string& name, const std::string& file,
                   const ProgressFn& progress = nullptr) const;
  // Makes a plain file the content of a branch, in one commit. Only pages that differ are stored,
  // and the file's exact size (Region::resize_file()); the file may be empty. The branch is made
  // when it does not exist, and seen when it is whole. All processors work while the file is read;
  // holes are skipped, and memory is bounded whatever the file's size. Errc::busy: the file has
  // become shorter meanwhile.
  CommitReport import_file(const std::string& branch, const std::string& file,
                           const std::string& message, const ProgressFn& progress = nullptr);
  // The same, from the bytes that `read` gives, which may be more or fewer than `expected_bytes`.
  // An exception from `read` ends the import and leaves the branch as it was.
  CommitReport import_stream(const std::string& branch, const ReadFn& read,
                             std::uint64_t expected_bytes, const std::string& message,
                             const ProgressFn& progress = nullptr);

  // The same, from a version of another store: its content becomes the branch's.
  CommitReport import_version(const std::string& branch, const Store& from, const std::string& name,
                              const std::string& message, const ProgressFn& progress = nullptr);

  // Remotes: versions leave the machine, and come from others (vellum/remote.hpp). One push, pull
  // or round of a replication at a time for each store, in all processes: Errc::busy.
  std::vector<RemoteInfo> remotes() const;  // sorted by name
  // Makes a remote known under a name of this store's own, such as "origin". First it probes what
  // the server's conditional writes are worth, by some hundred small requests. False: several
  // creators of an object won, and so this store alone may push (AddRemoteOptions::one_writer; else
  // Errc::unsupported). Errc::already_exists: the name is in use; invalid_argument: the remote has
  // the versions of another store, or the URL is malformed.
  bool add_remote(const std::string& name, const std::string& url,
                  const AddRemoteOptions& options = AddRemoteOptions());
  void remove_remote(const std::string& name);  // what it holds stays there
  // Sends versions to a remote, all or none, beside writers in any processes. What it reports is
  // durable there. A call that is cut off leaves the remote as it was, and the next one goes on.
  // Errc::not_found: there is no such remote or version; busy: another store has pushed a branch
  // since, or is the only one that may push; already_exists: the remote has another version of a
  // snapshot's name; io: the server does not answer, after attempts of about a minute.
  PushReport push(const std::string& remote, const PushOptions& options = PushOptions(),
                  const ProgressFn& progress = nullptr);
  // Gets versions from a remote. Snapshots and branches that the store lacks are made. A branch
  // that it has, and has not changed since it was last pushed or pulled, gets the remote's head;
  // one with commits of its own stays as it is. Each version has its name when all of it is there;
  // a call that is cut off goes on with the next. Errc::not_found: there is no such remote or
  // version; already_exists: the store has another snapshot of the name; busy: the branch has a
  // writer, or a gc is at work; io: branch and remote have both changed.
  PullReport pull(const std::string& remote, const PullOptions& options = PullOptions(),
                  const ProgressFn& progress = nullptr);
  // Makes the store `directory` from a remote, which it then knows as "origin". `directory` must
  // not exist; it gets its name when it is whole, and a call that was cut off goes on with what it
  // has left in `directory`.vellum-clone. A lazy clone puts a list of what it needs at the remote,
  // where gc keeps that.
  static PullReport clone(const std::string& url, const std::string& directory,
                          const CloneOptions& options = CloneOptions(),
                          const ProgressFn& progress = nullptr);
  // Sends each commit and each new snapshot to the remote at `url`, in the calling thread, beside
  // writers in any processes, until `told` returns false; then once more, and returns. `told` is
  // called about ten times a second. A remote that the store does not know is added as "replica".
  // Snapshots that are removed here stay there, and those that are removed there are not sent
  // again: `vellum forget URL` and `vellum gc URL` are for that. A push that fails is tried again;
  // what no later one can heal is thrown: Errc::busy when another store has pushed a branch.
  ReplicateState replicate(const std::string& url, const ReplicateOptions& options,
                           const ReplicateFn& told);

  StoreStat stat() const;
  // Looks for damage, and names the versions that it hurts. Damage is no error of the call.
  VerifyReport verify(const VerifyOptions& options = VerifyOptions(),
                      const ProgressFn& progress = nullptr) const;
  // Saves every version that is whole into a new store, `destination`, which must not exist. The
  // corrupted store is only read, and no Store need be open on it: what keeps versions from opening
  // does not stop this. A version is saved if all of it reads and checks out; for a corrupted name
  // or journal, an older state is saved where the packs still have one (SavedVersion::exact). With
  // RepairOptions::dry_run, `destination` is not used. Throws what stops everything: the store's
  // first file (vellum.store) is corrupted, the destination exists or lies inside the store, the
  // disk is full; then there is no new store.
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
