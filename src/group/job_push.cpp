// Pushes a version to the group's remote.
//
//
//   1. Each rank pushes its partitions' pins to their remotes, in a thread. The pins stay in the
//      stores meanwhile, even if a later version supersedes this one.
//   2. Rank 0 gathers the results. An error on one rank is an error on all; the pins that the
//      others have pushed belong to no version, and a later push removes them.
//   3. Rank 0 publishes the record at the remote: the commit point there. Then it removes the
//      records that this one supersedes.
//   4. Rank 0 broadcasts the outcome. Only then does each rank remove the pins that no record there
//      needs.
#include "base/fail.hpp"

#include <cassert>
#include "format/wire/wire.hpp"
#include "group/job.hpp"

namespace vellum::group {
namespace {

// The result of rank 0's publication.
struct Published {
  std::uint64_t bytes_uploaded = 0;
  std::set<GroupPin> keep;
};

Bytes encode_published(const Published& published) {
  Bytes bytes;
  format::ByteWriter w(bytes);
  w.u64(published.bytes_uploaded);
  w.varint(published.keep.size());
  for (const GroupPin& pin : published.keep) {
    w.varint(pin.epoch);
    w.varint(pin.attempt);
  }
  return bytes;
}

Published decode_published(std::span<const std::byte> bytes) {
  format::ByteReader in(bytes);
  Published published;
  published.bytes_uploaded = in.u64();
  for (std::uint64_t n = in.varint(); n > 0 && in.ok(); --n) {
    const std::uint64_t epoch = in.varint();
    published.keep.insert({epoch, in.varint()});
  }
  if (!in.ok()) fail(Errc::io, "rank 0 sent no outcome of a push");
  return published;
}

}  // namespace

std::shared_ptr<PendingPush> Job::push_async(const std::string& version) {
  settle_push();
  require_usable();
  if (options_.remote == nullptr) fail(Errc::invalid_argument, "the group has no remote");
  ActivePush push;
  push.record = read_record(version);
  push.end = std::make_shared<PendingPush>();
  push_ = std::move(push);
  const Outcome started = attempt([&] {
    pusher_.wait_idle();
    pusher_.start([this] { push_partitions(*push_); });
  });
  if (!started.ok()) push_->outcome = started;
  return push_->end;
}

void Job::push_partitions(ActivePush& push) noexcept {
  assert(options_.remote != nullptr);
  push.outcome = attempt([&] {
    for (const Partition& p : partitions_) {
      with_context(fmt::format("partition {}", p.number), [&] {
        push.bytes_uploaded += options_.remote->push(
            p.store->path(), p.number, pin_name(group_.id, p.number, push.record.pin));
      });
    }
  });
}

void Job::finish_push(const std::shared_ptr<PendingPush>& pending) {
  if (!pending->is_done) {
    if (!push_.has_value() || pending != push_->end) {
      fail(Errc::invalid_argument, "the group has been closed");
    }
    settle_push();
  }
  pending->outcome.require();
}

void Job::settle_push() {
  if (!push_.has_value()) return;
  pusher_.wait_idle();
  const ActivePush push = std::move(*push_);
  push_.reset();
  push.end->outcome = attempt([&] { complete(push); });
  push.end->is_done = true;
  const GroupPin& pin = push.record.pin;
  if (!kept_.contains(pin) && pin != last_.pin) run_later([this, pin] { remove_pins(pin); });
}

void Job::complete(const ActivePush& push) {
  Message said{push.outcome, {}};
  if (said.outcome.ok()) {
    format::ByteWriter(said.body).u64(push.bytes_uploaded);
  } else {
    said.outcome.text = name_of_rank(ranks_) + ": " + said.outcome.text;
  }
  const auto gathered = ranks_.gather(encode_message(said));
  Message verdict;
  if (ranks_.rank() == 0) {
    verdict.outcome = attempt([&] {
      require_all(gathered);
      Published published;
      for (const Bytes& bytes : gathered) {
        const Message message = decode_message(bytes);
        published.bytes_uploaded += format::ByteReader(message.body).u64();
      }
      published.keep = options_.remote->publish(group_, push.record, epoch_);
      verdict.body = encode_published(published);
    });
  }
  const Published published = decode_published(broadcast_from_0(ranks_, verdict));
  push.end->number = push.record.number;
  push.end->bytes_uploaded = published.bytes_uploaded;
  // If no thread can be started, the next push removes the pins: the version is published, so no
  // rank may throw.
  const Outcome begun = attempt([&] {
    pusher_.start([this, keep = published.keep] {
      const Outcome ignored = attempt([&] {
        for (const Partition& p : partitions_) {
          options_.remote->forget_except(group_.id, p.number, keep);
        }
      });
      static_cast<void>(ignored);
    });
  });
  static_cast<void>(begun);
}

}  // namespace vellum::group
