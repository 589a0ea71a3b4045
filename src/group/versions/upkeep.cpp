// Verify and gc of a group: the stores of its versions, and unneeded records and pins.
#include <algorithm>
#include <map>

#include "base/fail.hpp"
#include "group/outcome.hpp"
#include "group/pins.hpp"
#include "group/record_directory.hpp"
#include "group/versions/group_version.hpp"
#include "group/versions/records.hpp"
#include "region/api/store_impl.hpp"
#include "remote/engine/url.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/upkeep.hpp"

namespace vellum {
namespace group {
namespace {

// The stores of a group, each opened once.
class Stores {
 public:
  Stores(std::string records, std::string pattern)
      : records_(std::move(records)), pattern_(std::move(pattern)) {}

  std::string path_of(std::uint32_t number, const format::GroupPartition& partition) const {
    return place_of_partition(records_, pattern_, number, partition);
  }
  // Rethrows the error of the first attempt.
  Store& open(const std::string& path) {
    auto& opened = opened_[path];
    if (opened.store.empty() && opened.outcome.ok()) {
      opened.outcome = attempt([&] { opened.store.push_back(Store::open(path)); });
    }
    opened.outcome.require();
    return opened.store.front();
  }
  std::uint64_t reached() const {
    return static_cast<std::uint64_t>(std::count_if(
        opened_.begin(), opened_.end(), [](const auto& o) { return !o.second.store.empty(); }));
  }

 private:
  struct Opened {
    std::vector<Store> store;  // none or one
    Outcome outcome;
  };
  const std::string records_, pattern_;
  std::map<std::string, Opened> opened_;
};

// The damages of a store that affect a snapshot, as one text; empty: none.
class Damages {
 public:
  Damages(Store& store, const ProgressFn& progress)
      : damages_(store.verify({true}, progress).damages) {}
  // The same for a remote.
  Damages(const std::string& url, const ProgressFn& progress) {
    const auto objects = remote::open_object_store(base::posix_fs(), url);
    const remote::Remote there(*objects, remote::read_superblock(*objects).store_id);
    for (auto& damage : remote::verify_remote(there, true, progress).damages) {
      damages_.push_back({damage.object, damage.reason, damage.versions});
    }
  }
  std::string of(const std::string& snapshot) const {
    std::string text;
    for (const Damage& damage : damages_) {
      if (std::find(damage.versions.begin(), damage.versions.end(), snapshot) ==
          damage.versions.end()) {
        continue;
      }
      text += (text.empty() ? "" : "; ") + damage.object + ": " + damage.reason;
    }
    return text;
  }

 private:
  std::vector<Damage> damages_;
};

class Verification {
 public:
  Verification(const std::string& records, const std::string& stores, bool read_data,
               const ProgressFn& progress)
      : records_(records, stores),
        stores_(records, stores),
        read_data_(read_data),
        progress_(progress) {}

  GroupVerifyReport run() {
    for (const auto& record : records_.all()) {
      const std::size_t before = report_.problems.size();
      for (std::uint32_t p = 0; p < record.partitions.size(); ++p) look(record, p);
      ++report_.versions;
      if (report_.problems.size() == before) ++report_.complete;
    }
    report_.stores = stores_.reached();
    return std::move(report_);
  }

 private:
  void look(const format::GroupRecord& record, std::uint32_t number) {
    const auto& partition = record.partitions[number];
    const std::string path = stores_.path_of(number, partition);
    const std::string pin = pin_name(records_.group().id, number, record.pin);
    std::string reason;
    const Outcome outcome = attempt([&] {
      Store& store = stores_.open(path);
      require_pin(store, records_.are_remote(), pin, partition);
      if (read_data_) reason = damages_of(store, path).of(pin);
    });
    if (!outcome.ok()) reason = outcome.text;
    if (!reason.empty()) report_.problems.push_back({record.number, number, path, reason});
  }

  const Damages& damages_of(Store& store, const std::string& path) {
    const auto known = damages_.find(path);
    if (known != damages_.end()) return known->second;
    Damages found = records_.are_remote() ? Damages(path, progress_) : Damages(store, progress_);
    return damages_.emplace(path, std::move(found)).first->second;
  }

  const Records records_;
  Stores stores_;
  const bool read_data_;
  const ProgressFn& progress_;
  std::map<std::string, Damages> damages_;  // by store
  GroupVerifyReport report_;
};

// A directory has a lock against jobs; a remote has none, and a job may be pushing to it.
RecordDirectory lock_directory(const std::string& records) {
  if (remote::is_remote_url(records)) {
    fail(Errc::invalid_argument,
         "{}: versions of a remote are only read; a job's next push forgets what no version needs, "
         "and `vellum remote gc URL/partition-N` gives the space back",
         records);
  }
  auto directory = RecordDirectory::open(base::posix_fs(), records);
  directory.lock();
  return directory;
}

// The records and snapshots that a collection keeps and removes.
struct GcPlan {
  std::vector<std::uint64_t> records_to_remove;
  std::set<GroupPin> keep;
  std::vector<format::GroupPartition> partitions;  // of the newest version
};

GcPlan plan_gc(const RecordDirectory& directory) {
  GcPlan plan;
  const auto records = directory.all();
  for (const auto& record : records) {
    if (record.name.empty() && record.number != records.back().number) {
      plan.records_to_remove.push_back(record.number);
    } else {
      plan.keep.insert(record.pin);
    }
  }
  if (!records.empty()) plan.partitions = records.back().partitions;
  return plan;
}

std::size_t count_pins_except(const store::StoreDirectory& store, const format::Uuid& group_id,
                              std::uint32_t partition, const std::set<GroupPin>& keep) {
  const auto pins = pins_in(store, group_id, partition);
  return static_cast<std::size_t>(std::count_if(
      pins.begin(), pins.end(), [&](const GroupPin& pin) { return !keep.contains(pin); }));
}

}  // namespace
}  // namespace group

GroupVerifyReport verify_group(const std::string& records, bool read_data,
                               const std::string& stores, const ProgressFn& progress) {
  return group::Verification(records, stores, read_data, progress).run();
}

// Removes records first: a snapshot without a record is a leftover, but a record without its
// snapshots would be an incomplete version.
GroupGcReport collect_group_garbage(const std::string& records, bool dry_run,
                                    const std::string& pattern, const ProgressFn& progress) {
  auto directory = group::lock_directory(records);
  const group::GcPlan plan = group::plan_gc(directory);
  GroupGcReport report;
  report.records_removed = plan.records_to_remove.size();
  if (!dry_run) {
    for (const std::uint64_t number : plan.records_to_remove) directory.remove(number);
    base::posix_fs().sync_directory(directory.path());
  }
  group::Stores stores(records, pattern);
  std::set<std::string> collected;
  const format::Uuid& group_id = directory.group().id;
  for (std::uint32_t p = 0; p < plan.partitions.size(); ++p) {
    const std::string path = stores.path_of(p, plan.partitions[p]);
    const auto outcome = group::attempt([&] {
      auto& core = *StoreAccess::core_of(stores.open(path));
      report.snapshots_removed += dry_run ? group::count_pins_except(core, group_id, p, plan.keep)
                                          : group::remove_pins_except(core, group_id, p, plan.keep);
    });
    if (outcome.ok()) {
      collected.insert(path);
    } else {
      report.unreachable.push_back(outcome.text);
    }
  }
  for (const std::string& path : collected) {
    GcOptions options;
    options.dry_run = dry_run;
    const GcReport gc = stores.open(path).collect_garbage(options, progress);
    ++report.stores;
    report.freed_bytes += gc.freed_bytes;
    report.freeable_bytes += gc.freeable_bytes;
  }
  return report;
}

void remove_group_version(const std::string& records, const std::string& name) {
  auto directory = group::lock_directory(records);
  for (const auto& record : directory.all()) {
    if (record.name.empty() || record.name != name) continue;
    const auto newest = directory.newest();
    if (newest->number == record.number) {
      // Publishes the same version again, without the name.
      format::GroupRecord successor = record;
      ++successor.number;
      successor.name.clear();
      directory.publish(successor);
    }
    directory.remove(record.number);
    base::posix_fs().sync_directory(directory.path());
    return;
  }
  fail(Errc::not_found, "{}: the group has no version named '{}'", records, name);
}

}  // namespace vellum
