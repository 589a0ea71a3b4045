// vellum/metall_storage.hpp: the two storage classes of Metall's manager, over Datastore.
//
// Programs include vellum/metall.hpp. This header does not depend on Metall's: `Traits` supplies
// the parts that it needs (the type of the segment's header, the log), so that it is compiled and
// tested where Metall is not installed. The duties of each member are Metall's contract
// (metall/kernel/storage.hpp and segment_storage.hpp, Metall 0.30).
//
// Metall uses bool, not exceptions: a failed call returns false, and passes the reason to
// Traits::error(). metall_last_error() keeps the last message of the thread.
#ifndef VELLUM_METALL_STORAGE_HPP
#define VELLUM_METALL_STORAGE_HPP

#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <initializer_list>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include <vellum/datastore.hpp>

namespace vellum {

// The options of all datastores that are created or opened from now on, by all threads: set them
// first.
inline DatastoreOptions& metall_options() {
  static DatastoreOptions options = [] {
    DatastoreOptions result;
    // A snapshot's own files: its uuid, and its description.
    result.own_files = {"management/manager_metadata", "management/description"};
    return result;
  }();
  return options;
}

namespace detail {

inline std::string& metall_last_error() {
  static thread_local std::string text;
  return text;
}
inline Errc& metall_last_errc() {
  static thread_local Errc code = Errc::ok;
  return code;
}

// If it is set, a synchronous flush of this thread calls it instead of Datastore::commit():
// vellum/metall_mpi.hpp names the commit as well.
using MetallCommit = std::function<void(Datastore&)>;
inline MetallCommit& metall_commit() {
  static thread_local MetallCommit commit;
  return commit;
}

// The list for the futures of this thread's snapshots; null: the call waits for them.
inline std::future<CommitReport>*& metall_pending_snapshot() {
  static thread_local std::future<CommitReport>* future = nullptr;
  return future;
}

// Runs a body that may throw, for callers that use only bool.
template <typename Traits, typename Body>
bool metall_attempt(const Body& body) noexcept {
  try {
    body();
    return true;
  } catch (const std::exception& e) {
    try {
      const auto* const error = dynamic_cast<const Error*>(&e);
      metall_last_errc() = error == nullptr ? Errc::io : error->code();
      metall_last_error() = e.what();
      Traits::error(e.what());
    } catch (...) {  // no memory for the message
    }
    return false;
  }
}

}  // namespace detail

// The place of a datastore's metadata.
template <typename Traits>
class basic_metall_storage {
 public:
  using path_type = std::filesystem::path;

  static path_type get_path(const path_type& base_path, const path_type& key) {
    return get_path(base_path, {key});
  }
  static path_type get_path(const path_type& base_path,
                            const std::initializer_list<path_type>& keys) {
    path_type path;
    const bool found = detail::metall_attempt<Traits>(
        [&] { path = Datastore::files_directory(base_path.string()); });
    if (!found) path = base_path / "files";  // missing: Metall reports the error
    for (const auto& key : keys) path /= key;
    return path;
  }

  // Prepares a new datastore: an existing one is removed.
  static bool create(const path_type& base_path) {
    return detail::metall_attempt<Traits>([&] { Datastore::prepare(base_path.string()); });
  }
  static bool remove(const path_type& base_path) {
    return detail::metall_attempt<Traits>([&] {
      try {
        Datastore::remove(base_path.string());
      } catch (const Error& e) {
        if (e.code() != Errc::not_found) throw;  // already removed
      }
    });
  }
  static bool consistent(const path_type& base_path) {
    bool is = false;
    const bool known = detail::metall_attempt<Traits>(
        [&] { is = Datastore::consistent(base_path.string(), metall_options()); });
    return known && is;
  }
};

// The segment. Movable. Its header, which Metall's allocators point to from inside the segment, is
// one page before it, as in Metall's own storage: the pointers of an imported datastore stay valid.
template <typename Traits>
class basic_metall_segment_storage {
 public:
  using path_type = std::filesystem::path;
  using segment_header_type = typename Traits::segment_header_type;
  static_assert(sizeof(segment_header_type) <= Datastore::kHeadBytes, "a page has room for it");

  basic_metall_segment_storage() = default;
  // Like Metall's own: an open segment is synchronised first.
  ~basic_metall_segment_storage() {
    if (is_open()) {
      sync(true);
      release();
    }
  }
  basic_metall_segment_storage(const basic_metall_segment_storage&) = delete;
  basic_metall_segment_storage& operator=(const basic_metall_segment_storage&) = delete;
  basic_metall_segment_storage(basic_metall_segment_storage&&) noexcept = default;
  basic_metall_segment_storage& operator=(basic_metall_segment_storage&&) noexcept = default;

  static bool copy(const path_type& source_path, const path_type& destination_path, bool /*clone*/,
                   int /*max_num_threads*/) {
    return detail::metall_attempt<Traits>([&] {
      Datastore::copy(source_path.string(), destination_path.string(), metall_options());
    });
  }

  bool create(const path_type& base_path, std::size_t capacity) {
    return take([&] { return Datastore::create(base_path.string(), capacity, metall_options()); });
  }
  bool open(const path_type& base_path, std::size_t capacity, bool read_only) {
    return take([&] {
      return read_only ? Datastore::open_read_only(base_path.string(), metall_options())
                       : Datastore::open(base_path.string(), capacity, metall_options());
    });
  }
  bool extend(std::size_t request_size) {
    return writes([&] { datastore_.extend(request_size); });
  }

  // Releases the address space; data that was not synchronised is lost.
  bool release() {
    if (!is_open()) return false;
    header().~segment_header_type();
    datastore_.close();
    return true;
  }
  // Commits the segment, and the metadata in its files. Without `wait` a library thread encodes and
  // writes; the next call that changes the datastore waits for it.
  bool sync(bool wait) {
    if (read_only_) return is_open();
    return writes([&] {
      if (wait && detail::metall_commit()) {
        detail::metall_commit()(datastore_);
      } else if (wait) {
        datastore_.commit();
      } else {
        std::ignore = datastore_.commit_async();
      }
    });
  }
  // O(written pages), whatever the segment's size.
  bool snapshot(const path_type& snapshot_path, bool /*clone*/, int /*max_num_threads*/) {
    return writes([&] {
      if (auto* const pending = detail::metall_pending_snapshot()) {
        *pending = datastore_.snapshot_async(snapshot_path.string());
      } else {
        datastore_.snapshot(snapshot_path.string());
      }
    });
  }
  // Sets unneeded pages to zero, so that no version stores them.
  bool free_region(std::ptrdiff_t offset, std::size_t nbytes) {
    if (offset < 0) return false;
    return writes([&] { datastore_.zero({static_cast<std::uint64_t>(offset), nbytes}); });
  }

  void* get_segment() const { return datastore_.segment(); }
  segment_header_type& get_segment_header() { return header(); }
  const segment_header_type& get_segment_header() const { return header(); }
  std::size_t size() const { return datastore_.size_bytes(); }
  std::size_t page_size() const { return Datastore::kHeadBytes; }
  bool read_only() const { return read_only_; }  // of the last segment, also after release()
  bool is_open() const { return datastore_.is_open(); }
  bool check_sanity() const { return true; }

 private:
  template <typename Open>
  bool take(const Open& open) {
    if (is_open()) return false;  // one at a time
    return detail::metall_attempt<Traits>([&] {
      datastore_ = open();
      read_only_ = !datastore_.writable();
      new (datastore_.head()) segment_header_type();
    });
  }
  template <typename Body>
  bool writes(const Body& body) {
    if (!is_open() || read_only_) return false;
    return detail::metall_attempt<Traits>(body);
  }
  segment_header_type& header() const {
    return *std::launder(static_cast<segment_header_type*>(datastore_.head()));
  }

  Datastore datastore_;
  bool read_only_ = false;
};

}  // namespace vellum

#endif  // VELLUM_METALL_STORAGE_HPP
