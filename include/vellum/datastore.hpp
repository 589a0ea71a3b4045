// vellum/datastore.hpp: a memory manager's segment and its files, committed in one step.
//
// A manager that keeps objects in a mapped segment, such as Metall, also has metadata: where the
// objects are, and which space is free. It keeps the metadata in memory, and writes it to files
// when it closes; after a crash before that the segment has no metadata. Here commit() includes the
// files: segment and files are one version of one region, and an opening gives both as of one
// commit, also after a crash. A version costs the changes to either. vellum/metall.hpp is the
// interface for Metall.
//
// On disk a datastore is a directory:
//   DIR/store      a Vellum store (`vellum log DIR/store` and all the rest), branch "main"
//   DIR/files      the manager's files: written by the manager, committed from here, and restored
//                  from the last commit by every opening
//   DIR/versions   datastores DIR@NAME: versions of the store by name
// A snapshot with a path of its own is this directory instead:
//   DIR/link       the store, relative to DIR, and the version in it
//   DIR/files
// A path DIR@NAME denotes version NAME of DIR's store, also when another program has created it
// (`vellum snapshot`).
//
// Snapshots share the store of their datastore: without it, a link is lost. copy() creates an
// independent datastore.
//
// Threads: one call at a time for each Datastore. Processes: one has it open to write, any number
// to read a version. A version that has a writer cannot be opened to read (busy): snapshot it.
//
// Errors are vellum::Error, as of the Store and the Region behind it.
#ifndef VELLUM_DATASTORE_HPP
#define VELLUM_DATASTORE_HPP

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <vellum/region.hpp>
#include <vellum/store.hpp>

namespace vellum {

struct DatastoreOptions {
  StoreOptions store;    // of a store that is created
  RegionOptions region;  // except for its address, which the datastore chooses
  // The datastore's own files, below `files`: committed like the others, but an opening restores
  // them only when they are missing or empty. (A snapshot's identity, for one.)
  std::vector<std::string> own_files;
};

class Datastore {
 public:
  // Memory in front of the segment: private to this process, zero at first, not stored.
  static constexpr std::uint64_t kHeadBytes = 4096;
  // Limits of the manager's files: 16, of 2 GiB each (Errc::invalid_argument from commit()).
  static constexpr std::uint64_t kFiles = 16;
  static constexpr std::uint64_t kFileBytes = std::uint64_t{2} << 30;

  Datastore() noexcept;  // not open: every call but is_open() and close() is invalid_argument
  ~Datastore();          // close(); uncommitted data is lost
  Datastore(Datastore&&) noexcept;
  Datastore& operator=(Datastore&&) noexcept;

  // Creates an empty segment that can grow to `capacity_bytes` of address space. Nothing is durable
  // before the first commit(). already_exists: `path` is a datastore; busy: one is being created
  // there. Leftovers of a killed create() or copy() are removed.
  [[nodiscard]] static Datastore create(const std::string& path, std::uint64_t capacity_bytes,
                                        const DatastoreOptions& options = DatastoreOptions());
  // Opens the last commit, to write. A snapshot that is opened to write becomes a branch of that
  // name. not_found, busy.
  [[nodiscard]] static Datastore open(const std::string& path, std::uint64_t capacity_bytes,
                                      const DatastoreOptions& options = DatastoreOptions());
  [[nodiscard]] static Datastore open_read_only(
      const std::string& path, const DatastoreOptions& options = DatastoreOptions());

  bool is_open() const noexcept;
  bool writable() const noexcept;
  void* segment() const noexcept;  // a multiple of 2 MiB, another one at each opening
  void* head() const noexcept;     // segment() - kHeadBytes
  std::uint64_t size_bytes() const noexcept;
  std::uint64_t capacity_bytes() const noexcept;

  // Makes the segment at least this large. It grows by steps of a quarter, at least 64 MiB, up to
  // the capacity. invalid_argument beyond the capacity.
  void extend(std::uint64_t size_bytes);

  // Sets bytes of the segment to zero: see Region::zero().
  void zero(ByteRange range);

  // Makes segment and files durable, both or neither. See Region::commit() and commit_async(); the
  // files are read in the call.
  CommitReport commit(const std::string& message = std::string());
  [[nodiscard]] std::future<CommitReport> commit_async(const std::string& message = std::string());

  // commit(), and keeps that state as the datastore `path`: DIR@NAME in this store, or a directory
  // with a link to this store. The last part of its path becomes the version's name, with a number
  // after it when that name is taken. already_exists.
  CommitReport snapshot(const std::string& path);
  // The same, asynchronously: see Region::snapshot_async(). The version opens when the future is
  // ready. Until then, and after an error, a `path` of its own is a link to a version that does not
  // exist: it is not consistent(), and prepare() removes it.
  [[nodiscard]] std::future<CommitReport> snapshot_async(const std::string& path);

  void close() noexcept;

  // For a path, open or not:
  // The directory of the manager's files; created and filled when it is missing and the datastore
  // exists.
  static std::string files_directory(const std::string& path);
  // Whether it can be opened: it exists, has a commit and no writer. If so, its files are as of
  // that commit.
  static bool consistent(const std::string& path,
                         const DatastoreOptions& options = DatastoreOptions());
  // Removes the datastore at the path, if any, and creates the directory for the files of a new
  // one.
  static void prepare(const std::string& path);
  // Removes the version, and with the last version the store. Other content of the directory stays,
  // and with it the directory. not_found; busy: it has a writer.
  static void remove(const std::string& path);
  // Copies the last commit into a store of its own; `to` as after prepare().
  static void copy(const std::string& from, const std::string& to,
                   const DatastoreOptions& options = DatastoreOptions());

 private:
  struct Impl;  // src/interfaces/metall/datastore.cpp
  explicit Datastore(std::unique_ptr<Impl> impl) noexcept;
  Impl& opened() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum

#endif  // VELLUM_DATASTORE_HPP
