// vellum/mpi_datastore.hpp: datastores of memory managers, one for each rank of MPI, with one
// version over all of them. vellum/metall_mpi.hpp is the interface for Metall.
//
// On disk a group of datastores is a directory:
//   ROOT/subdir-N   the datastore of rank N (vellum/datastore.hpp)
//   ROOT/records    the records of global versions (`vellum group log ROOT/records`)
// ROOT may be in a shared directory, or a directory of that name on a disk of each node: only rank
// 0 uses ROOT/records, and each rank its own subdir.
//
// A version has a path of its own: ROOT@NAME, or a directory with a link that rank 0 has created.
// open() finds the last version of ROOT; ROOT@NAME and links are read-only. copy() creates an
// independent group.
//
// All calls are collective, as those of vellum/mpi.hpp, and an error on one rank is thrown on all
// of them as the same vellum::Error. A version exists on all ranks or on none.
#ifndef VELLUM_MPI_DATASTORE_HPP
#define VELLUM_MPI_DATASTORE_HPP

#include <memory>
#include <string>

#include <vellum/datastore.hpp>
#include <vellum/mpi.hpp>

namespace vellum {

// The memory manager of this rank. A call that fails throws, and nothing is open then.
class DatastoreManager {
 public:
  virtual ~DatastoreManager() = default;
  // Creates the datastore, commits it and leaves it open. REQUIRES: nothing exists at `path`.
  virtual void create(const std::string& path) = 0;
  // Opens its last commit, to write.
  virtual void open(const std::string& path) = 0;
  virtual void open_read_only(const std::string& path) = 0;
  // Commits, and keeps that state as the datastore `path` (Datastore::snapshot()).
  virtual CommitReport snapshot(const std::string& path) = 0;
  // Uncommitted stores may be lost.
  virtual void close() noexcept = 0;
};

class DatastoreGroup {
 public:
  // Creates ROOT, and its first version: the managers' new datastores. Leftovers of a killed
  // create() are removed. Errc::already_exists: ROOT is a group, and `overwrite` is false, or ROOT
  // is something else. REQUIRES: `manager` outlives the group.
  [[nodiscard]] static DatastoreGroup create(MPI_Comm communicator, const std::string& root,
                                             DatastoreManager& manager, bool overwrite = false);
  // Each datastore is reset to the newest version: later commits of only one rank are dropped.
  // Errc::not_found: there is no group, or no version of it; invalid_argument: it has another
  // number of partitions than there are ranks, or `root` is a version, which is read-only; busy.
  [[nodiscard]] static DatastoreGroup open(MPI_Comm communicator, const std::string& root,
                                           DatastoreManager& manager);
  DatastoreGroup() noexcept;  // no group: every call but close() is invalid_argument
  ~DatastoreGroup();          // close()
  DatastoreGroup(DatastoreGroup&&) noexcept;
  DatastoreGroup& operator=(DatastoreGroup&&) noexcept;

  // A version that stays until the next one.
  GroupReport commit(const std::string& message = std::string());
  // A version that is kept until it is removed: ROOT@NAME, or a directory with a link to the group.
  // The last part of a directory's path becomes the version's name, with a number after it when
  // that name is taken. With `overwrite`, a version at the path is removed first.
  // Errc::already_exists.
  //
  // After an error there is no new version on any rank, and the last one stays.
  GroupReport snapshot(const std::string& path, bool overwrite = false);
  // Closes the manager. Not collective. Nothing is committed.
  void close() noexcept;

  // Opens a version in each rank's manager, and returns its path. The newest version of ROOT is
  // removed when the next one is created, unless it is open. Errc::not_found, corrupted: some rank
  // does not have its part.
  static std::string open_read_only(MPI_Comm communicator, const std::string& path,
                                    DatastoreManager& manager);

  // The datastore of a rank. Not collective.
  static std::string local_path(const std::string& root, int rank);
  // Whether all ranks have their part of the version. The group may be open to write: its writers
  // do not change versions.
  static bool consistent(MPI_Comm communicator, const std::string& path);
  static int partitions(MPI_Comm communicator, const std::string& path);
  // Creates a new group with the content of a version.
  static void copy(MPI_Comm communicator, const std::string& from, const std::string& to,
                   const DatastoreOptions& options = DatastoreOptions(), bool overwrite = false);
  // Removes a group with all its versions, or a version. Its records are removed first: after a
  // removal that is cut off every remaining version is whole. A missing group is no error.
  // Errc::busy: it is open to write.
  static void remove(MPI_Comm communicator, const std::string& path);

 private:
  struct Impl;  // src/group/mpi/datastore_group.cpp
  explicit DatastoreGroup(std::unique_ptr<Impl> impl) noexcept;
  Impl& opened() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum

#endif  // VELLUM_MPI_DATASTORE_HPP
