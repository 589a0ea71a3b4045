#include "group/job.hpp"

#include <algorithm>
#include <cassert>

#include "base/bytes/checksum.hpp"
#include "base/clock.hpp"
#include "base/fail.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/wire.hpp"

namespace vellum::group {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// Detects ranks that make different calls.
std::uint64_t hash_of(const std::string& name, const std::string& message) {
  const std::string call = name + '\n' + message;
  return base::checksum64(std::as_bytes(std::span(call)), 0);
}

// The outcome of a version, broadcast by rank 0.
struct Verdict {
  bool is_end = false;  // the job creates no more versions
  std::uint64_t number = 0, slowest_ns = 0, bytes_written = 0;
  Outcome outcome;
};

Bytes encode_verdict(const Verdict& verdict) {
  Bytes bytes;
  format::ByteWriter w(bytes);
  w.u8(verdict.is_end ? 1 : 0);
  w.u64(verdict.number);
  w.u64(verdict.slowest_ns);
  w.u64(verdict.bytes_written);
  w.bytes(encode_message({verdict.outcome, {}}));
  return bytes;
}

Verdict decode_verdict(std::span<const std::byte> bytes) {
  format::ByteReader in(bytes);
  Verdict verdict;
  verdict.is_end = in.u8() != 0;
  verdict.number = in.u64();
  verdict.slowest_ns = in.u64();
  verdict.bytes_written = in.u64();
  verdict.outcome = decode_message(in.bytes(in.left())).outcome;
  return verdict;
}

}  // namespace

Job::~Job() {
  const Outcome ignored = attempt([this] { close(); });
  static_cast<void>(ignored);
}

PartitionMemory& Job::memory(std::uint32_t partition) {
  for (const Partition& p : partitions_) {
    if (p.number == partition && p.memory != nullptr) return *p.memory;
  }
  fail(Errc::invalid_argument, "partition {} is not open on {}", partition, name_of_rank(ranks_));
}

void Job::require_usable() const { ended_.require(); }

void Job::check_arguments(const std::string& name, const std::string& message) const {
  if (!name.empty()) {
    if (const char* problem = format::name_problem(name)) {
      fail(Errc::invalid_argument, "'{}': {}", name, problem);
    }
    if (names_.contains(name)) {
      fail(Errc::already_exists, "the group already has a version '{}'", name);
    }
  }
  if (message.size() > format::kMaxMessageBytes) {
    fail(Errc::invalid_argument, "a message of {} bytes is too long: at most {}", message.size(),
         format::kMaxMessageBytes);
  }
}

Job::Commits Job::new_commits(const std::string& name, const std::string& message) {
  Commits commits;
  commits.pin = {epoch_, ++attempt_};
  commits.pins_are_new = true;
  commits.created_ns = base::wall_clock_ns();
  commits.name = name;
  commits.message = message;
  commits.began = steady_clock::now();
  return commits;
}

JobReport Job::snapshot(const std::string& name, const std::string& message) {
  settle_pending();
  require_usable();
  Commits commits = new_commits(name, message);
  commits.outcome = attempt([&] {
    check_arguments(name, message);
    if (partitions_.size() == 1) {  // avoids a change of threads
      const Partition& p = partitions_[0];
      commits.done.push_back(
          p.memory->snapshot(pin_name(group_.id, p.number, commits.pin), message));
      return;
    }
    for (const Partition& p : partitions_) {
      commits.running.push_back(
          p.memory->snapshot_async(pin_name(group_.id, p.number, commits.pin), message));
    }
  });
  wait_for(commits);
  return make(commits);
}

std::shared_ptr<PendingVersion> Job::snapshot_async(const std::string& name,
                                                    const std::string& message) {
  settle_pending();
  require_usable();
  Commits commits = new_commits(name, message);
  commits.outcome = attempt([&] {
    check_arguments(name, message);
    for (const Partition& p : partitions_) {
      commits.running.push_back(
          p.memory->snapshot_async(pin_name(group_.id, p.number, commits.pin), message));
    }
  });
  pending_ = std::move(commits);
  pending_end_ = std::make_shared<PendingVersion>();
  return pending_end_;
}

// Waits for every commit, even after an error of another.
void Job::wait_for(Commits& commits) {
  for (auto& running : commits.running) {
    const Outcome outcome = attempt([&] { commits.done.push_back(running.get()); });
    if (commits.outcome.ok()) commits.outcome = outcome;
  }
  commits.running.clear();
  for (const CommitReport& report : commits.done) {
    commits.bytes_written.push_back(report.bytes_written);
  }
  commits.time = steady_clock::now() - commits.began;
}

void Job::settle_pending() {
  if (!pending_.has_value()) return;
  assert(pending_end_ != nullptr);
  Commits commits = std::move(*pending_);
  pending_.reset();
  const auto end = std::move(pending_end_);
  end->outcome = attempt([&] {
    wait_for(commits);
    end->report = make(commits);
  });
  end->is_done = true;
}

JobReport Job::finish(const std::shared_ptr<PendingVersion>& pending) {
  if (!pending->is_done) {
    if (pending != pending_end_) fail(Errc::invalid_argument, "the group has been closed");
    settle_pending();
  }
  pending->outcome.require();
  return pending->report;
}

// This rank's message for rank 0: the hash of the call, the time, and the numbers and the record of
// its partitions.
Message Job::describe(const Commits& commits) const {
  Message message;
  message.outcome = commits.outcome;
  if (message.outcome.ok()) {
    message.outcome = attempt([&] {
      assert(commits.bytes_written.size() == partitions_.size());
      format::GroupRecord part;
      part.epoch = std::max(epoch_, commits.pin.epoch);
      part.pin = commits.pin;
      format::ByteWriter w(message.body);
      w.u64(hash_of(commits.name, commits.message));
      w.u64(static_cast<std::uint64_t>(commits.time.count()));
      w.varint(partitions_.size());
      for (std::size_t i = 0; i < partitions_.size(); ++i) {
        const Partition& p = partitions_[i];
        w.varint(p.number);
        auto entry = describe_pin(*p.store, pin_name(group_.id, p.number, commits.pin));
        entry.bytes_written = commits.bytes_written[i];
        entry.store = options_.store_path(p.number);
        entry.branch = options_.branch;
        entry.host = host_name();
        part.partitions.push_back(std::move(entry));
      }
      if (!part.partitions.empty()) w.bytes(format::encode_group_record(part, group_.id));
    });
  }
  if (!message.outcome.ok())
    message.outcome.text = name_of_rank(ranks_) + ": " + message.outcome.text;
  return message;
}

// REQUIRES: rank 0.
format::GroupRecord Job::record_of(const Commits& commits, const std::vector<Bytes>& gathered,
                                   JobReport& report) const {
  assert(ranks_.rank() == 0);
  require_all(gathered);
  format::GroupRecord record;
  record.number = last_.number + 1;
  record.epoch = epoch_;
  record.pin = commits.pin;
  record.created_ns = commits.created_ns;
  record.name = commits.name;
  record.message = commits.message;
  record.partitions.resize(group_.partitions);
  std::vector<bool> seen(group_.partitions);
  for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
    const Message message = decode_message(gathered[rank]);
    format::ByteReader in(message.body);
    if (in.u64() != hash_of(commits.name, commits.message)) {
      fail(Errc::invalid_argument,
           "rank {} creates another version than rank 0: the calls differ in name or message",
           rank);
    }
    const nanoseconds time(static_cast<std::int64_t>(in.u64()));
    report.slowest_time = std::max(report.slowest_time, time);
    std::vector<std::uint32_t> numbers(static_cast<std::size_t>(in.varint()));
    for (std::uint32_t& number : numbers) number = static_cast<std::uint32_t>(in.varint());
    if (numbers.empty()) continue;
    format::GroupRecord part;
    if (const char* problem = format::decode_group_record(in.bytes(in.left()), group_.id, part)) {
      fail(Errc::io, "rank {} sent an invalid record: {}", rank, problem);
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] >= group_.partitions || seen[numbers[i]]) {
        fail(Errc::invalid_argument, "two ranks have opened partition {}", numbers[i]);
      }
      seen[numbers[i]] = true;
      report.bytes_written += part.partitions[i].bytes_written;
      record.partitions[numbers[i]] = std::move(part.partitions[i]);
    }
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) fail(Errc::invalid_argument, "no rank has opened partition {}", i);
  }
  return record;
}

JobReport Job::publish(Commits& commits) {
  const auto gathered = ranks_.gather(encode_message(describe(commits)));
  assert(directory_.has_value() == (ranks_.rank() == 0));
  JobReport report;
  Verdict verdict;
  if (ranks_.rank() == 0) {
    bool is_written = false;
    verdict.outcome = attempt([&] {
      const auto record = record_of(commits, gathered, report);
      is_written = true;
      directory_->publish(record);
      verdict.number = record.number;
    });
    // Either another job is active, or the record may exist although its sync failed.
    if (!verdict.outcome.ok() && is_written) {
      const bool exists = directory_->contains(last_.number + 1);
      verdict.is_end = exists || verdict.outcome.code == Errc::busy;
      if (exists && verdict.outcome.code != Errc::busy) verdict.outcome.code = Errc::poisoned;
    }
    verdict.slowest_ns = static_cast<std::uint64_t>(report.slowest_time.count());
    verdict.bytes_written = report.bytes_written;
  }
  verdict = decode_verdict(ranks_.broadcast(encode_verdict(verdict), 0));
  if (!verdict.outcome.ok()) give_up(commits, verdict.outcome, verdict.is_end);
  succeed(commits, verdict.number);
  report.number = verdict.number;
  report.bytes_written = verdict.bytes_written;
  report.own_time = std::chrono::duration_cast<nanoseconds>(commits.time);
  report.slowest_time = nanoseconds(static_cast<std::int64_t>(verdict.slowest_ns));
  report.coordination_time = std::max(
      nanoseconds(0), nanoseconds(steady_clock::now() - commits.began) - report.slowest_time);
  report.commits = std::move(commits.done);
  return report;
}

void Job::succeed(const Commits& commits, std::uint64_t number) {
  last_ = {number, commits.pin, !commits.name.empty()};
  if (last_.is_named) {
    kept_.insert(commits.pin);
    names_.insert(commits.name);
  }
  ahead_ = false;
}

// After the new record is published, removes the record and the pins that only the previous version
// needed.
JobReport Job::make(Commits& commits) {
  const GlobalVersion before = last_;
  JobReport report = publish(commits);
  const bool pin_goes = !kept_.contains(before.pin) && !is_pushing(before.pin);
  const bool record_goes = !before.is_named && directory_.has_value();
  if (!pin_goes && !record_goes) return report;
  run_later([this, before, pin_goes, record_goes] {
    if (record_goes) directory_->remove(before.number);
    if (pin_goes) remove_pins(before.pin);
  });
  return report;
}

void Job::remove_pins(const GroupPin& pin) {
  for (const Partition& p : partitions_) {
    const std::string name = pin_name(group_.id, p.number, pin);
    if (has_snapshot(*p.store, name)) remove_pin(*p.store, name);
  }
}

void Job::give_up(const Commits& commits, const Outcome& outcome, bool is_end) {
  ahead_ = true;
  if (is_end) {
    // Keeps all pins: the record may exist, or belong to another job.
    ended_ = outcome;
  } else if (commits.pins_are_new) {
    run_later([this, pin = commits.pin] { remove_pins(pin); });
  }
  outcome.require();
  assert(!outcome.ok());
  std::abort();  // REQUIRES: the outcome is an error
}

// Errors are ignored: the next job removes the remaining pins.
void Job::run_later(std::function<void()> task) {
  later_.wait_idle();
  auto quietly = [task = std::move(task)] {
    const Outcome ignored = attempt(task);
    static_cast<void>(ignored);
  };
  if (options_.release_in_background) {
    const Outcome started = attempt([&] { later_.start(quietly); });
    if (started.ok()) return;
  }
  quietly();
}

void Job::rollback() {
  settle_pending();
  require_usable();
  require_on_all(
      ranks_, attempt([&] {
        for (const Partition& p : partitions_) {
          p.memory->rollback(ahead_ ? pin_name(group_.id, p.number, last_.pin) : std::string());
        }
      }));
}

format::GroupRecord Job::read_record(const std::string& version) {
  settle_pending();
  Message found;
  if (ranks_.rank() == 0) {
    found.outcome = attempt([&] {
      found.body = format::encode_group_record(find_record(*directory_, version), group_.id);
    });
  }
  format::GroupRecord record;
  if (const char* problem =
          format::decode_group_record(broadcast_from_0(ranks_, found), group_.id, record)) {
    fail(Errc::io, "rank 0 sent an invalid record: {}", problem);
  }
  return record;
}

std::string Job::free_name(const std::string& wanted) const {
  std::string name = wanted;
  for (int i = 2; names_.contains(name); ++i) name = fmt::format("{}-{}", wanted, i);
  return name;
}

// Removes the record first, so that no version exists without its pins.
void Job::remove_version(const std::string& name) {
  const format::GroupRecord record = read_record(name);
  Message removed;
  if (ranks_.rank() == 0) {
    removed.outcome = attempt([&] {
      if (record.number == last_.number) {
        fail(Errc::invalid_argument, "'{}' is the newest version", name);
      }
      directory_->remove(record.number);
      fs_.sync_directory(directory_->path());
    });
  }
  broadcast_from_0(ranks_, removed);
  names_.erase(name);
  kept_.erase(record.pin);
  if (record.pin == last_.pin || is_pushing(record.pin)) return;
  run_later([this, pin = record.pin] { remove_pins(pin); });
}

void Job::close() {
  pusher_.wait_idle();
  push_.reset();
  later_.wait_idle();
  if (pending_.has_value()) wait_for(*pending_);
  pending_.reset();
  pending_end_.reset();
  Outcome first;
  for (Partition& p : partitions_) {
    if (p.memory == nullptr) continue;
    const Outcome outcome = attempt([&] { p.memory->close(); });
    if (first.ok()) first = outcome;
    p.memory.reset();
  }
  partitions_.clear();
  directory_.reset();
  if (ended_.ok()) ended_ = {Errc::invalid_argument, "the group has been closed"};
  first.require();
}

}  // namespace vellum::group
