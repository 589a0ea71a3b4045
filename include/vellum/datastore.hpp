// vellum/datastore.hpp: a memory manager's segment, and its files, committed in one step.
//
// A manager that keeps objects in a mapped segment, such as Metall, has books beside it: where the
// objects are, what is free. It keeps them in memory, and writes them to files when it closes; a
// crash before leaves a segment without its books. Here commit() takes the files along: segment and
// files are one version of one region, so an opening gives both as they were at one commit, after a
// crash too. Versions cost what changed of either. vellum/metall.hpp is Metall's face of this.
//
// On disk a datastore is a directory:
//   DIR/store      a Vellum store (`vellum log DIR/store` and all the rest), branch "main"
//   DIR/files      the manager's files: written by the manager, committed from here, and put back
//                  from the last commit by every opening
//   DIR/versions   datastores DIR@NAME: versions of the store by name
// or, of a snapshot that was given a path of its own:
//   DIR/link       which store, relative to DIR, and which version in it
//   DIR/files
// A path DIR@NAME stands for version NAME of DIR's store, also when another program has made that
// (`vellum snapshot`).
//
// Snapshots share the store that they come from: a link is lost with it. copy() makes a datastore
// that stands alone.
//
// Threads: one thread at a time for each Datastore. Processes: one has it open to write, any number
// to read a version. Reading the version that someone writes is refused (busy): snapshot it.
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
  StoreOptions store;    // when one is made
  RegionOptions region;  // but for where it lies, which the datastore decides
  // Files that are the datastore's own, below `files`: committed like the others, but an opening
  // puts them back only when they are missing or empty. (A snapshot's identity, for one.)
  std::vector<std::string> own_files;
};

class Datastore {
 public:
  // In front of the segment: memory of this process, zero at first, which is not stored.
  static constexpr std::uint64_t kHeadBytes = 4096;
  // The manager's files: 16 at most, of 2 GiB each (Errc::invalid_argument from commit()).
  static constexpr std::uint64_t kFiles = 16;
  static constexpr std::uint64_t kFileBytes = std::uint64_t{2} << 30;

  Datastore() noexcept;  // not open: every call but is_open() and close() is invalid_argument
  ~Datastore();          // close(); what was not committed is lost
  Datastore(Datastore&&) noexcept;
  Datastore& operator=(Datastore&&) noexcept;

  // An empty segment that can grow to `capacity_bytes` of address space. Nothing is kept before the
  // first commit(). already_exists: `path` is a datastore; busy: somebody is making one there.
  // What a killed create() or copy() has left there goes.
  static Datastore create(const std::string& path, std::uint64_t capacity_bytes,
                          const DatastoreOptions& options = DatastoreOptions());
  // The last commit, to write. A snapshot that is opened so is one no longer: its name means a
  // branch from now on. not_found, busy.
  static Datastore open(const std::string& path, std::uint64_t capacity_bytes,
                        const DatastoreOptions& options = DatastoreOptions());
  static Datastore open_read_only(const std::string& path,
                                  const DatastoreOptions& options = DatastoreOptions());

  bool is_open() const noexcept;
  bool writable() const noexcept;
  void* segment() const noexcept;  // a multiple of 2 MiB, at another address each time
  void* head() const noexcept;     // segment() - kHeadBytes
  std::uint64_t size_bytes() const noexcept;
  std::uint64_t capacity_bytes() const noexcept;

  // Makes the segment at least as large: by steps of a quarter, and 64 MiB at least, as far as the
  // capacity goes. invalid_argument beyond it.
  void extend(std::uint64_t size_bytes);

  // Makes bytes of the segment zero: see Region::clear().
  void clear(std::uint64_t offset_bytes, std::uint64_t length_bytes);

  // The segment and the files, durable, or neither. See Region::commit() and commit_async(); the
  // files are read in the call.
  CommitReport commit(const std::string& message = std::string());
  std::future<CommitReport> commit_async(const std::string& message = std::string());

  // commit(), and keeps that state as the datastore `path`: DIR@NAME in this store; or a directory
  // that links here, whose last part is the version's name, with a number after it when that is
  // taken. already_exists.
  CommitReport snapshot(const std::string& path);

  void close() noexcept;

  // Of a path, open or not:
  // Where the manager's files are; made, and filled, when the datastore is there and they are not.
  static std::string files_directory(const std::string& path);
  // Whether it can be opened: there, with a commit, and nobody writes it. If so, its files are as
  // of that commit.
  static bool consistent(const std::string& path,
                         const DatastoreOptions& options = DatastoreOptions());
  // Removes what is there, if it is a datastore, and makes the directory for the files of a new
  // one.
  static void prepare(const std::string& path);
  // The version, and with the last version the store. What the directory holds beside that stays,
  // and so does the directory then. not_found; busy: somebody writes it.
  static void remove(const std::string& path);
  // Copies the last commit into a store of its own; `to` as after prepare().
  static void copy(const std::string& from, const std::string& to,
                   const DatastoreOptions& options = DatastoreOptions());

  struct Impl;  // src/datastore/datastore.cpp

 private:
  explicit Datastore(std::unique_ptr<Impl> impl) noexcept;
  Impl& opened() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum

#endif  // VELLUM_DATASTORE_HPP
