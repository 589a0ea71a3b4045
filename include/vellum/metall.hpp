// vellum/metall.hpp: Metall on Vellum: metall::basic_manager whose datastores are failure-atomic
// and versioned. Needs Metall's headers (0.30) and Boost's on the include path;
// docs/guides/metall.md begins at the beginning.
//
//   #include <vellum/metall.hpp>
//   vellum::metall_manager manager(metall::create_only, "/data/graph");
//   manager.construct<int>("n")(42);
//   manager.flush();                            // a commit: segment and Metall's own data in one
//   step manager.snapshot("/data/graph@monday");     // or a path of its own; costs what changed
//   vellum::metall_manager then(metall::open_read_only, "/data/graph@monday");
//
// What differs from metall::manager:
//  - After a crash the datastore opens, as of the last flush() that returned, or one in progress,
//    whole; consistent() is true. create_only returns with the empty datastore committed.
//  - snapshot() shares what is equal with its datastore, and costs the pages that were written.
//    `clone` and the number of threads have no meaning. copy() makes a datastore that stands alone.
//  - Any snapshot opens, read-only or to write, beside the live one. The live one itself is not
//    opened a second time while it is open to write: snapshot it.
//  - flush(false) copies what was written and returns; the rest goes on beside the program.
//  - flush() is void in Metall: what goes wrong is logged, as by all of Metall, and
//    vellum::metall_last_error() says it.
//  - A path is a directory; versions in it are DIR@NAME (vellum/datastore.hpp). `vellum log
//    DIR/store`, `diff`, `gc`, `verify` and the rest work on it.
//  - Datastores of plain Metall: `vellum import DIR --metall OLD`.
// How stores are made and regions opened: vellum::metall_options(), before the first manager.
// A program that names metall::manager throughout is built with
// `-DVELLUM_METALL_MANAGER -include vellum/metall.hpp`: the name means vellum::metall_manager then.
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

// Of this thread: why the last call failed that did. Empty: none has.
inline const std::string& metall_last_error() { return detail::metall_last_error(); }

}  // namespace vellum

// Four members of Metall's kernel, for these storage classes only. They are where it would say
// that a datastore is whole only after it was closed.
namespace metall::kernel {

// The books are written before the segment is synchronised: the commit has both.
template <>
inline void vellum::metall_manager::manager_kernel_type::flush(const bool synchronous) {
  priv_check_sanity();
  if (m_segment_storage.read_only()) return;
  if (priv_serialize_management_data()) m_segment_storage.sync(synchronous);
}

// The empty datastore is committed, so that there is one from here on.
template <>
inline bool vellum::metall_manager::manager_kernel_type::create(const path_type& base_path,
                                                                const size_type vm_reserve_size) {
  m_good = priv_create(base_path, vm_reserve_size);
  if (!m_good) return false;
  m_good = priv_serialize_management_data() && m_segment_storage.sync(true);
  return m_good;
}

// Whole means: there is a commit, and nobody writes.
template <>
inline bool vellum::metall_manager::manager_kernel_type::priv_properly_closed(
    const path_type& base_path) {
  return vellum::metall_storage::consistent(base_path);
}

// Metall has written its files, of a snapshot or a copy: they stay as they are from here on, and
// are put back when it is killed before.
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
