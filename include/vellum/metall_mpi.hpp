// vellum/metall_mpi.hpp: metall::utility::metall_mpi_adaptor with versions over all ranks.
// It needs Metall's headers (0.30), Boost's and MPI's. docs/guides/metall.md has an example.
//
//   vellum::metall_mpi_adaptor graph(metall::create_only, "/data/graph");
//   auto& manager = graph.get_local_manager();     // a vellum::metall_manager for each rank
//   ...
//   graph.snapshot("/data/graph@monday");           // on all ranks, or on none
//   vellum::metall_mpi_adaptor then(metall::open_read_only, "/data/graph@monday");
//
// Differences from Metall's own adaptor:
//  - A version exists on all ranks or on none. After a crash of any rank the group opens, as of the
//    last flush(), snapshot() or regular end that returned, or of one in progress, whole. A flush()
//    of a local manager belongs to no version until the next one.
//  - flush() is new: a version of all ranks, which is kept until the next one. The destructor
//    creates one too, unless an exception is in flight.
//  - Constructors and partitions() throw vellum::Error on all ranks, instead of MPI_Abort(). The
//    other calls return false on all ranks; vellum::metall_last_error() has the reason.
//  - A snapshot costs the changes (vellum/metall.hpp). It is read-only, and needs its group: copy()
//    creates an independent one, which can be written.
//  - consistent() refers to the last version, and is true also while the group is open.
//  - remove() is refused while the group is open to write.
//
// A program that names metall::utility::metall_mpi_adaptor throughout is compiled with
// `-DVELLUM_METALL_MANAGER -include vellum/metall_mpi.hpp`.
#ifndef VELLUM_METALL_MPI_HPP
#define VELLUM_METALL_MPI_HPP

#ifdef VELLUM_METALL_MANAGER
#ifdef METALL_UTILITY_METALL_MPI_ADAPTOR_HPP
#error "VELLUM_METALL_MANAGER: include vellum/metall_mpi.hpp before Metall's adaptor"
#endif
#define METALL_UTILITY_METALL_MPI_ADAPTOR_HPP  // the alias below stands for its class
#endif

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <vellum/metall.hpp>
#include <vellum/mpi_datastore.hpp>

namespace vellum {

namespace detail {

// Metall uses bool: the error is that of the thread's last failed call.
[[noreturn]] inline void fail_as_metall(const std::string& what) {
  const std::string& why = metall_last_error();
  const Errc code = metall_last_errc() == Errc::ok ? Errc::io : metall_last_errc();
  throw Error(code, why.empty() ? what : what + ": " + why);
}

class MetallManager final : public DatastoreManager {
 public:
  explicit MetallManager(std::size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  void create(const std::string& path) override {
    if (capacity_bytes_ == 0) {
      take("cannot create " + path, ::metall::create_only, path.c_str());
    } else {
      take("cannot create " + path, ::metall::create_only, path.c_str(), capacity_bytes_);
    }
  }
  void open(const std::string& path) override {
    take("cannot open " + path, ::metall::open_only, path.c_str());
  }
  void open_read_only(const std::string& path) override {
    take("cannot open " + path, ::metall::open_read_only, path.c_str());
  }
  CommitReport snapshot(const std::string& path) override {
    CommitReport report;
    bool is_done = false;
    forget_error();
    {
      const Naming naming([&](Datastore& datastore) {
        report = datastore.snapshot(path);
        is_done = true;
      });
      manager_->flush(true);
    }
    if (!is_done) fail_as_metall("no version '" + path + "'");
    return report;
  }
  void close() noexcept override { manager_.reset(); }

  metall_manager& manager() const { return *manager_; }

 private:
  struct Naming {
    explicit Naming(MetallCommit commit) { metall_commit() = std::move(commit); }
    ~Naming() { metall_commit() = nullptr; }
    Naming(const Naming&) = delete;
    Naming& operator=(const Naming&) = delete;
  };
  static void forget_error() {
    metall_last_error().clear();
    metall_last_errc() = Errc::ok;
  }
  template <typename... Arguments>
  void take(const std::string& what, const Arguments&... arguments) {
    forget_error();
    auto manager = std::make_unique<metall_manager>(arguments...);
    if (!manager->check_sanity()) fail_as_metall(what);
    manager_ = std::move(manager);
  }

  const std::size_t capacity_bytes_;  // 0: Metall's own
  std::unique_ptr<metall_manager> manager_;
};

}  // namespace detail

class metall_mpi_adaptor {
 public:
  using manager_type = metall_manager;

  metall_mpi_adaptor(::metall::open_only_t, const std::string& root_dir_prefix,
                     const MPI_Comm& comm = MPI_COMM_WORLD)
      : metall_mpi_adaptor(root_dir_prefix, comm, 0) {
    group_ = DatastoreGroup::open(comm, root_, local_);
  }
  metall_mpi_adaptor(::metall::open_read_only_t, const std::string& root_dir_prefix,
                     const MPI_Comm& comm = MPI_COMM_WORLD)
      : metall_mpi_adaptor(root_dir_prefix, comm, 0) {
    local_path_ = DatastoreGroup::open_read_only(comm, root_, local_);
    is_read_only_ = true;
  }
  metall_mpi_adaptor(::metall::create_only_t, const std::string& root_dir_prefix,
                     const MPI_Comm& comm = MPI_COMM_WORLD, bool overwrite = false)
      : metall_mpi_adaptor(root_dir_prefix, comm, 0) {
    group_ = DatastoreGroup::create(comm, root_, local_, overwrite);
  }
  metall_mpi_adaptor(::metall::create_only_t, const std::string& root_dir_prefix,
                     const std::size_t capacity, const MPI_Comm& comm = MPI_COMM_WORLD,
                     bool overwrite = false)
      : metall_mpi_adaptor(root_dir_prefix, comm, capacity) {
    group_ = DatastoreGroup::create(comm, root_, local_, overwrite);
  }
  // Creates a version, and closes the managers. Collective.
  ~metall_mpi_adaptor() {
    if (!is_read_only_ && std::uncaught_exceptions() == exceptions_) flush();
    group_.close();
    local_.close();
  }
  metall_mpi_adaptor(const metall_mpi_adaptor&) = delete;
  metall_mpi_adaptor& operator=(const metall_mpi_adaptor&) = delete;

  manager_type& get_local_manager() { return local_.manager(); }
  const manager_type& get_local_manager() const { return local_.manager(); }
  std::string root_dir_path() const { return root_ + "/"; }
  std::string local_dir_path() const { return local_path_; }
  static std::string local_dir_path(const std::string& root_dir_prefix, const int mpi_rank) {
    return DatastoreGroup::local_path(root_dir_prefix, mpi_rank);
  }

  bool flush() {
    return attempt([&] { group_.commit(); });
  }
  bool snapshot(const std::string& destination_dir_path, bool overwrite = false) {
    return attempt([&] { group_.snapshot(destination_dir_path, overwrite); });
  }
  static bool copy(const std::string& source_dir_path, const std::string& destination_dir_path,
                   const MPI_Comm& comm = MPI_COMM_WORLD, bool overwrite = false) {
    return attempt([&] {
      DatastoreGroup::copy(comm, source_dir_path, destination_dir_path, metall_options(),
                           overwrite);
    });
  }
  static bool remove(const std::string& root_dir_prefix, const MPI_Comm& comm = MPI_COMM_WORLD) {
    return attempt([&] { DatastoreGroup::remove(comm, root_dir_prefix); });
  }
  static int partitions(const std::string& root_dir_prefix, const MPI_Comm& comm = MPI_COMM_WORLD) {
    return DatastoreGroup::partitions(comm, root_dir_prefix);
  }
  static bool consistent(const std::string& root_dir_prefix,
                         const MPI_Comm& comm = MPI_COMM_WORLD) {
    bool is = false;
    return attempt([&] { is = DatastoreGroup::consistent(comm, root_dir_prefix); }) && is;
  }

 private:
  metall_mpi_adaptor(const std::string& root, const MPI_Comm& comm, std::size_t capacity_bytes)
      : root_(root), local_(capacity_bytes) {
    int rank = 0;
    ::MPI_Comm_rank(comm, &rank);
    local_path_ = DatastoreGroup::local_path(root_, rank);
  }
  template <typename Body>
  static bool attempt(const Body& body) {
    return detail::metall_attempt<metall_traits>(body);
  }

  const std::string root_;
  std::string local_path_;
  detail::MetallManager local_;
  DatastoreGroup group_;
  bool is_read_only_ = false;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace vellum

#ifdef VELLUM_METALL_MANAGER
namespace metall::utility {
using metall_mpi_adaptor = vellum::metall_mpi_adaptor;
}
#endif

#endif  // VELLUM_METALL_MPI_HPP
