#include "group/pins.hpp"

#include <algorithm>
#include <string_view>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/space_note.hpp"

namespace vellum::group {
namespace {

constexpr std::string_view kPrefix = "vellum-group-";

// "vellum-group-<16 hex digits>-": the first half of the id is sufficient to distinguish groups.
std::string group_prefix(const format::Uuid& group_id) {
  return fmt::format("{}{}-", kPrefix, base::hex(std::span(group_id).first(8)));
}

std::string partition_prefix(const format::Uuid& group_id, std::uint32_t partition) {
  return fmt::format("{}{}-", group_prefix(group_id), partition);
}

format::VersionDigest digest_of(const format::SnapshotRef& ref, const format::Uuid& store_id) {
  const base::Sha256 hash = base::sha256(format::encode_snapshot_ref(ref, store_id));
  format::VersionDigest digest;
  std::copy_n(hash.begin(), digest.size(), digest.begin());
  return digest;
}

[[noreturn]] void refuse_other_version(const store::StoreDirectory& store, const std::string& pin) {
  fail(Errc::corrupted, "snapshot '{}' of {} is not the version that the record names", pin,
       store.path());
}

bool stands_on(const store::BranchHead& branch, const format::Version& version) {
  const format::Version& base = branch.journal.base;
  return branch.journal.commits.empty() && base.sequence == version.sequence &&
         base.region_bytes == version.region_bytes && base.file_bytes == version.file_bytes &&
         base.runs == version.runs;
}

}  // namespace

std::string pin_name(const format::Uuid& group_id, std::uint32_t partition, const GroupPin& pin) {
  return fmt::format("{}{}-{}", partition_prefix(group_id, partition), pin.epoch, pin.attempt);
}

std::optional<GroupPin> parse_pin(const format::Uuid& group_id, std::uint32_t partition,
                                  const std::string& name) {
  const std::string prefix = partition_prefix(group_id, partition);
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = std::string_view(name).substr(prefix.size());
  const std::size_t dash = rest.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto epoch = base::parse_number<std::uint64_t>(rest.substr(0, dash));
  const auto attempt = base::parse_number<std::uint64_t>(rest.substr(dash + 1));
  if (!epoch.has_value() || !attempt.has_value()) return std::nullopt;
  const GroupPin pin{*epoch, *attempt};
  return pin_name(group_id, partition, pin) == name ? std::optional(pin) : std::nullopt;
}

void require_no_other_group(const store::StoreDirectory& store, const std::string& branch,
                            const format::Uuid& group_id) {
  const std::string ours = group_prefix(group_id);
  for (const std::string& name : store::snapshot_names(store)) {
    if (!name.starts_with(kPrefix) || name.starts_with(ours)) continue;
    if (store::read_snapshot(store, name).branch != branch) continue;
    fail(Errc::already_exists,
         "branch '{}' of {} belongs to another group: it has the snapshot '{}'", branch,
         store.path(), name);
  }
}

format::GroupPartition describe_pin(const store::StoreDirectory& store, const std::string& pin) {
  const format::SnapshotRef ref = store::read_snapshot(store, pin);
  format::GroupPartition partition;
  partition.store_id = store.superblock().store_id;
  partition.digest = digest_of(ref, partition.store_id);
  partition.order = ref.order;
  partition.sequence = ref.version.sequence;
  partition.region_bytes = ref.version.region_bytes;
  return partition;
}

format::SnapshotRef checked_copy(const store::StoreDirectory& store, const std::string& pin,
                                 const format::GroupPartition& partition) {
  const format::Uuid& store_id = store.superblock().store_id;
  if (store_id != partition.store_id) {
    fail(Errc::not_found, "{}: not the store that the record names, but another one", store.path());
  }
  const format::SnapshotRef ref = store::read_snapshot(store, pin);
  format::SnapshotRef recorded = ref;
  recorded.order = partition.order;
  if (ref.version.sequence != partition.sequence ||
      digest_of(recorded, store_id) != partition.digest) {
    refuse_other_version(store, pin);
  }
  return ref;
}

format::SnapshotRef checked_pin(const store::StoreDirectory& store, const std::string& pin,
                                const format::GroupPartition& partition) {
  format::SnapshotRef ref = checked_copy(store, pin, partition);
  if (ref.order != partition.order) refuse_other_version(store, pin);
  return ref;
}

format::GroupPartition describe_restored(const store::StoreDirectory& store, const std::string& pin,
                                         const format::GroupPartition& partition) {
  checked_copy(store, pin, partition);
  format::GroupPartition restored = describe_pin(store, pin);
  restored.bytes_written = partition.bytes_written;
  restored.branch = partition.branch;
  return restored;
}

void settle_branch(store::StoreDirectory& store, const std::string& branch,
                   const format::SnapshotRef& pin,
                   const std::optional<format::Encoding>& encoding) {
  std::optional<format::Encoding> own = encoding;
  if (store::has_branch(store, branch)) {
    const store::BranchHead head = store.read_branch(branch);
    if (stands_on(head, pin.version)) return;
    if (!own.has_value()) own = head.journal.header.encoding;
    store.remove_branch(branch);
  }
  store.create_branch_at(branch, pin.version, pin.version.parent, own);
}

std::vector<GroupPin> pins_in(const store::StoreDirectory& store, const format::Uuid& group_id,
                              std::uint32_t partition) {
  std::vector<GroupPin> pins;
  for (const std::string& name : store::snapshot_names(store)) {
    if (const auto pin = parse_pin(group_id, partition, name)) pins.push_back(*pin);
  }
  return pins;
}

void remove_pin(store::StoreDirectory& store, const std::string& pin) {
  const auto note = store::read_space_note(store);
  store.remove_snapshot(pin);
  if (note != format::SpaceNote()) store::write_space_note(store, note);
}

std::size_t remove_pins_except(store::StoreDirectory& store, const format::Uuid& group_id,
                               std::uint32_t partition, const std::set<GroupPin>& keep) {
  std::size_t removed = 0;
  for (const GroupPin& pin : pins_in(store, group_id, partition)) {
    if (keep.contains(pin)) continue;
    store.remove_snapshot(pin_name(group_id, partition, pin));
    ++removed;
  }
  return removed;
}

}  // namespace vellum::group
