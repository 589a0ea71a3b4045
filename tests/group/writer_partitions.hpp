// A group of three partitions on a simulated disk: models of memory instead of regions, and the
// branches' writers.
#pragma once

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "group/job.hpp"
#include "group/region_partition.hpp"
#include "store/support.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::group::test {

using store::BranchWriter;
using store::StoreDirectory;
using store::test::Model;

inline constexpr std::size_t kPages = 16;
inline constexpr std::uint32_t kPartitions = 3;

inline std::string store_path(std::uint32_t partition) { return "/s" + std::to_string(partition); }

inline Bytes read_all(StoreDirectory& store, const std::string& name) {
  Bytes out(kPages * format::kPageBytes);
  store::test::open_version(store, name)->read(0, kPages, out.data());
  return out;
}

// A partition without a region: a model of its memory and the branch's writer.
class WriterPartition final : public PartitionMemory {
 public:
  WriterPartition(StoreDirectory& store, const std::string& branch)
      : writer_(BranchWriter::open(store, branch)), model_(kPages) {
    const Bytes found = read_all(store, branch);
    for (std::size_t at = 0; at < found.size(); at += 8) {
      std::uint64_t word;
      std::memcpy(&word, found.data() + at, 8);
      model_.store64(at / format::kPageBytes, at % format::kPageBytes, word);
    }
    base::Compressor compressor;
    model_.take(4, compressor);  // from now on changes
  }
  CommitReport snapshot(const std::string& name, const std::string& message) override {
    CommitReport report;
    report.bytes_written = store::test::commit(*writer_, model_, true).bytes_written;
    writer_->publish_snapshot(name, message);
    return report;
  }
  std::future<CommitReport> snapshot_async(const std::string& name,
                                           const std::string& message) override {
    return std::async(std::launch::deferred, [=, this] { return snapshot(name, message); });
  }
  void rollback(const std::string&) override { FAIL() << "no test of it here"; }
  void close() override { writer_.reset(); }

  Model& model() { return model_; }

 private:
  std::unique_ptr<BranchWriter> writer_;
  Model model_;
};

class WriterPartitions final : public PartitionOpener {
 public:
  explicit WriterPartitions(base::Fs& fs) : fs_(fs) {}
  std::shared_ptr<StoreDirectory> open_store(std::uint32_t partition, bool may_create) override {
    if (!may_create || fs_.exists(store_path(partition) + "/vellum.store")) {
      return StoreDirectory::open(fs_, store_path(partition));
    }
    format::Superblock options = store::test::small_options();
    options.journal_half_bytes = 16u << 10;
    options.pack_bytes = 24u << 10;
    return StoreDirectory::create(fs_, store_path(partition), options);
  }
  void create_branch(StoreDirectory& store, std::uint32_t) override {
    store.create_branch("main", kPages * format::kPageBytes, 0);
  }
  std::unique_ptr<PartitionMemory> open_branch(const std::shared_ptr<StoreDirectory>& store,
                                               std::uint32_t) override {
    return std::make_unique<WriterPartition>(*store, "main");
  }

 private:
  base::Fs& fs_;
};

using GroupContent = std::vector<Bytes>;  // of all partitions

// The content of a record's version in stores of this pattern; each store is checked against the
// record.
inline GroupContent state_of(base::Fs& fs, const format::GroupRecord& record,
                             const format::Uuid& group_id, const std::string& stores = "/s{}") {
  GroupContent state;
  for (std::uint32_t p = 0; p < kPartitions; ++p) {
    const auto core = StoreDirectory::open(fs, path_of_partition(stores, p));
    const std::string pin = pin_name(group_id, p, record.pin);
    checked_pin(*core, pin, record.partitions[p]);
    state.push_back(read_all(*core, pin));
  }
  return state;
}

}  // namespace vellum::group::test
