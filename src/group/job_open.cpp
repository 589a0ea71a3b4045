// The start of a job: rank 0 reads the group, all ranks reset their branches to its version, and
// the job publishes a record of its own.

#include <cassert>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "format/wire/wire.hpp"
#include "group/job.hpp"
#include "group/ranks.hpp"
#include "store/catalog/names.hpp"

namespace vellum::group {
namespace {

// A job that was killed before the first record may have left the first pin. Later pins always have
// a record before them.
void remove_first_pin(store::StoreDirectory& store, const format::Uuid& group_id,
                      std::uint32_t partition) {
  constexpr GroupPin kFirst{1, 0};
  for (const GroupPin& pin : pins_in(store, group_id, partition)) {
    if (pin == kFirst) continue;
    fail(Errc::corrupted,
         "{} has versions of the group, such as '{}', but the group has no record: its records are "
         "lost",
         store.path(), pin_name(group_id, partition, pin));
  }
  remove_pins_except(store, group_id, partition, {});
}

}  // namespace

format::GroupRecord find_record(const RecordDirectory& directory, const std::string& version) {
  if (version.empty()) {
    if (auto newest = directory.newest()) return std::move(*newest);
    fail(Errc::not_found, "{}: the group has no version yet", directory.path());
  }
  for (const std::uint64_t number : directory.numbers()) {
    // An unreadable record does not hide the others.
    format::GroupRecord record;
    const Outcome outcome = attempt([&] { record = directory.read(number); });
    if (outcome.ok() && record.name == version) return record;
  }
  const auto number = base::parse_number<std::uint64_t>(version);
  if (number.has_value() && directory.contains(*number)) return directory.read(*number);
  fail(Errc::not_found, "{}: the group has no version '{}'", directory.path(), version);
}

Bytes Job::encode(const FoundGroup& found) {
  Bytes bytes = format::encode_group_file(found.group);
  format::ByteWriter w(bytes);
  w.u64(found.epoch);
  w.u64(found.last_number);
  w.u8(found.all_readable ? 1 : 0);
  w.varint(found.named.size());
  for (const auto& [pin, name] : found.named) {
    w.varint(pin.epoch);
    w.varint(pin.attempt);
    w.string(name);
  }
  if (found.at.has_value()) w.bytes(format::encode_group_record(*found.at, found.group.id));
  return bytes;
}

Job::FoundGroup Job::decode_found(std::span<const std::byte> bytes) {
  format::ByteReader in(bytes);
  FoundGroup found;
  const char* problem = format::decode_group_file(in.bytes(format::kGroupBytes), found.group);
  found.epoch = in.u64();
  found.last_number = in.u64();
  found.all_readable = in.u8() != 0;
  for (std::uint64_t n = in.varint(); n > 0 && in.ok(); --n) {
    GroupPin pin;
    pin.epoch = in.varint();
    pin.attempt = in.varint();
    found.named.emplace_back(pin, in.string(format::kMaxNameBytes));
  }
  if (problem == nullptr && in.ok() && in.left() != 0) {
    found.at.emplace();
    problem = format::decode_group_record(in.bytes(in.left()), found.group.id, *found.at);
  }
  if (problem != nullptr || !in.ok()) fail(Errc::io, "rank 0 sent no group");
  return found;
}

// REQUIRES: rank 0.
Job::FoundGroup Job::find() {
  assert(ranks_.rank() == 0);
  const auto ranks = static_cast<std::uint32_t>(ranks_.size());
  const std::uint32_t wanted = options_.partitions == 0 ? ranks : options_.partitions;
  if (wanted > format::kMaxGroupPartitions) {
    fail(Errc::invalid_argument, "a group of {} partitions is too large: at most {}", wanted,
         format::kMaxGroupPartitions);
  }
  directory_ = RecordDirectory::open_or_create(fs_, options_.records, wanted);
  directory_->lock();
  FoundGroup found;
  found.group = directory_->group();
  if (options_.partitions != 0 && options_.partitions != found.group.partitions) {
    fail(Errc::invalid_argument, "{}: the group has {} partitions, not {}", options_.records,
         found.group.partitions, options_.partitions);
  }
  const auto newest = directory_->newest();
  if (newest.has_value()) {
    found.at = options_.version.empty() ? newest : find_record(*directory_, options_.version);
    found.epoch = newest->epoch + 1;
    found.last_number = newest->number;
  } else if (!options_.version.empty()) {
    fail(Errc::not_found, "{}: the group has no version '{}'", options_.records, options_.version);
  }
  for (const std::uint64_t number : directory_->numbers()) {
    const Outcome outcome = attempt([&] {
      const auto record = directory_->read(number);
      if (!record.name.empty()) found.named.emplace_back(record.pin, record.name);
    });
    if (!outcome.ok()) found.all_readable = false;
  }
  return found;
}

void Job::take_over(const FoundGroup& found) {
  group_ = found.group;
  epoch_ = found.epoch;
  last_.number = found.last_number;
  for (const auto& [pin, name] : found.named) {
    kept_.insert(pin);
    names_.insert(name);
  }
  numbers_ = options_.mine.has_value() ? *options_.mine
                                       : share_of(group_.partitions, ranks_.rank(), ranks_.size());
  for (const std::uint32_t number : numbers_) {
    if (number >= group_.partitions) {
      fail(Errc::invalid_argument, "the group has no partition {}: it has {}", number,
           group_.partitions);
    }
  }
}

void Job::open_partition(std::uint32_t number, const FoundGroup& found, PartitionOpener& opener) {
  Partition p;
  p.number = number;
  p.store = opener.open_store(number, !found.at.has_value());
  p.store->require_plain("the record of a group's version");
  require_no_other_group(*p.store, options_.branch, group_.id);
  if (found.at.has_value()) {
    const auto pin = checked_pin(*p.store, pin_name(group_.id, number, found.at->pin),
                                 found.at->partitions[number]);
    settle_branch(*p.store, options_.branch, pin, options_.encoding);
  } else {
    remove_first_pin(*p.store, group_.id, number);
    if (!store::has_branch(*p.store, options_.branch)) opener.create_branch(*p.store, number);
  }
  p.memory = opener.open_branch(p.store, number);
  partitions_.push_back(std::move(p));
}

// This rank's partitions at the version that was found, or the first version of a new group.
Job::Commits Job::open_partitions(const FoundGroup& found, PartitionOpener& opener) {
  Commits commits;
  commits.began = std::chrono::steady_clock::now();
  commits.pin = found.at.has_value() ? found.at->pin : GroupPin{epoch_, 0};
  commits.created_ns = found.at.has_value() ? found.at->created_ns : base::wall_clock_ns();
  if (found.at.has_value()) commits.message = found.at->message;
  for (const std::uint32_t number : numbers_) {
    with_context(fmt::format("partition {}", number),
                 [&] { open_partition(number, found, opener); });
    std::uint64_t bytes_written = 0;
    if (found.at.has_value()) {
      bytes_written = found.at->partitions[number].bytes_written;
    } else {
      Partition& p = partitions_.back();
      bytes_written =
          p.memory->snapshot(pin_name(group_.id, number, commits.pin), "").bytes_written;
    }
    commits.bytes_written.push_back(bytes_written);
  }
  return commits;
}

// Removes unneeded records and pins of earlier jobs. This job's own pins have its epoch, and it may
// create more of them meanwhile.
void Job::tidy(const FoundGroup& found) {
  if (!found.all_readable) return;
  std::set<GroupPin> keep = kept_;
  keep.insert(last_.pin);
  run_later([this, keep, number = last_.number] {
    if (directory_.has_value()) {
      for (const auto& record : directory_->all()) {
        if (record.name.empty() && record.number < number) directory_->remove(record.number);
      }
    }
    for (const Partition& p : partitions_) {
      for (const GroupPin& pin : pins_in(*p.store, group_.id, p.number)) {
        if (pin.epoch >= epoch_ || keep.contains(pin)) continue;
        p.store->remove_snapshot(pin_name(group_.id, p.number, pin));
      }
    }
  });
}

Job::Job(base::Fs& fs, Ranks& ranks, JobOptions options, PartitionOpener& opener)
    : fs_(fs), ranks_(ranks), options_(std::move(options)) {
  Message message;
  if (ranks_.rank() == 0) {
    message.outcome = attempt([&] { message.body = encode(find()); });
  }
  const Bytes bytes = broadcast_from_0(ranks_, message);
  FoundGroup found;
  Commits commits;
  const Outcome outcome = attempt([&] {
    found = decode_found(bytes);
    take_over(found);
    commits = open_partitions(found, opener);
  });
  commits.outcome = outcome;
  publish(commits);
  tidy(found);
}

}  // namespace vellum::group
