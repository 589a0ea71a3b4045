// Relative names of versions: main~2, latest, @{yesterday}.
#include <stdlib.h>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class VersionNames : public CliTest {
 protected:
  static std::string name_of(const std::string& store, const std::string& version) {
    return must({"show", store, version, "--json"}).json().at("name");
  }
  static std::string error_of(const std::string& store, const std::string& version, int status) {
    const Result result = run({"show", store, version});
    EXPECT_EQ(result.status, status) << version << ": " << result.out << result.err;
    return result.err;
  }
  // Runs with a clock that is this many days behind.
  static void must_days_ago(int days, const Arguments& arguments) {
    const std::string seconds = std::to_string(days * 86'400);
    const Result result = run(arguments, [&] {
      ::setenv("LD_PRELOAD", VELLUM_CLOCK_BACK, 1);
      ::setenv("VELLUM_TEST_CLOCK_BACK", seconds.c_str(), 1);
    });
    ASSERT_EQ(result.status, 0) << result.err;
  }
};

TEST_F(VersionNames, RelativeNamesCountBackAlongTheLine) {
  const std::string store = make_store_with({noise(1, 1), noise(1, 2), noise(1, 3)});
  EXPECT_EQ(name_of(store, "main~0"), "main");
  EXPECT_EQ(name_of(store, "main~"), "v3");
  EXPECT_EQ(name_of(store, "main~2"), "v2");
  EXPECT_EQ(name_of(store, "v3~2"), "v1");
  must({"branch", store, "side", "v2"});
  EXPECT_EQ(name_of(store, "side~1"), "v2");
  EXPECT_NE(error_of(store, "main~4", 3).find("'main' has 3 snapshots before it"),
            std::string::npos);
  EXPECT_NE(error_of(store, "v1~", 3).find("'v1' has 0 snapshots before it"), std::string::npos);
  must({"rm", store, "v1"});
  EXPECT_NE(error_of(store, "main~3", 3).find("goes back to 'v1', which has been removed"),
            std::string::npos);
}

TEST_F(VersionNames, LatestIsTheNewestSnapshotUnlessItIsAName) {
  const std::string store = make_store_with({noise(1, 1), noise(1, 2)});
  EXPECT_EQ(name_of(store, "latest"), "v2");
  EXPECT_EQ(name_of(store, "latest~"), "v1");
  must({"snapshot", store, "again", "v1"});
  EXPECT_EQ(name_of(store, "latest"), "again");
  must({"snapshot", store, "latest", "v1"});
  must({"snapshot", store, "newer", "v2"});
  EXPECT_EQ(name_of(store, "latest"), "latest");
  must({"init", path("empty")});
  EXPECT_NE(error_of(path("empty"), "latest", 3).find("no snapshot yet"), std::string::npos);
}

TEST_F(VersionNames, ATimeMeansTheNewestSnapshotOfThatTimeNoSanitizer) {
  const std::string store = make_store_with({noise(1, 1)});
  must({"rm", store, "v1"});
  must_days_ago(30, {"snapshot", store, "month"});
  must_days_ago(2, {"snapshot", store, "days"});
  must_days_ago(2, {"branch", store, "side", "month"});
  must({"snapshot", store, "today"});
  EXPECT_EQ(name_of(store, "@{yesterday}"), "days");
  EXPECT_EQ(name_of(store, "main@{1h}"), "days");
  EXPECT_EQ(name_of(store, "main@{3 days ago}"), "month");
  EXPECT_EQ(name_of(store, "@{4weeks}"), "month");
  EXPECT_EQ(name_of(store, "side@{yesterday}"), "month");
  EXPECT_EQ(name_of(store, "main@{0s}"), "today");
  EXPECT_NE(error_of(store, "main@{5 weeks ago}", 3).find("no snapshot on the line of 'main'"),
            std::string::npos);
  EXPECT_NE(error_of(store, "@{soon}", 2).find("'soon' is no time"), std::string::npos);
}

TEST_F(VersionNames, EachReadingCommandAcceptsRelativeNames) {
  const std::string old = noise(1, 1);
  const std::string store = make_store_with({old, noise(1, 2)});
  EXPECT_EQ(must({"cat", store, "main~2"}).out, old);
  must({"export", store, "latest~1", path("exported")});
  EXPECT_EQ(read_file(path("exported")), old);
  write_file(path("restored"), "other");
  must({"restore", store, "v2~1", path("restored")});
  EXPECT_EQ(read_file(path("restored")), old);
  EXPECT_EQ(run({"diff", store, "latest~1", "v1", "--exit-code"}).status, 0);
  EXPECT_EQ(run({"diff", store, "latest~1", "latest", "--exit-code"}).status, 1);
  must({"snapshot", store, "kept", "main~2"});
  must({"branch", store, "side", "main~2"});
  EXPECT_EQ(must({"cat", store, "kept"}).out, old);
  EXPECT_EQ(must({"cat", store, "side"}).out, old);
  EXPECT_EQ(must({"log", store, "main~2", "--names"}).out, "v1\n");
}

TEST_F(VersionNames, RelativeNamesCannotNameNewVersions) {
  const std::string store = make_store_with({noise(1, 1)});
  EXPECT_EQ(run({"snapshot", store, "main~1"}).status, 2);
  EXPECT_EQ(run({"rm", store, "main~1"}).status, 3);
  EXPECT_NE(error_of(store, "main~x", 2).find("the number of snapshots"), std::string::npos);
  EXPECT_NE(error_of(store, "main~-1", 2).find("the number of snapshots"), std::string::npos);
  EXPECT_EQ(run({"show", store, "main~99999999999"}).status, 2);
  EXPECT_EQ(run({"show", store, "nobody~1"}).status, 3);
}

TEST_F(VersionNames, TimesAreParsedAsDocumented) {
  const std::string store = make_store_with({noise(1, 1)});
  for (const char* future : {"2199-12-31", "2199-12-31T23:59", "2199-12-31T23:59:59", "0min"})
    EXPECT_EQ(name_of(store, std::string("@{") + future + "}"), "v1") << future;
  EXPECT_NE(error_of(store, "@{2024-02-29}", 3).find("at 2024-02-29T23:59:59Z or before"),
            std::string::npos);
  EXPECT_NE(error_of(store, "@{2024-02-29T10:30}", 3).find("at 2024-02-29T10:30:59Z or before"),
            std::string::npos);
  for (const char* past : {"90minutes", "1 hour ago", "2 d", "1week", "100s"})
    error_of(store, std::string("@{") + past + "}", 3);
  for (const char* wrong :
       {"", "2023-02-29", "2026-13-01", "2026-11-24T24:00", "2026-11-24T10", "2026-11-24 10:30",
        "20261124", "days", "3", "3 moons ago", "-3 days", "99999999999 days", "36525 weeks",
        "2262-01-01", "1899-12-31", " ago", "3ss"})
    error_of(store, std::string("@{") + wrong + "}", 2);
}

}  // namespace
}  // namespace vellum::cli_test
