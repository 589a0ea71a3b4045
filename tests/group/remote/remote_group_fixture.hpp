// A group of three partitions with a remote, and a job of one process.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>
#include <vellum/group.hpp>

#include "base/temp_directory.hpp"
#include "group/remote/object_versions.hpp"
#include "group/remote/restore.hpp"
#include "group/versions/remote_records.hpp"
#include "remote/session/open_engine.hpp"
#include "store/support.hpp"
#include "support/one_process_group.hpp"

namespace vellum::group::test {

using vellum::test::OneProcess;
using vellum::test::TempDirectory;

#define EXPECT_ERROR(code, statement, part)                                               \
  EXPECT_THAT(store::test::error_text(Errc::code, [&] { static_cast<void>(statement); }), \
              testing::HasSubstr(part))

class RemoteGroupTest : public testing::Test {
 protected:
  RemoteGroupTest() { std::filesystem::create_directory(remote()); }

  std::string remote() const { return directory_ / "remote"; }
  virtual std::string url() const { return "file://" + remote(); }
  std::string records() const { return directory_ / "records"; }
  std::string store(std::uint32_t p) const { return directory_ / ("store-" + std::to_string(p)); }

  OneProcess open() const {
    return OneProcess(directory_.path(), "", "records",
                      std::make_shared<ObjectVersions>(base::posix_fs(), url()));
  }
  static void push(OneProcess& group) { group.job().finish_push(group.job().push_async("")); }
  // Creates a version of this content, and pushes it.
  static void push(OneProcess& group, std::uint64_t value, const std::string& name = "") {
    group.set(value);
    group.job().snapshot(name, "");
    push(group);
  }
  RestoreReport restore(const std::string& version = "") const {
    OneRank all;
    return restore_group(base::posix_fs(), all,
                         {url(), records(), version, directory_ / "store-{}", std::nullopt}, {});
  }
  std::vector<format::GroupRecord> records_there() const {
    const auto objects = remote::open_object_store(base::posix_fs(), url_of_records(url()));
    const RemoteRecords there(*objects);
    std::vector<format::GroupRecord> out;
    for (const std::uint64_t number : there.numbers()) {
      out.push_back(there.read(number, there.read_group()));
    }
    return out;
  }
  std::set<format::GroupPin> pins_there(std::uint32_t p) const {
    const auto group = RecordDirectory::open(base::posix_fs(), records()).group();
    return pins_at(base::posix_fs(), url(), group.id, p);
  }
  std::uint64_t word_of(const std::string& version, std::uint32_t p) const {
    return GroupVersion::open(records(), version).open_partition(p).root<const std::uint64_t>();
  }
  void expect_all(const std::string& version, std::uint64_t value) const {
    for (std::uint32_t p = 0; p < 3; ++p)
      EXPECT_EQ(word_of(version, p), value) << "partition " << p;
  }
  void lose_all() const {
    for (std::uint32_t p = 0; p < 3; ++p) std::filesystem::remove_all(store(p));
    std::filesystem::remove_all(records());
  }

  const TempDirectory directory_;
};

}  // namespace vellum::group::test
