// vellum::DatastoreGroup: a job (group/job.hpp) whose partitions are datastores.
#include <filesystem>
#include <utility>
#include <vellum/mpi_datastore.hpp>

#include "base/fail.hpp"
#include "base/files/real_path.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/wire.hpp"
#include "group/job.hpp"
#include "group/mpi/communicator.hpp"
#include "group/mpi/datastore_partition.hpp"
#include "group/mpi/datastore_root.hpp"
#include "group/region_partition.hpp"
#include "region/api/store_impl.hpp"

namespace vellum {

using group::attempt;
using group::Bytes;
using group::Message;
using group::Outcome;
using mpi::DatastorePlace;

namespace {

std::uint32_t rank_of(const group::Ranks& ranks) {
  return static_cast<std::uint32_t>(ranks.rank());
}
std::uint32_t size_of(const group::Ranks& ranks) {
  return static_cast<std::uint32_t>(ranks.size());
}

// Calls find() on rank 0 and returns its result, or throws its error, on all ranks.
template <typename Find>
Bytes found_by_0(group::Ranks& ranks, const Find& find) {
  Message found;
  if (ranks.rank() == 0) {
    found.outcome = attempt([&] { found.body = find(); });
  }
  return group::broadcast_from_0(ranks, found);
}

Bytes encode_place(const DatastorePlace& place) {
  Bytes bytes;
  format::ByteWriter w(bytes);
  w.string(place.root);
  w.string(place.version);
  w.string(place.link);
  return bytes;
}

DatastorePlace decode_place(std::span<const std::byte> bytes) {
  format::ByteReader in(bytes);
  DatastorePlace place;
  place.root = in.string(format::kMaxGroupPathBytes);
  place.version = in.string(format::kMaxNameBytes);
  place.link = in.string(format::kMaxGroupPathBytes);
  if (!in.ok()) fail(Errc::io, "rank 0 sent no path");
  return place;
}

DatastorePlace place_on_all(group::Ranks& ranks, const std::string& path) {
  return decode_place(
      found_by_0(ranks, [&] { return encode_place(mpi::datastore_place_of(path)); }));
}

// A version, and this rank's part of it.
struct RankVersion {
  DatastorePlace place;
  std::string path;  // DIR@NAME, to open
};

// REQUIRES: rank 0.
Bytes find_version(const DatastorePlace& place, std::uint32_t partitions) {
  const auto directory =
      group::RecordDirectory::open(base::posix_fs(), mpi::datastore_records(place.root));
  if (directory.group().partitions != partitions) {
    fail(Errc::invalid_argument, "{}: the group has {} partitions, and the job {} ranks",
         place.root, directory.group().partitions, partitions);
  }
  Bytes bytes = format::encode_group_file(directory.group());
  const Bytes record = format::encode_group_record(group::find_record(directory, place.version),
                                                   directory.group().id);
  bytes.insert(bytes.end(), record.begin(), record.end());
  return bytes;
}

// Throws on all ranks unless each has its part.
RankVersion part_of_version(group::Ranks& ranks, const std::string& path) {
  RankVersion part;
  part.place = place_on_all(ranks, path);
  const Bytes found = found_by_0(ranks, [&] { return find_version(part.place, size_of(ranks)); });
  require_on_all(ranks, attempt([&] {
                   format::ByteReader in(found);
                   format::GroupFile group;
                   format::GroupRecord record;
                   const char* problem =
                       format::decode_group_file(in.bytes(format::kGroupBytes), group);
                   if (problem == nullptr) {
                     problem = format::decode_group_record(in.bytes(in.left()), group.id, record);
                   }
                   if (problem != nullptr) fail(Errc::io, "rank 0 sent no version: {}", problem);
                   const std::uint32_t rank = rank_of(ranks);
                   const std::string local = mpi::datastore_path(part.place.root, rank);
                   const std::string pin = group::pin_name(group.id, rank, record.pin);
                   const Store store = Store::open(local + "/store");
                   group::checked_pin(*StoreAccess::core_of(store), pin, record.partitions[rank]);
                   part.path = local + "@" + pin;
                 }));
  return part;
}

mpi::DatastoreCalls calls_of(DatastoreManager& manager) {
  return {[&](const std::string& path) { manager.create(path); },
          [&](const std::string& path) { manager.open(path); },
          [&](const std::string& path) { return manager.snapshot(path); },
          [&] { manager.close(); }};
}

std::unique_ptr<group::Job> open_job(group::Ranks& ranks, const std::string& root,
                                     const mpi::DatastoreCalls& calls, bool may_create) {
  group::JobOptions options;
  options.records = mpi::datastore_records(root);
  options.partitions = size_of(ranks);
  options.store_path = [root](std::uint32_t partition) {
    return group::path_for_record(mpi::datastore_path(root, partition) + "/store",
                                  mpi::datastore_records(root));
  };
  mpi::DatastorePartitions partitions(root, calls, may_create);
  try {
    return std::make_unique<group::Job>(base::posix_fs(), ranks, options, partitions);
  } catch (...) {
    calls.close();
    throw;
  }
}

// Removes an existing group on all ranks, for a new one.
void clear(group::Ranks& ranks, const std::string& root, bool overwrite) {
  found_by_0(ranks, [&] {
    mpi::clear_root(root, size_of(ranks), overwrite);
    return Bytes();
  });
  require_on_all(ranks, attempt([&] {
                   mpi::remove_datastore(root, rank_of(ranks));
                   std::filesystem::create_directories(root);
                 }));
}

void require_group_path(const DatastorePlace& place, const std::string& path) {
  if (place.version.empty()) return;
  fail(Errc::invalid_argument,
       "{}: a version of {}, which is read-only: open_read_only, or copy it first", path,
       place.root);
}

}  // namespace

struct DatastoreGroup::Impl {
  Impl(MPI_Comm given, DatastoreManager& used) : communicator(given), manager(used) {}

  // The version that a snapshot at `path` creates. REQUIRES: rank 0.
  DatastorePlace new_version(const std::string& path) const {
    DatastorePlace place = mpi::datastore_place_of(path);
    if (!place.version.empty()) {
      if (base::real_path(place.root) == base::real_path(root)) return place;
      fail(Errc::invalid_argument, "{}: a version of {}, not of {}", path, place.root, root);
    }
    if (std::filesystem::exists(place.root)) {
      fail(Errc::already_exists, "{}: already exists", place.root);
    }
    return {root, job->free_name(mpi::version_name_for(path)), place.root};
  }

  mpi::Communicator communicator;
  DatastoreManager& manager;
  std::string root;
  std::unique_ptr<group::Job> job;
};

DatastoreGroup::DatastoreGroup() noexcept = default;
DatastoreGroup::DatastoreGroup(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
DatastoreGroup::~DatastoreGroup() { close(); }
DatastoreGroup::DatastoreGroup(DatastoreGroup&&) noexcept = default;
DatastoreGroup& DatastoreGroup::operator=(DatastoreGroup&& other) noexcept {
  close();
  impl_ = std::move(other.impl_);
  return *this;
}

DatastoreGroup::Impl& DatastoreGroup::opened() const {
  if (impl_ == nullptr) fail(Errc::invalid_argument, "the group has been closed");
  return *impl_;
}

DatastoreGroup DatastoreGroup::create(MPI_Comm communicator, const std::string& root,
                                      DatastoreManager& manager, bool overwrite) {
  auto impl = std::make_unique<Impl>(communicator, manager);
  group::Ranks& ranks = impl->communicator;
  const DatastorePlace place = place_on_all(ranks, root);
  require_group_path(place, root);
  impl->root = place.root;
  clear(ranks, impl->root, overwrite);
  impl->job = open_job(ranks, impl->root, calls_of(manager), true);
  return DatastoreGroup(std::move(impl));
}

DatastoreGroup DatastoreGroup::open(MPI_Comm communicator, const std::string& root,
                                    DatastoreManager& manager) {
  auto impl = std::make_unique<Impl>(communicator, manager);
  group::Ranks& ranks = impl->communicator;
  const DatastorePlace place = place_on_all(ranks, root);
  require_group_path(place, root);
  impl->root = place.root;
  found_by_0(ranks, [&] { return find_version(place, size_of(ranks)); });
  impl->job = open_job(ranks, impl->root, calls_of(manager), false);
  return DatastoreGroup(std::move(impl));
}

GroupReport DatastoreGroup::commit(const std::string& message) {
  return mpi::report_of(opened().job->snapshot("", message));
}

GroupReport DatastoreGroup::snapshot(const std::string& path, bool overwrite) {
  Impl& impl = opened();
  const DatastorePlace place = decode_place(
      found_by_0(impl.communicator, [&] { return encode_place(impl.new_version(path)); }));
  if (overwrite && impl.job->has_name(place.version)) {
    impl.job->snapshot("", "");  // the newest version stays
    impl.job->remove_version(place.version);
  }
  const auto report = mpi::report_of(impl.job->snapshot(place.version, ""));
  if (!place.link.empty()) {
    found_by_0(impl.communicator, [&] {
      mpi::write_version_link(place.link, impl.root, place.version);
      return Bytes();
    });
  }
  return report;
}

void DatastoreGroup::close() noexcept {
  const auto impl = std::exchange(impl_, nullptr);
  if (impl == nullptr) return;
  const Outcome ignored = attempt([&] { impl->job->close(); });
  static_cast<void>(ignored);
}

std::string DatastoreGroup::local_path(const std::string& root, int rank) {
  return mpi::datastore_path(mpi::datastore_place_of(root).root, static_cast<std::uint32_t>(rank));
}

std::string DatastoreGroup::open_read_only(MPI_Comm communicator, const std::string& path,
                                           DatastoreManager& manager) {
  mpi::Communicator ranks(communicator);
  const RankVersion part = part_of_version(ranks, path);
  const Outcome outcome = attempt([&] { manager.open_read_only(part.path); });
  try {
    require_on_all(ranks, outcome);
  } catch (...) {
    manager.close();
    throw;
  }
  return part.path;
}

bool DatastoreGroup::consistent(MPI_Comm communicator, const std::string& path) {
  mpi::Communicator ranks(communicator);
  try {
    part_of_version(ranks, path);
    return true;
  } catch (const Error& e) {
    if (e.code() == Errc::not_found || e.code() == Errc::corrupted ||
        e.code() == Errc::invalid_argument) {
      return false;
    }
    throw;
  }
}

int DatastoreGroup::partitions(MPI_Comm communicator, const std::string& path) {
  mpi::Communicator ranks(communicator);
  const Bytes found = found_by_0(ranks, [&] {
    const DatastorePlace place = mpi::datastore_place_of(path);
    const auto directory =
        group::RecordDirectory::open(base::posix_fs(), mpi::datastore_records(place.root));
    Bytes bytes;
    format::ByteWriter(bytes).u32(directory.group().partitions);
    return bytes;
  });
  return static_cast<int>(format::ByteReader(found).u32());
}

void DatastoreGroup::copy(MPI_Comm communicator, const std::string& from, const std::string& to,
                          const DatastoreOptions& options, bool overwrite) {
  mpi::Communicator ranks(communicator);
  const RankVersion source = part_of_version(ranks, from);
  const DatastorePlace place = place_on_all(ranks, to);
  require_group_path(place, to);
  clear(ranks, place.root, overwrite);
  const std::string local = mpi::datastore_path(place.root, rank_of(ranks));
  const mpi::DatastoreCalls calls{
      [&](const std::string& path) {
        Datastore::copy(source.path, path, options);
        if (!Datastore::consistent(path, options)) {  // creates its files
          fail(Errc::io, "{}: the copy is in use", path);
        }
      },
      [](const std::string&) {},
      [&](const std::string& path) {
        const std::string name = path.substr(local.size() + 1);
        Store store = Store::open(local + "/store");
        store.create_snapshot(name, "main");
        return CommitReport();
      },
      [] {}};
  open_job(ranks, place.root, calls, true)->close();
}

void DatastoreGroup::remove(MPI_Comm communicator, const std::string& path) {
  mpi::Communicator ranks(communicator);
  const DatastorePlace place = place_on_all(ranks, path);
  const Bytes is_group = found_by_0(ranks, [&] {
    const std::string records = mpi::datastore_records(place.root);
    const bool is_there = std::filesystem::exists(place.root);
    if (!place.version.empty()) {
      if (!place.link.empty()) std::filesystem::remove_all(place.link);
      if (is_there) remove_group_version(records, place.version);
    } else if (is_there) {
      mpi::remove_records(place.root, size_of(ranks));
    }
    return Bytes(1, static_cast<std::byte>(place.version.empty() && is_there));
  });
  if (is_group == Bytes(1, std::byte{0})) return;
  require_on_all(ranks, attempt([&] { mpi::remove_datastore(place.root, rank_of(ranks)); }));
}

}  // namespace vellum
