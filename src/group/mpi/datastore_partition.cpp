#include "group/mpi/datastore_partition.hpp"

#include <filesystem>

#include "base/fail.hpp"
#include "group/mpi/datastore_root.hpp"
#include "store/catalog/names.hpp"

namespace vellum::mpi {
namespace {

namespace fs = std::filesystem;

class DatastorePartition final : public group::PartitionMemory {
 public:
  DatastorePartition(std::string path, DatastoreCalls calls)
      : path_(std::move(path)), calls_(std::move(calls)) {}

  CommitReport snapshot(const std::string& name, const std::string&) override {
    return calls_.snapshot(path_ + "@" + name);
  }
  std::future<CommitReport> snapshot_async(const std::string&, const std::string&) override {
    fail(Errc::unsupported, "{}: managers of datastores create versions synchronously", path_);
  }
  void rollback(const std::string&) override {
    fail(Errc::unsupported, "{}: an open manager of a datastore cannot be rolled back", path_);
  }
  void close() override { calls_.close(); }

 private:
  const std::string path_;
  const DatastoreCalls calls_;
};

// The readers of a version use files in a directory, which may outlive the version.
void remove_files_of_lost_versions(const std::string& path, const store::StoreDirectory& store) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path + "/versions", error)) {
    const std::string name = entry.path().filename().string();
    if (store::has_snapshot(store, name) || store::has_branch(store, name)) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

std::shared_ptr<store::StoreDirectory> DatastorePartitions::open_store(std::uint32_t partition,
                                                                       bool may_create) {
  const std::string path = datastore_path(root_, partition);
  if (may_create && may_create_) {
    fs::remove_all(path);  // of an interrupted creation: the group has no version
    calls_.create(path);
    is_open_ = true;
  }
  return store::StoreDirectory::open(base::posix_fs(), path + "/store");
}

void DatastorePartitions::create_branch(store::StoreDirectory& store, std::uint32_t) {
  fail(Errc::not_found, "{}: the store has no datastore", store.path());
}

std::unique_ptr<group::PartitionMemory> DatastorePartitions::open_branch(
    const std::shared_ptr<store::StoreDirectory>& store, std::uint32_t partition) {
  const std::string path = datastore_path(root_, partition);
  if (!is_open_) {
    remove_files_of_lost_versions(path, *store);
    calls_.open(path);
    is_open_ = true;
  }
  return std::make_unique<DatastorePartition>(path, calls_);
}

}  // namespace vellum::mpi
