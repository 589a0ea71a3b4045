#include "group/record_directory.hpp"

#include <algorithm>
#include <random>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/parse_number.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/whole_file.hpp"
#include "store/packs/header_error.hpp"

namespace vellum::group {
namespace {

constexpr const char* kGroupName = "vellum.group";
constexpr const char* kLockName = "lock";
constexpr std::string_view kRecordSuffix = ".version";
constexpr std::size_t kNumberDigits = 16;

std::string file_name(std::uint64_t number) {
  return fmt::format("{:016x}{}", number, kRecordSuffix);
}

// 0: not the name of a record.
std::uint64_t number_of(const std::string& name) {
  if (name.size() != kNumberDigits + kRecordSuffix.size() || !name.ends_with(kRecordSuffix)) {
    return 0;
  }
  const auto digits = std::string_view(name).substr(0, kNumberDigits);
  const auto number = base::parse_number<std::uint64_t>(digits, 16);
  return number.has_value() && file_name(*number) == name ? *number : 0;
}

format::Uuid random_id() {
  std::random_device device;
  format::Uuid id;
  for (std::byte& b : id) b = static_cast<std::byte>(device());
  return id;
}

[[noreturn]] void refuse_second_job(const std::string& path, std::uint64_t number) {
  fail(Errc::busy,
       "{}: another job has taken over the group: it has published version {}. This job ends "
       "without a new version",
       path, number);
}

}  // namespace

RecordDirectory::RecordDirectory(base::Fs& fs, std::string path)
    : fs_(&fs), path_(base::without_end_slashes(std::move(path))) {}

void RecordDirectory::read_group() {
  const std::string file = path_ + "/" + kGroupName;
  if (!fs_->exists(file)) fail(Errc::not_found, "{}: no group (no file {})", path_, kGroupName);
  const auto bytes = base::read_whole(*fs_, file, format::kGroupBytes);
  if (const char* problem = format::decode_group_file(bytes, group_)) {
    store::fail_header(file, bytes, format::checksum_seed(format::id_of_whole_file(bytes)),
                       problem);
  }
}

RecordDirectory RecordDirectory::open(base::Fs& fs, const std::string& path) {
  RecordDirectory directory(fs, path);
  directory.read_group();
  return directory;
}

RecordDirectory RecordDirectory::open_or_create(base::Fs& fs, const std::string& path,
                                                std::uint32_t partitions) {
  return make(fs, path, {random_id(), base::wall_clock_ns(), partitions});
}

RecordDirectory RecordDirectory::open_or_create(base::Fs& fs, const std::string& path,
                                                const format::GroupFile& group) {
  RecordDirectory directory = make(fs, path, group);
  if (directory.group_.id != group.id) {
    fail(Errc::invalid_argument, "{}: belongs to another group", directory.path_);
  }
  return directory;
}

// The existing group, or a new one.
RecordDirectory RecordDirectory::make(base::Fs& fs, const std::string& path,
                                      const format::GroupFile& group) {
  RecordDirectory directory(fs, path);
  base::ensure_directory(fs, directory.path_);
  fs.sync_directory(base::parent_of(directory.path_));
  base::ensure_directory(fs, directory.tmp_directory());
  if (!fs.exists(directory.path_ + "/" + kGroupName)) {
    try {
      base::publish_file(fs, directory.tmp_directory(), directory.path_, kGroupName,
                         format::encode_group_file(group), false);
    } catch (const Error& e) {
      if (e.code() != Errc::already_exists) throw;  // another job has created it concurrently
    }
  }
  directory.read_group();
  return directory;
}

void RecordDirectory::lock() {
  const std::string file = path_ + "/" + kLockName;
  if (!fs_->exists(file)) {
    try {
      fs_->open(file, base::OpenMode::create_new);
    } catch (const Error& e) {
      if (e.code() != Errc::already_exists) throw;
    }
  }
  auto lock = fs_->open(file, base::OpenMode::read_write);
  if (!lock->try_lock_exclusive()) {
    fail(Errc::busy, "{}: another job has the group open", path_);
  }
  lock_ = std::move(lock);
  for (const auto& entry : fs_->list(tmp_directory())) {
    base::remove_unpublished(*fs_, tmp_directory() + "/" + entry.name);
  }
}

std::string RecordDirectory::path_of(std::uint64_t number) const {
  return path_ + "/" + file_name(number);
}

std::vector<std::uint64_t> RecordDirectory::numbers() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : fs_->list(path_)) {
    if (const std::uint64_t number = number_of(entry.name)) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

format::GroupRecord RecordDirectory::read(std::uint64_t number) const {
  const std::string file = path_of(number);
  const auto bytes = base::read_whole(*fs_, file, format::kMaxGroupRecordBytes);
  format::GroupRecord record;
  if (const char* problem = format::decode_group_record(bytes, group_.id, record)) {
    store::fail_header(file, bytes, format::checksum_seed(group_.id), problem);
  }
  if (record.number != number) {
    fail(Errc::corrupted, "{}: the record is that of version {}", file, record.number);
  }
  if (record.partitions.size() != group_.partitions) {
    fail(Errc::corrupted, "{}: {} partitions, but the group has {}", file, record.partitions.size(),
         group_.partitions);
  }
  return record;
}

std::optional<format::GroupRecord> RecordDirectory::newest() const {
  for (std::uint64_t tried = 0;;) {
    const auto found = numbers();
    if (found.empty()) return std::nullopt;
    try {
      return read(found.back());
    } catch (const Error& e) {
      // A newer one has superseded it meanwhile; each round sees a larger number.
      if (e.code() != Errc::not_found || found.back() <= tried) throw;
    }
    tried = found.back();
  }
}

std::vector<format::GroupRecord> RecordDirectory::all() const {
  std::vector<format::GroupRecord> records;
  for (const std::uint64_t number : numbers()) {
    try {
      records.push_back(read(number));
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
    }
  }
  return records;
}

bool RecordDirectory::contains(std::uint64_t number) const { return fs_->exists(path_of(number)); }

void RecordDirectory::publish(const format::GroupRecord& record) {
  const auto bytes = format::encode_group_record(record, group_.id);
  try {
    base::publish_file(*fs_, tmp_directory(), path_, file_name(record.number), bytes, false);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    refuse_second_job(path_, record.number);
  }
  // The number may be free since another job has published and then removed it. That job has
  // published a later record before the removal.
  const std::uint64_t last = numbers().back();
  if (last == record.number) return;
  fs_->unlink(path_of(record.number));
  refuse_second_job(path_, last);
}

void RecordDirectory::remove(std::uint64_t number) {
  try {
    fs_->unlink(path_of(number));
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
}

}  // namespace vellum::group
