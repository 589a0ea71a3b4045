#include "group/region_partition.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/files/real_path.hpp"
#include "base/round_up.hpp"
#include "region/api/store_impl.hpp"
#include "region/encode/encoding.hpp"
#include "region/region_impl.hpp"

namespace vellum::group {
namespace {

class RegionPartition final : public PartitionMemory {
 public:
  RegionPartition(Store store, Region region)
      : store_(std::move(store)), region_(std::move(region)) {}

  CommitReport snapshot(const std::string& name, const std::string& message) override {
    return region_.snapshot(name, message);
  }
  std::future<CommitReport> snapshot_async(const std::string& name,
                                           const std::string& message) override {
    return region_.snapshot_async(name, message);
  }
  void rollback(const std::string& version) override {
    region_.rollback();
    if (!version.empty()) restore(version);
  }
  void close() override { region_.close(); }

  Region& region() { return region_; }

 private:
  // Writes the pages in which the branch differs from the version, like a program's stores. A
  // region that has grown keeps its size.
  void restore(const std::string& version) {
    const std::uint64_t bytes = store_.version(version).region_bytes;
    store_.diff(version, region_.name(), [&](const ByteRange& range) {
      const std::uint64_t end = range.offset_bytes + range.length_bytes;
      const std::uint64_t whole = std::clamp(bytes, range.offset_bytes, end);
      auto* const to = static_cast<std::byte*>(region_.data());
      if (whole > range.offset_bytes) {
        store_.read(version, range.offset_bytes, to + range.offset_bytes,
                    whole - range.offset_bytes);
      }
      std::memset(to + whole, 0, end - whole);
    });
  }

  Store store_;
  Region region_;
};

}  // namespace

std::string path_of_partition(const std::string& pattern, std::uint32_t partition) {
  std::string path = pattern;
  const std::string number = std::to_string(partition);
  for (std::size_t at = path.find("{}"); at != std::string::npos;
       at = path.find("{}", at + number.size())) {
    path.replace(at, 2, number);
  }
  return path;
}

std::string path_for_record(const std::string& store, const std::string& records) {
  const std::filesystem::path from = base::real_path(records);
  const std::filesystem::path to = base::real_path(store);
  const auto relative = to.lexically_relative(from);
  const auto ups = std::count(relative.begin(), relative.end(), "..");
  return relative.empty() || ups > 1 || from.parent_path() == "/" ? to.string() : relative.string();
}

std::string path_from_record(const std::string& path, const std::string& records) {
  return path.starts_with('/') ? path : base::without_end_slashes(records) + "/" + path;
}

RegionPartitions::RegionPartitions(RegionPartitionOptions options) : options_(std::move(options)) {
  if (options_.store.empty()) fail(Errc::invalid_argument, "options: store is empty");
  if (!options_.region.image.path.empty()) {
    fail(Errc::invalid_argument, "options: the regions of a group have no image of their own");
  }
  if (options_.new_store.encrypt) {
    fail(Errc::unsupported, "options: the stores of a group cannot be encrypted yet");
  }
}

std::shared_ptr<store::StoreDirectory> RegionPartitions::open_store(std::uint32_t partition,
                                                                    bool may_create) {
  const std::string path = path_of_partition(options_.store, partition);
  return StoreAccess::core_of(may_create ? Store::open_or_create(path, options_.new_store)
                                         : Store::open(path));
}

void RegionPartitions::create_branch(store::StoreDirectory& store, std::uint32_t) {
  if (options_.region_bytes == 0 || options_.region_bytes > format::kMaxRegionBytes) {
    fail(Errc::invalid_argument, "a region cannot have {} bytes: at least 1, at most {}",
         options_.region_bytes, format::kMaxRegionBytes);
  }
  store.create_branch(options_.branch, base::round_up(options_.region_bytes, format::kPageBytes),
                      options_.region.over_reservation ? 0 : options_.region.base_address,
                      region::to_format(options_.region.encoding));
}

std::unique_ptr<PartitionMemory> RegionPartitions::open_branch(
    const std::shared_ptr<store::StoreDirectory>& store, std::uint32_t) {
  return std::make_unique<RegionPartition>(
      StoreAccess::handle_of(store),
      region::RegionAccess::open_branch(store, options_.branch, options_.region));
}

Region& region_of(PartitionMemory& memory) {
  return static_cast<RegionPartition&>(memory).region();
}

}  // namespace vellum::group
