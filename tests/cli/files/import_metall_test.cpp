// vellum import --metall: files in the format of Metall 0.30 become a datastore of Vellum.
#include <cstring>
#include <vellum/datastore.hpp>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBlockBytes = 1u << 20;

class ImportMetall : public CliTest {
 protected:
  // Two blocks with `text` in some pages, and metadata.
  std::string make_old(const std::string& text) const {
    const fs::path root = fs::path(path("old")) / "mds";
    fs::create_directories(root / "segment");
    fs::create_directories(root / "management");
    for (const char* block : {"block-0", "block-1"}) {
      const std::string file = (root / "segment" / block).string();
      write_file(file, std::string(8192, '\0') + text);
      fs::resize_file(file, kBlockBytes);
    }
    write_file((root / "management/manager_metadata").string(), "{\"uuid\": \"of the old one\"}");
    write_file((root / "management/named_object_directory").string(), "names");
    write_file((root / "properly_closed_mark").string(), "");
    return path("old");
  }
};

TEST_F(ImportMetall, SegmentAndMetadataAreImported) {
  const std::string old = make_old("hello");
  const Result done =
      run({"--json", "import", path("new"), "--metall", old, "-m", "moved", "--snapshot", "first"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.json()["segment_bytes"], 2 * kBlockBytes);
  EXPECT_EQ(done.json()["data_bytes"], 2 * 4096);
  EXPECT_EQ(done.json()["books"], 2);
  EXPECT_EQ(done.json()["snapshot"], "first");
  for (const auto& at : {path("new"), path("new") + "@first"}) {
    const Datastore datastore = Datastore::open_read_only(at);
    ASSERT_GE(datastore.size_bytes(), 2 * kBlockBytes);
    const auto* const segment = static_cast<const char*>(datastore.segment());
    EXPECT_STREQ(segment + 8192, "hello");
    EXPECT_STREQ(segment + kBlockBytes + 8192, "hello");
    EXPECT_EQ(segment[0], '\0');
    EXPECT_EQ(read_file(Datastore::files_directory(at) + "/management/named_object_directory"),
              "names");
  }
  const Result log = run({"--json", "log", path("new") + "/store"});
  EXPECT_NE(log.out.find("moved"), std::string::npos);
}

TEST_F(ImportMetall, AnIncompleteDatastoreIsRefused) {
  const std::string old = make_old("hello");
  const auto refused = [&](int status, const std::string& text) {
    const Result result = run({"import", path("new"), "--metall", old});
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(path("new")));
  };
  fs::rename(old + "/mds/properly_closed_mark", path("mark"));
  refused(11, "not closed");
  fs::rename(path("mark"), old + "/mds/properly_closed_mark");
  fs::resize_file(old + "/mds/segment/block-1", kBlockBytes / 2);
  refused(11, "block-1");
  fs::remove_all(old + "/mds/segment");
  refused(3, "block-0");
}

TEST_F(ImportMetall, AnExistingDatastoreIsNotChanged) {
  const std::string old = make_old("hello");
  ASSERT_EQ(run({"import", path("new"), "--metall", old}).status, 0);
  const Result again = run({"import", path("new"), "--metall", old});
  EXPECT_EQ(again.status, 4) << again.err;
  EXPECT_EQ(run({"import", path("new"), "main", "--metall", old}).status, 2);
  EXPECT_EQ(run({"import", path("new")}).status, 2);
  EXPECT_EQ(run({"import", path("x"), "--metall", old, "--snapshot", "-bad"}).status, 2);
  EXPECT_FALSE(fs::exists(path("x")));
  EXPECT_TRUE(Datastore::consistent(path("new")));
}

}  // namespace
}  // namespace vellum::cli_test
