// interfaces/metall/datastore.cpp: see vellum/datastore.hpp.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vellum/datastore.hpp>

#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "format/wire/magic.hpp"
#include "interfaces/metall/address_range.hpp"
#include "interfaces/metall/files.hpp"
#include "interfaces/metall/place.hpp"
#include "interfaces/metall/stamp.hpp"
#include "interfaces/metall/version_files.hpp"

namespace vellum {
namespace {

namespace fs = std::filesystem;
using base::round_up;
using datastore::AddressRange;
using datastore::DatastorePlace;
using datastore::FileIndex;
using datastore::kAreaBytes;
using format::kPageBytes;

constexpr std::uint64_t kMinStepBytes = 64u << 20;

RegionOptions placed(const RegionOptions& options, const AddressRange& range,
                     std::uint64_t capacity_bytes) {
  RegionOptions result = options;
  result.over_reservation = true;
  result.fixed_address = false;
  result.base_address = reinterpret_cast<std::uintptr_t>(range.region());
  result.capacity_bytes = capacity_bytes;
  return result;
}

DatastorePlace existing(const std::string& path) {
  DatastorePlace place = datastore::place_of(path);
  if (!fs::exists(place.store)) {
    if (place.linked) {
      fail(Errc::not_found, "{}: it is a version of the store {}, which does not exist",
           place.directory, place.store);
    }
    fail(Errc::not_found, "{}: no datastore exists there", path);
  }
  return place;
}

// The manager's files, next to the store, are plain.
void require_plain_files(const StoreOptions& store, const std::string& path) {
  if (!store.encrypt) return;
  fail(Errc::unsupported, "{}: a datastore cannot be encrypted yet: its files would stay plain",
       path);
}

// All stores of datastores are opened by these two.
Store open_plain(const std::string& path) {
  Store out = Store::open(path);
  require_plain_files(out.options(), path);
  return out;
}

Store open_or_create_plain(const std::string& path, const StoreOptions& options) {
  require_plain_files(options, path);
  Store out = Store::open_or_create(path, options);
  require_plain_files(out.options(), path);
  return out;
}

// A branch without a commit, left by a killed create() or copy(), does not count.
void require_nothing_at(const DatastorePlace& place) {
  if (!place.linked && !datastore::is_there(place)) return;
  if (!place.linked && fs::exists(place.store)) {
    Store store = open_plain(place.store);
    const VersionInfo version = store.version(place.version);
    if (version.is_branch && version.sequence == 0) return store.remove_branch(place.version);
  }
  fail(Errc::already_exists, "{}: a datastore exists already", place.directory);
}

// Turns the standard library's file errors into Vellum's.
template <typename Body>
auto reporting(const Body& body) {
  try {
    return body();
  } catch (const fs::filesystem_error& e) {
    fail(Errc::io, "{}", e.what());
  }
}

}  // namespace

struct Datastore::Impl {
  DatastorePlace place;
  DatastoreOptions options;
  std::optional<Store> store;
  AddressRange range;  // outlives the region inside it
  Region region;
  FileIndex index;         // describes the area in memory
  bool committed = false;  // and describes the last commit, too
  // The last snapshot of snapshot_async(). The next call waits for its end, so one suffices.
  std::string begun;

  std::byte* data() const { return static_cast<std::byte*>(region.data()); }
  std::uint64_t segment_bytes() const {
    assert(region.size_bytes() > kAreaBytes);
    return region.size_bytes() - kAreaBytes;
  }
  std::byte* area() const { return data() + segment_bytes(); }

  void reserve(std::uint64_t segment_capacity_bytes) {
    range = AddressRange(round_up(segment_capacity_bytes, kPageBytes) + kAreaBytes);
  }
  RegionOptions placed_at(std::uint64_t segment_capacity_bytes) const {
    return placed(options.region, range, round_up(segment_capacity_bytes, kPageBytes) + kAreaBytes);
  }
  void read_index() {
    datastore::decode_index({area() + kAreaBytes - kPageBytes, kPageBytes}, index);
  }
  void pack() {
    if (!region.writable()) {
      fail(Errc::read_only, "{} is open read-only", place.directory);
    }
    committed = false;
    reporting([&] { datastore::pack_files(place.files(), area(), index); });
  }
  // The place of a new snapshot, and its name in this store.
  std::pair<DatastorePlace, std::string> snapshot_at(const std::string& path) const {
    const DatastorePlace target = datastore::place_of(path);
    std::string name = datastore::snapshot_name(target, store->path(), begun);
    if (!target.linked && datastore::is_there(target)) {
      fail(Errc::already_exists, "{}: a datastore exists already", path);
    }
    return {target, std::move(name)};
  }
  // Stamps the files as equal to the last commit: the next opening need not restore them.
  void stamp_files() noexcept;
};

void Datastore::Impl::stamp_files() noexcept {
  try {
    const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
      std::memcpy(out.data(), area() + offset, out.size());
    };
    if (!committed || !datastore::files_are(place.files(), index, read)) return;
    datastore::stamp(place, store->version(place.version), datastore::Lasting::for_ever);
  } catch (const std::exception&) {  // without a stamp the files are restored
  }
}

Datastore::Datastore() noexcept = default;
Datastore::Datastore(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Datastore::~Datastore() { close(); }
Datastore::Datastore(Datastore&&) noexcept = default;
Datastore& Datastore::operator=(Datastore&& other) noexcept {
  close();
  impl_ = std::move(other.impl_);
  return *this;
}

Datastore Datastore::create(const std::string& path, std::uint64_t capacity_bytes,
                            const DatastoreOptions& options) {
  return reporting([&] {
    auto impl = std::make_unique<Impl>();
    impl->options = options;
    impl->place = datastore::place_of(path);
    require_plain_files(options.store, impl->place.store);
    require_nothing_at(impl->place);
    datastore::make_directory(impl->place);
    impl->store = open_or_create_plain(impl->place.store, options.store);
    impl->reserve(capacity_bytes);
    const std::uint64_t first = std::min(round_up(capacity_bytes, kPageBytes), kMinStepBytes);
    impl->region = impl->store->create_region(impl->place.version, first + kAreaBytes,
                                              impl->placed_at(capacity_bytes));
    return Datastore(std::move(impl));
  });
}

Datastore Datastore::open(const std::string& path, std::uint64_t capacity_bytes,
                          const DatastoreOptions& options) {
  return reporting([&] {
    auto impl = std::make_unique<Impl>();
    impl->options = options;
    impl->place = existing(path);
    impl->store = open_plain(impl->place.store);
    impl->store->convert_to_branch(impl->place.version);
    const std::uint64_t capacity =
        std::max(capacity_bytes, datastore::segment_bytes_of(*impl->store, impl->place));
    impl->reserve(capacity);
    impl->region = impl->store->open_region(impl->place.version, impl->placed_at(capacity));
    // With the lock held: from now on only this opening writes the files.
    datastore::put_files_back(*impl->store, impl->place, options);
    datastore::remove_stamp(impl->place);
    impl->read_index();
    return Datastore(std::move(impl));
  });
}

Datastore Datastore::open_read_only(const std::string& path, const DatastoreOptions& options) {
  return reporting([&] {
    auto impl = std::make_unique<Impl>();
    impl->options = options;
    impl->place = existing(path);
    impl->store = open_plain(impl->place.store);
    datastore::settle_files(*impl->store, impl->place, options);
    const std::uint64_t segment_bytes = datastore::segment_bytes_of(*impl->store, impl->place);
    impl->reserve(segment_bytes);
    impl->region = impl->store->open_version(impl->place.version, impl->placed_at(segment_bytes));
    return Datastore(std::move(impl));
  });
}

Datastore::Impl& Datastore::opened() const {
  if (!impl_) fail(Errc::invalid_argument, "this Datastore is closed, or was never opened");
  return *impl_;
}

bool Datastore::is_open() const noexcept { return impl_ != nullptr; }
bool Datastore::writable() const noexcept { return impl_ && impl_->region.writable(); }
void* Datastore::segment() const noexcept { return impl_ ? impl_->data() : nullptr; }
void* Datastore::head() const noexcept { return impl_ ? impl_->data() - kHeadBytes : nullptr; }
std::uint64_t Datastore::size_bytes() const noexcept { return impl_ ? impl_->segment_bytes() : 0; }
std::uint64_t Datastore::capacity_bytes() const noexcept {
  return impl_ ? impl_->region.capacity_bytes() - kAreaBytes : 0;
}

void Datastore::extend(std::uint64_t size_bytes) {
  Impl& impl = opened();
  const std::uint64_t now = this->size_bytes(), most = capacity_bytes();
  if (size_bytes <= now) return;
  if (size_bytes > most) {
    fail(Errc::invalid_argument, "{}: {} bytes are more than its capacity of {}",
         impl.place.directory, size_bytes, most);
  }
  const std::uint64_t step = std::max(kMinStepBytes, now / 4);
  const std::uint64_t next = std::min(most, round_up(std::max(size_bytes, now + step), kPageBytes));
  assert(next >= size_bytes && next <= most);
  std::byte* const old_area = impl.area();
  impl.region.grow(next + kAreaBytes);
  // The area has moved: its old range belongs to the segment, and the next commit() packs all files
  // again.
  datastore::clear_files(old_area, impl.index);
  impl.index = {};
}

void Datastore::zero(ByteRange range) {
  Impl& impl = opened();
  const auto [offset, length] = range;
  if (offset > size_bytes() || length > size_bytes() - offset) {
    fail(Errc::invalid_argument, "{}: {} bytes at {} do not lie in its segment of {}",
         impl.place.directory, length, offset, size_bytes());
  }
  impl.region.zero(range);
}

CommitReport Datastore::commit(const std::string& message) {
  Impl& impl = opened();
  impl.pack();
  const CommitReport report = impl.region.commit(message);
  impl.committed = true;
  return report;
}

std::future<CommitReport> Datastore::commit_async(const std::string& message) {
  Impl& impl = opened();
  impl.pack();
  return impl.region.commit_async(message);
}

CommitReport Datastore::snapshot(const std::string& path) {
  Impl& impl = opened();
  return reporting([&] {
    const auto [target, name] = impl.snapshot_at(path);
    impl.pack();
    const CommitReport report = impl.region.snapshot(name);
    impl.committed = true;
    // Its files are restored on demand: the creator of the snapshot may write them.
    if (!target.linked) datastore::write_link(target, impl.store->path(), name);
    return report;
  });
}

std::future<CommitReport> Datastore::snapshot_async(const std::string& path) {
  Impl& impl = opened();
  return reporting([&] {
    const auto [target, name] = impl.snapshot_at(path);
    impl.pack();
    // First, because no caller is left to write it when the version exists.
    if (!target.linked) datastore::write_link(target, impl.store->path(), name);
    auto result = impl.region.snapshot_async(name);
    impl.begun = name;
    return result;
  });
}

void Datastore::close() noexcept {
  if (!impl_) return;
  if (impl_->region.writable()) impl_->stamp_files();
  impl_.reset();
}

std::string Datastore::files_directory(const std::string& path) {
  return reporting([&] {
    const DatastorePlace place = datastore::place_of(path);
    if (!fs::exists(place.files()) && datastore::is_there(place)) {
      datastore::put_files_back(open_plain(place.store), place, {});
    }
    return place.files();
  });
}

bool Datastore::consistent(const std::string& path, const DatastoreOptions& options) {
  return reporting([&] {
    const DatastorePlace place = datastore::place_of(path);
    if (!fs::exists(place.store) || !datastore::is_there(place)) return false;
    Store store = open_plain(place.store);
    if (!datastore::has_commit(store, place)) return false;
    try {
      datastore::settle_files(store, place, options);
    } catch (const Error& e) {
      if (e.code() == Errc::busy) return false;
      throw;
    }
    return true;
  });
}

void Datastore::prepare(const std::string& path) {
  return reporting([&] {
    const DatastorePlace place = datastore::place_of(path);
    if (fs::exists(place.store) && datastore::is_there(place)) remove(path);
    // Leftovers of a version or store that another process has removed.
    datastore::remove_stamp(place);
    fs::remove_all(place.files());
    fs::remove(place.link());
    datastore::make_directory(datastore::place_of(path));
  });
}

void Datastore::remove(const std::string& path) {
  return reporting([&] {
    const DatastorePlace place = existing(path);
    Store store = open_plain(place.store);
    if (store.version(place.version).is_branch) {
      store.remove_branch(place.version);
    } else {
      store.remove_snapshot(place.version);
    }
    datastore::remove_stamp(place);
    fs::remove_all(place.files());
    fs::remove(place.link());
    std::error_code ignored;
    fs::remove(place.directory, ignored);  // unless it has other content
    if (!store.versions().empty()) return;
    fs::remove_all(place.store);
    fs::remove_all(place.owner_directory + "/versions");
    fs::remove(place.owner_directory, ignored);
  });
}

void Datastore::copy(const std::string& from, const std::string& to,
                     const DatastoreOptions& options) {
  return reporting([&] {
    const DatastorePlace source = existing(from), target = datastore::place_of(to);
    Store store = open_plain(source.store);
    datastore::settle_files(store, source, options);
    require_plain_files(options.store, target.store);
    require_nothing_at(target);
    datastore::make_directory(target);
    open_or_create_plain(target.store, options.store)
        .import_version(target.version, store, source.version, "copy of " + source.directory);
  });
}

}  // namespace vellum
