#include "group/remote/restore.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "format/wire/wire.hpp"
#include "group/outcome.hpp"
#include "group/pins.hpp"
#include "group/ranks.hpp"
#include "group/record_directory.hpp"
#include "group/region_partition.hpp"
#include "group/remote/object_versions.hpp"
#include "group/versions/remote_records.hpp"
#include "remote/pull.hpp"
#include "remote/session/open_engine.hpp"
#include "store/catalog/names.hpp"

namespace vellum::group {
namespace {

// A rank's result: the state of its partitions after fetching them.
struct FetchedPartitions {
  std::uint64_t largest_epoch = 0;  // of any pin, in the stores and at the remote
  std::uint64_t partitions_fetched = 0, bytes_read = 0;
  std::vector<std::uint32_t> numbers;
  std::vector<format::GroupPartition> partitions;
};

class Restore {
 public:
  Restore(base::Fs& fs, Ranks& ranks, const RestoreOptions& options, const ProgressFn& progress)
      : fs_(fs), ranks_(ranks), options_(options), progress_(progress) {}

  RestoreReport run() {
    find();
    Message said;
    said.outcome = attempt([&] { said.body = encode(fetch_all()); });
    if (!said.outcome.ok()) said.outcome.text = name_of_rank(ranks_) + ": " + said.outcome.text;
    const auto gathered = ranks_.gather(encode_message(said));
    Message verdict;
    if (ranks_.rank() == 0) {
      verdict.outcome = attempt([&] { verdict.body = encode_report(publish_all(gathered)); });
    }
    return decode_report(broadcast_from_0(ranks_, verdict));
  }

 private:
  // Reads the version at the remote, on all ranks; on rank 0 locks the directory of records.
  void find() {
    Message found;
    if (ranks_.rank() == 0) {
      found.outcome = attempt([&] {
        const auto objects = remote::open_object_store(fs_, url_of_records(options_.url));
        const RemoteRecords records(*objects);
        const format::GroupFile group = records.read_group();
        const format::GroupRecord record = records.find(options_.version, group);
        for (const std::uint64_t number : records.numbers()) {
          largest_number_there_ = std::max(largest_number_there_, number);
        }
        directory_ = RecordDirectory::open_or_create(fs_, options_.records, group);
        directory_->lock();
        found.body = format::encode_group_file(group);
        format::ByteWriter(found.body).bytes(format::encode_group_record(record, group.id));
      });
    }
    const Bytes bytes = broadcast_from_0(ranks_, found);
    format::ByteReader in(bytes);
    const char* problem = format::decode_group_file(in.bytes(format::kGroupBytes), group_);
    if (problem == nullptr) {
      problem = format::decode_group_record(in.bytes(in.left()), group_.id, record_);
    }
    if (problem != nullptr) fail(Errc::io, "rank 0 sent no version: {}", problem);
  }

  FetchedPartitions fetch_all() {
    FetchedPartitions fetched;
    fetched.numbers = options_.mine.has_value()
                          ? *options_.mine
                          : share_of(group_.partitions, ranks_.rank(), ranks_.size());
    for (const std::uint32_t number : fetched.numbers) {
      if (number >= group_.partitions) {
        fail(Errc::invalid_argument, "the group has no partition {}: it has {}", number,
             group_.partitions);
      }
      with_context(fmt::format("partition {}", number), [&] { fetch(number, fetched); });
    }
    return fetched;
  }

  std::string path_of(std::uint32_t number) const {
    return options_.stores.empty()
               ? path_from_record(record_.partitions[number].store, options_.records)
               : path_of_partition(options_.stores, number);
  }

  void fetch(std::uint32_t number, FetchedPartitions& fetched) {
    const format::GroupPartition& wanted = record_.partitions[number];
    const std::string path = path_of(number);
    const std::string pin = pin_name(group_.id, number, record_.pin);
    if (!fs_.exists(path + "/" + store::kSuperblockName)) {
      clone(number, path, pin, fetched);
    }
    const auto store = store::StoreDirectory::open(fs_, path);
    if (store->superblock().store_id != wanted.store_id) {
      fail(Errc::not_found, "{}: not the store that the record names, but another one", path);
    }
    if (!has_snapshot(*store, pin)) pull(number, *store, pin, fetched);
    format::GroupPartition entry = describe_restored(*store, pin, wanted);
    entry.store = path_for_record(path, options_.records);
    entry.host = host_name();
    for (const GroupPin& other : pins_in(*store, group_.id, number)) {
      fetched.largest_epoch = std::max(fetched.largest_epoch, other.epoch);
    }
    for (const GroupPin& other : pins_at(fs_, options_.url, group_.id, number)) {
      fetched.largest_epoch = std::max(fetched.largest_epoch, other.epoch);
    }
    fetched.partitions.push_back(std::move(entry));
  }

  void clone(std::uint32_t number, const std::string& path, const std::string& pin,
             FetchedPartitions& fetched) {
    const auto report =
        remote::clone(fs_, url_of_partition(options_.url, number), path, {{pin}}, progress_);
    ++fetched.partitions_fetched;
    fetched.bytes_read += report.bytes_read;
  }

  void pull(std::uint32_t number, store::StoreDirectory& store, const std::string& pin,
            FetchedPartitions& fetched) {
    know_remote(store, url_of_partition(options_.url, number));
    remote::Session session(store, kGroupRemoteName);
    const auto report = remote::pull(session, {{pin}}, progress_);
    ++fetched.partitions_fetched;
    fetched.bytes_read += report.bytes_read;
  }

  Bytes encode(const FetchedPartitions& fetched) const {
    Bytes bytes;
    format::ByteWriter w(bytes);
    w.u64(fetched.largest_epoch);
    w.u64(fetched.partitions_fetched);
    w.u64(fetched.bytes_read);
    w.varint(fetched.numbers.size());
    for (const std::uint32_t number : fetched.numbers) w.varint(number);
    if (fetched.numbers.empty()) return bytes;
    format::GroupRecord part = record_;
    part.partitions = fetched.partitions;
    w.bytes(format::encode_group_record(part, group_.id));
    return bytes;
  }

  // Adds a rank's result to the new record, and returns its largest epoch.
  std::uint64_t take(std::span<const std::byte> bytes, format::GroupRecord& record,
                     std::vector<bool>& seen, RestoreReport& report) const {
    format::ByteReader in(bytes);
    const std::uint64_t largest_epoch = in.u64();
    report.partitions_fetched += in.u64();
    report.bytes_read += in.u64();
    std::vector<std::uint32_t> numbers(static_cast<std::size_t>(in.varint()));
    for (std::uint32_t& number : numbers) number = static_cast<std::uint32_t>(in.varint());
    if (numbers.empty()) return largest_epoch;
    format::GroupRecord part;
    if (const char* problem = format::decode_group_record(in.bytes(in.left()), group_.id, part)) {
      fail(Errc::io, "a rank sent an invalid record: {}", problem);
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      seen.at(numbers[i]) = true;
      record.partitions.at(numbers[i]) = std::move(part.partitions.at(i));
    }
    return largest_epoch;
  }

  // REQUIRES: rank 0.
  RestoreReport publish_all(const std::vector<Bytes>& gathered) {
    require_all(gathered);
    RestoreReport report;
    report.restored_number = record_.number;
    report.name = record_.name;
    format::GroupRecord record = record_;
    std::vector<bool> seen(group_.partitions);
    std::uint64_t largest_epoch = record_.epoch;
    for (const Bytes& bytes : gathered) {
      const Message message = decode_message(bytes);
      largest_epoch = std::max(largest_epoch, take(message.body, record, seen, report));
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i]) fail(Errc::invalid_argument, "no rank has restored partition {}", i);
    }
    report.number = publish(std::move(record), largest_epoch);
    return report;
  }

  // Publishes it as the newest record. Its number is above those at the remote: otherwise the next
  // versions would be pushed below a record of before, which the next restore would take. Removes
  // the record of the same version and name, whose store paths may be outdated; if another version
  // has the name, that one keeps it.
  std::uint64_t publish(format::GroupRecord record, std::uint64_t largest_epoch) {
    std::uint64_t largest_number = std::max(record.number, largest_number_there_), superseded = 0;
    for (const std::uint64_t number : directory_->numbers()) {
      largest_number = std::max(largest_number, number);
      const Outcome outcome = attempt([&] {
        const auto other = directory_->read(number);
        largest_epoch = std::max(largest_epoch, other.epoch);
        if (other.name.empty() || other.name != record_.name) return;
        if (other.pin == record_.pin) {
          superseded = number;
        } else {
          record.name.clear();
        }
      });
      // Skips damaged records: they may be the reason for the restore.
      if (outcome.code != Errc::corrupted) outcome.require();
    }
    record.number = largest_number + 1;
    record.epoch = largest_epoch + 1;
    directory_->publish(record);
    if (superseded != 0) directory_->remove(superseded);
    return record.number;
  }

  static Bytes encode_report(const RestoreReport& report) {
    Bytes bytes;
    format::ByteWriter w(bytes);
    w.u64(report.number);
    w.u64(report.restored_number);
    w.u64(report.partitions_fetched);
    w.u64(report.bytes_read);
    w.string(report.name);
    return bytes;
  }
  static RestoreReport decode_report(std::span<const std::byte> bytes) {
    format::ByteReader in(bytes);
    RestoreReport report;
    report.number = in.u64();
    report.restored_number = in.u64();
    report.partitions_fetched = in.u64();
    report.bytes_read = in.u64();
    report.name = in.string(format::kMaxNameBytes);
    return report;
  }

  base::Fs& fs_;
  Ranks& ranks_;
  const RestoreOptions& options_;
  const ProgressFn& progress_;
  std::optional<RecordDirectory> directory_;  // only on rank 0
  format::GroupFile group_;
  format::GroupRecord record_;
  std::uint64_t largest_number_there_ = 0;  // only on rank 0
};

}  // namespace

RestoreReport restore_group(base::Fs& fs, Ranks& ranks, const RestoreOptions& options,
                            const ProgressFn& progress) {
  return Restore(fs, ranks, options, progress).run();
}

}  // namespace vellum::group
