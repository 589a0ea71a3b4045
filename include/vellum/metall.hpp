// vellum/metall.hpp: metall::basic_manager with failure-atomic, versioned datastores.
// It needs Metall's headers (0.30) and Boost's on the include path. docs/guides/metall.md is the
// introduction.
//
//   #include <vellum/metall.hpp>
//   vellum::metall_manager manager(metall::create_only, "/data/graph");
//   manager.construct<int>("n")(42);
//   manager.flush();                         // a commit: segment and Metall's own data in one step
//   manager.snapshot("/data/graph@monday");  // or a path of its own; costs the changes
//   vellum::metall_manager then(metall::open_read_only, "/data/graph@monday");
//
// Differences from metall::manager:
//  - After a crash the datastore opens, as of the last flush() that returned, or of one in
//    progress, whole; consistent() is true. create_only returns with the empty datastore committed.
//  - snapshot() shares equal pages with its datastore, and costs the written pages. `clone` and the
//    number of threads have no effect. copy() creates an independent datastore.
//  - Any snapshot opens, read-only or to write, concurrently with the live datastore. The live
//    datastore does not open a second time while it is open to write: snapshot it.
//  - vellum::metall_snapshot_async(manager, path) copies the written pages and returns a future.
//  - flush(false) copies the written pages and returns; the rest runs in the background.
//  - flush() is void in Metall: a failure is logged, as everywhere in Metall, and
//    vellum::metall_last_error() returns it.
//  - A path is a directory; versions in it are DIR@NAME (vellum/datastore.hpp). `vellum log
//    DIR/store`, `diff`, `gc`, `verify` and the rest work on it.
//  - `vellum import DIR --metall OLD` imports datastores of plain Metall.
//
// vellum::metall_options() has the options of stores and regions: set it before the first manager.
// A program that names metall::manager throughout is compiled with
// `-DVELLUM_METALL_MANAGER -include vellum/metall.hpp`: the name then means vellum::metall_manager.
#ifndef VELLUM_METALL_HPP
#define VELLUM_METALL_HPP

#ifdef VELLUM_METALL_MANAGER
#ifdef METALL_METALL_HPP
#error "VELLUM_METALL_MANAGER: include vellum/metall.hpp before metall/metall.hpp"
#endif
#define METALL_METALL_HPP  // its only own line is the alias below
#endif

// Metall's headers expect defs.hpp first.
// clang-format off
#include <metall/defs.hpp>
#include <metall/basic_manager.hpp>
#include <metall/kernel/segment_header.hpp>
#include <metall/logger.hpp>
#include <metall/version.hpp>
// clang-format on

#include <vellum/metall_storage.hpp>

namespace vellum {

struct metall_traits {
  using segment_header_type = ::metall::kernel::segment_header;
  static void error(const char* text) {
    ::metall::logger::out(::metall::logger::level::error, "vellum", 0, text);
  }
};

using metall_storage = basic_metall_storage<metall_traits>;
using metall_segment_storage = basic_metall_segment_storage<metall_traits>;
using metall_manager = ::metall::basic_manager<metall_storage, metall_segment_storage>;

// The error of this thread's last failed call. Empty: none has failed.
inline const std::string& metall_last_error() { return detail::metall_last_error(); }

// manager.snapshot(path), which only copies the written pages before it returns; a library thread
// compresses and writes them. The snapshot opens when the future is ready; the future throws
// vellum::Error if it failed. This call throws io when the manager has refused.
[[nodiscard]] inline std::future<CommitReport> metall_snapshot_async(
    metall_manager& manager, const std::filesystem::path& path) {
  std::future<CommitReport> result;
  detail::metall_pending_snapshot() = &result;
  const bool begun = manager.snapshot(path);
  detail::metall_pending_snapshot() = nullptr;
  if (!begun) throw Error(Errc::io, path.string() + ": no snapshot: " + metall_last_error());
  return result;
}

}  // namespace vellum

// Five members of Metall's kernel, for these storage classes only. Its own members would report a
// datastore as consistent only after it was closed.
namespace metall::kernel {

// The metadata is written before the segment is synchronised, so that the commit has both.
template <>
inline void vellum::metall_manager::manager_kernel_type::flush(const bool synchronous) {
  priv_check_sanity();
  if (m_segment_storage.read_only()) return;
  if (priv_serialize_management_data()) m_segment_storage.sync(synchronous);
}

// Commits the empty datastore, so that it exists from now on.
template <>
inline bool vellum::metall_manager::manager_kernel_type::create(const path_type& base_path,
                                                                const size_type vm_reserve_size) {
  m_good = priv_create(base_path, vm_reserve_size);
  if (!m_good) return false;
  m_good = priv_serialize_management_data() && m_segment_storage.sync(true);
  return m_good;
}

// Consistent means: it has a commit and no writer.
template <>
inline bool vellum::metall_manager::manager_kernel_type::priv_properly_closed(
    const path_type& base_path) {
  return vellum::metall_storage::consistent(base_path);
}

// Writes the snapshot's own files, its uuid and description. The version has all others, and an
// opening restores them.
template <>
inline bool vellum::metall_manager::manager_kernel_type::priv_snapshot(const path_type& destination,
                                                                       const bool clone,
                                                                       const int threads) {
  priv_check_sanity();
  if (!priv_serialize_management_data() || !priv_create_datastore_directory(destination)) {
    return false;
  }
  if (!m_segment_storage.snapshot(destination, clone, threads)) return false;
  const auto directory = vellum::metall_storage::get_path(destination, k_management_dir_name);
  json_store metadata;
  std::string description;
  return mdtl::create_directory(directory) && priv_set_uuid(&metadata) &&
         priv_set_version(&metadata) && priv_write_management_metadata(destination, metadata) &&
         (!priv_read_description(m_base_path, &description) ||
          priv_write_description(destination, description));
}

// Metall has written the files of a copy. They stay as they are from now on; if the process is
// killed before this, they are restored.
template <>
inline bool vellum::metall_manager::manager_kernel_type::priv_mark_properly_closed(
    const path_type& base_path) {
  return vellum::metall_storage::consistent(base_path);
}

}  // namespace metall::kernel

#ifdef VELLUM_METALL_MANAGER
namespace metall {
using manager = vellum::metall_manager;
}
#endif

#endif  // VELLUM_METALL_HPP
