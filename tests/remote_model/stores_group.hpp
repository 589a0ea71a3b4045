// Two stores of the model as the partitions of a group: its jobs, its restores, and what its
// versions contain. Each call acts as a new process.
#pragma once

#include "group/job.hpp"
#include "group/region_partition.hpp"
#include "group/remote/object_versions.hpp"
#include "group/remote/restore.hpp"
#include "group/versions/remote_records.hpp"
#include "remote_model/stations.hpp"

namespace vellum::remote::meeting {

using GroupContent = std::vector<Bytes>;  // by partition

inline const std::string kGroupRecords = "/g";
inline const std::string kGroupBranch = "main";

class StoresGroup {
 public:
  StoresGroup(Names stores, std::string url) : stores_(std::move(stores)), url_(std::move(url)) {}

  bool has_store(const std::string& path) const { return std::ranges::count(stores_, path) != 0; }
  const std::string& store(std::uint32_t partition) const { return stores_[partition]; }
  std::size_t partitions() const { return stores_.size(); }
  std::shared_ptr<ObjectStore> objects(base::Fs& fs, std::uint32_t partition) const {
    return open_object_store(fs, group::url_of_partition(url_, partition));
  }

  // The content becomes the newest version. A job that was killed may have named it already.
  void write(base::Fs& fs, const GroupContent& content, const std::string& name,
             bool with_push) const {
    run_job(fs, &content, [&](group::Job& job) {
      if (name.empty() || !job.has_name(name)) job.snapshot(name, "");
      if (with_push) job.finish_push(job.push_async(name));
    });
  }
  void push(base::Fs& fs) const {
    run_job(fs, nullptr, [](group::Job& job) { job.finish_push(job.push_async("")); });
  }
  void remove(base::Fs& fs, const std::string& name) const {
    run_job(fs, nullptr, [&](group::Job& job) {
      if (job.has_name(name)) job.remove_version(name);
    });
  }
  // Empty: the newest version. `stores`: a pattern; empty: those of the group.
  void restore(base::Fs& fs, const std::string& version, const std::string& records = kGroupRecords,
               const std::string& stores = "") const {
    group::OneRank rank;
    group::restore_group(fs, rank, {url_, records, version, stores, std::nullopt}, {});
  }

  GroupContent content(base::Fs& fs, const std::string& version,
                       const std::string& records = kGroupRecords) const {
    const auto directory = group::RecordDirectory::open(fs, records);
    const auto record = group::find_record(directory, version);
    GroupContent out;
    for (std::uint32_t p = 0; p < partitions(); ++p) {
      const auto path = group::path_from_record(record.partitions[p].store, records);
      const auto store = StoreDirectory::open(fs, path);
      const std::string pin = group::pin_name(directory.group().id, p, record.pin);
      group::checked_pin(*store, pin, record.partitions[p]);
      out.push_back(read_all(*store, pin));
    }
    return out;
  }
  GroupContent content_there(base::Fs& fs, const std::string& version) const {
    const auto keys = open_object_store(fs, group::url_of_records(url_));
    const group::RemoteRecords records(*keys);
    const auto group = records.read_group();
    const auto record = records.find(version, group);
    GroupContent out;
    for (std::uint32_t p = 0; p < partitions(); ++p) {
      const auto store =
          open_remote(fs, group::url_of_partition(url_, p), without_cache(), objects(fs, p));
      const std::string pin = group::pin_name(group.id, p, record.pin);
      group::checked_copy(*store, pin, record.partitions[p]);
      out.push_back(read_all(*store, pin));
    }
    return out;
  }

 private:
  class Partition final : public group::PartitionMemory {
   public:
    Partition(StoreDirectory& store, const Bytes* next)
        : writer_(store::BranchWriter::open(store, kGroupBranch)),
          now_(read_all(store, kGroupBranch)),
          next_(next) {}
    CommitReport snapshot(const std::string& name, const std::string& message) override {
      if (next_ != nullptr) commit_content(*writer_, now_, *next_);
      writer_->publish_snapshot(name, message);
      return {};
    }
    std::future<CommitReport> snapshot_async(const std::string& name,
                                             const std::string& message) override {
      return std::async(std::launch::deferred, [=, this] { return snapshot(name, message); });
    }
    void rollback(const std::string&) override { throw Error(Errc::unsupported, "not here"); }
    void close() override { writer_.reset(); }

   private:
    std::unique_ptr<store::BranchWriter> writer_;
    Bytes now_;
    const Bytes* const next_;  // null: the job changes nothing
  };

  class Opener final : public group::PartitionOpener {
   public:
    Opener(base::Fs& fs, const Names& stores, const GroupContent* content)
        : fs_(fs), stores_(stores), content_(content) {}
    std::shared_ptr<StoreDirectory> open_store(std::uint32_t p, bool) override {
      return StoreDirectory::open(fs_, stores_[p]);
    }
    void create_branch(StoreDirectory& store, std::uint32_t p) override {
      store.create_branch(kGroupBranch, content_->at(p).size(), 0);
    }
    std::unique_ptr<group::PartitionMemory> open_branch(
        const std::shared_ptr<StoreDirectory>& store, std::uint32_t p) override {
      return std::make_unique<Partition>(*store, content_ == nullptr ? nullptr : &content_->at(p));
    }

   private:
    base::Fs& fs_;
    const Names& stores_;
    const GroupContent* const content_;
  };

  template <typename Work>
  void run_job(base::Fs& fs, const GroupContent* content, const Work& work) const {
    group::OneRank rank;
    Opener opener(fs, stores_, content);
    group::JobOptions options;
    options.records = kGroupRecords;
    options.partitions = static_cast<std::uint32_t>(partitions());
    options.branch = kGroupBranch;
    options.store_path = [this](std::uint32_t p) { return stores_[p]; };
    options.remote = std::make_shared<group::ObjectVersions>(fs, url_);
    options.release_in_background = false;
    group::Job job(fs, rank, options, opener);
    work(job);
    job.close();
  }

  const Names stores_;  // by partition
  const std::string url_;
};

}  // namespace vellum::remote::meeting
