#include "group/versions/remote_records.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "group/outcome.hpp"

namespace vellum::group {
namespace {

constexpr const char* kGroupKey = "group/vellum.group";
constexpr std::string_view kVersionPrefix = "versions/";
constexpr std::size_t kKeyDigits = 16;
constexpr std::size_t kMaxRecords = 1u << 20;
constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

std::string key_of(std::uint64_t number) {
  return fmt::format("{}{:016x}", kVersionPrefix, kLargest - number);
}

// 0: not the key of a record.
std::uint64_t number_in(const std::string& key) {
  if (key.size() != kVersionPrefix.size() + kKeyDigits) return 0;
  const auto digits = std::string_view(key).substr(kVersionPrefix.size());
  const auto rest = base::parse_number<std::uint64_t>(digits, 16);
  return rest.has_value() && key_of(kLargest - *rest) == key ? kLargest - *rest : 0;
}

}  // namespace

format::GroupFile RemoteRecords::read_group() const {
  std::vector<std::byte> bytes;
  try {
    bytes = objects_.get(kGroupKey, format::kGroupBytes);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    fail(Errc::not_found, "{}: no version of a group", objects_.url());
  }
  format::GroupFile group;
  if (const char* problem = format::decode_group_file(bytes, group)) {
    fail(Errc::corrupted, "{}: {}", name_of(kGroupKey), problem);
  }
  return group;
}

void RemoteRecords::claim(const format::GroupFile& group) const {
  if (objects_.put_if_absent(kGroupKey, format::encode_group_file(group))) return;
  if (read_group().id == group.id) return;
  fail(Errc::invalid_argument, "{}: has the versions of another group", objects_.url());
}

std::vector<std::uint64_t> RemoteRecords::numbers() const {
  std::vector<std::uint64_t> numbers;
  for (const remote::ObjectInfo& object : objects_.list(std::string(kVersionPrefix), kMaxRecords)) {
    if (const std::uint64_t number = number_in(object.key)) numbers.push_back(number);
  }
  return numbers;
}

format::GroupRecord RemoteRecords::read(std::uint64_t number,
                                        const format::GroupFile& group) const {
  const std::string key = key_of(number);
  const auto bytes = objects_.get(key, format::kMaxGroupRecordBytes);
  format::GroupRecord record;
  const char* problem = format::decode_group_record(bytes, group.id, record);
  if (problem != nullptr) fail(Errc::corrupted, "{}: {}", name_of(key), problem);
  if (record.number != number || record.partitions.size() != group.partitions) {
    fail(Errc::corrupted, "{}: the record is not that of version {} of the group", name_of(key),
         number);
  }
  return record;
}

format::GroupRecord RemoteRecords::find(const std::string& version,
                                        const format::GroupFile& group) const {
  std::optional<format::GroupRecord> numbered;  // a name takes precedence over a number
  for (const std::uint64_t number : numbers()) {
    const bool is_numbered = std::to_string(number) == version;
    format::GroupRecord record;
    const Outcome outcome = attempt([&] { record = read(number, group); });
    if (outcome.code == Errc::not_found) continue;  // superseded meanwhile
    // An unreadable record does not hide the others.
    if (outcome.code == Errc::corrupted && !version.empty() && !is_numbered) continue;
    outcome.require();
    if (version.empty() || record.name == version) return record;
    if (is_numbered) numbered = std::move(record);
  }
  if (numbered.has_value()) return std::move(*numbered);
  fail(Errc::not_found, "{}: no version {}is complete there", objects_.url(),
       version.empty() ? "" : "'" + version + "' ");
}

std::vector<format::GroupRecord> RemoteRecords::all(const format::GroupFile& group) const {
  std::vector<std::uint64_t> there = numbers();
  std::reverse(there.begin(), there.end());
  std::vector<format::GroupRecord> records;
  for (const std::uint64_t number : there) {
    const Outcome outcome = attempt([&] { records.push_back(read(number, group)); });
    if (outcome.code != Errc::not_found) outcome.require();
  }
  return records;
}

void RemoteRecords::publish(const format::GroupRecord& record, const format::GroupFile& group,
                            std::uint64_t epoch) const {
  const std::string key = key_of(record.number);
  const auto bytes = format::encode_group_record(record, group.id);
  const bool is_new = objects_.put_if_absent(key, bytes);
  if (!is_new && objects_.get(key, format::kMaxGroupRecordBytes) != bytes) {
    fail(Errc::busy, "{}: another job has published version {}", objects_.url(), record.number);
  }
  for (const std::uint64_t number : numbers()) {
    if (number <= record.number) break;
    // A newer record of this or an earlier job does no harm. A later job may have removed the parts
    // of this version.
    if (read(number, group).epoch <= epoch) continue;
    if (is_new) objects_.remove(key);
    fail(Errc::busy, "{}: another job has taken over the group: it has published version {}",
         objects_.url(), number);
  }
}

void RemoteRecords::remove(std::uint64_t number) const { objects_.remove(key_of(number)); }

std::string url_below(const std::string& url, const std::string& part) {
  const std::size_t query = std::min(url.find('?'), url.size());
  std::string path = url.substr(0, query);
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path + "/" + part + url.substr(query);
}

std::string url_of_records(const std::string& url) { return url_below(url, "records"); }

std::string url_of_partition(const std::string& url, std::uint32_t partition) {
  return url_below(url, fmt::format("partition-{}", partition));
}

}  // namespace vellum::group
