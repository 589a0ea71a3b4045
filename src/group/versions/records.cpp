#include "group/versions/records.hpp"

#include "base/fail.hpp"
#include "group/job.hpp"
#include "group/record_directory.hpp"
#include "group/versions/remote_records.hpp"
#include "remote/engine/url.hpp"
#include "remote/session/open_engine.hpp"

namespace vellum::group {

Records::Records(std::string where, const std::string& stores) : where_(std::move(where)) {
  if (remote::is_remote_url(where_)) {
    if (!stores.empty()) {
      fail(Errc::invalid_argument, "{}: partitions are below the URL, not at '{}'", where_, stores);
    }
    objects_ = remote::open_object_store(base::posix_fs(), url_of_records(where_));
    group_ = RemoteRecords(*objects_).read_group();
  } else {
    group_ = RecordDirectory::open(base::posix_fs(), where_).group();
  }
}

format::GroupRecord Records::find(const std::string& version) const {
  if (are_remote()) return RemoteRecords(*objects_).find(version, group_);
  return find_record(RecordDirectory::open(base::posix_fs(), where_), version);
}

std::vector<format::GroupRecord> Records::all() const {
  if (!are_remote()) return RecordDirectory::open(base::posix_fs(), where_).all();
  return RemoteRecords(*objects_).all(group_);
}

}  // namespace vellum::group
