// LMDB and its tools leave the same files under vellum run as without it, in each of LMDB's modes.
#include <lmdb.h>

#include <filesystem>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunLmdbModesNoSanitizer : public CliTest, public testing::WithParamInterface<unsigned> {
 protected:
  void SetUp() override {
    if (run_program({"mdb_dump", "-V"}).status != 0) GTEST_SKIP() << "no lmdb-utils";
    for (const char* name : {"plain", "plain/copy", "db", "db/copy", "other"})
      fs::create_directory(path(name));
  }
  Result under_vellum(const Arguments& program, const std::string& directory = "db",
                      const std::string& store = "store") const {
    Arguments out = {"run", "--store", path(store), "--file", path(directory) + "/data.mdb", "--"};
    out.insert(out.end(), program.begin(), program.end());
    const Result result = run(out);
    EXPECT_EQ(0, result.status) << program[0] << ": " << result.err;
    return result;
  }
  // Every database of it, as text.
  std::string dump(const std::string& directory) const {
    const Result result = run_program({"mdb_dump", "-a", path(directory)});
    EXPECT_EQ(0, result.status) << result.err;
    EXPECT_LT(100'000U, result.out.size());
    return result.out;
  }
};

TEST_P(RunLmdbModesNoSanitizer, LeavesTheSameFilesAsWithoutVellum) {
  const std::string flags = std::to_string(GetParam());
  const Result plain = run_program({VELLUM_LMDB_MODES, path("plain"), flags});
  ASSERT_EQ(0, plain.status) << plain.err;
  under_vellum({VELLUM_LMDB_MODES, path("db"), flags});
  const std::string content = dump("plain");
  EXPECT_TRUE(content == dump("db"));
  EXPECT_TRUE(dump("plain/copy") == dump("db/copy"));
  fs::remove(path("exported"));
  must({"export", path("store"), "main", path("exported")});
  EXPECT_TRUE(read_file(path("exported")) == read_file(path("db/data.mdb")));
}

// MDB_NOSYNC and MDB_MAPASYNC flush when the program asks for it.
INSTANTIATE_TEST_SUITE_P(Modes, RunLmdbModesNoSanitizer,
                         testing::Values(0U, MDB_NOMETASYNC, MDB_NOSYNC, MDB_WRITEMAP,
                                         MDB_WRITEMAP | MDB_MAPASYNC, MDB_WRITEMAP | MDB_NOSYNC));

using RunLmdbToolsNoSanitizer = RunLmdbModesNoSanitizer;

TEST_P(RunLmdbToolsNoSanitizer, LmdbToolsReadCopyAndLoad) {
  under_vellum({VELLUM_LMDB_MODES, path("db"), "0"});
  const std::string content = dump("db");
  EXPECT_TRUE(content == under_vellum({"mdb_dump", "-a", path("db")}).out);
  const Result status = run_program({"mdb_stat", "-a", "-e", path("db")});
  EXPECT_EQ(status.out, under_vellum({"mdb_stat", "-a", "-e", path("db")}).out);
  under_vellum({"mdb_copy", path("db"), path("other")});
  EXPECT_TRUE(content == dump("other"));
  fs::remove(path("other/data.mdb"));
  // The copy is written to a file that is a branch itself.
  under_vellum({"mdb_copy", "-c", path("db"), path("other")}, "other", "others");
  EXPECT_TRUE(content == dump("other"));
  fs::remove(path("other/data.mdb"));
  fs::remove_all(path("others"));
  write_file(path("dumped"), content);
  under_vellum({"mdb_load", "-f", path("dumped"), path("other")}, "other", "others");
  EXPECT_TRUE(content == dump("other"));
}

INSTANTIATE_TEST_SUITE_P(Once, RunLmdbToolsNoSanitizer, testing::Values(0U));

}  // namespace
}  // namespace vellum::cli_test
