// vellum heat and vellum blame: the changes of each part, by version.
#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

constexpr std::size_t kPage = 4096;

class History : public CliTest {
 protected:
  // Ten pages. v2 changes 100 bytes across the border of pages 2 and 3, v3 all of page 9, and v4
  // reverts half of v2's changes.
  std::string make_history() const {
    const std::string v1 = noise(10, 1);
    std::string v2 = v1;
    for (std::size_t i = 3 * kPage - 50; i < 3 * kPage + 50; ++i) v2[i] = static_cast<char>(~v1[i]);
    std::string v3 = v2;
    for (std::size_t i = 9 * kPage; i < 10 * kPage; ++i) v3[i] = static_cast<char>(~v1[i]);
    std::string v4 = v3;
    for (std::size_t i = 3 * kPage; i < 3 * kPage + 50; ++i) v4[i] = v1[i];
    return make_store_with({v1, v2, v3, v4});
  }
};

TEST_F(History, HeatCountsTheBytesOfEachVersionInEachColumn) {
  const std::string store = make_history();
  const auto heat = must({"heat", store, "v1..v4", "--columns", "10", "--json"}).json();
  EXPECT_EQ(heat.at("since"), "v1");
  EXPECT_EQ(heat.at("region_bytes"), 10 * kPage);
  EXPECT_EQ(heat.at("column_bytes"), kPage);
  const auto& rows = heat.at("rows");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("version"), "v4");
  EXPECT_EQ(rows[0].at("columns"), nlohmann::json({0, 0, 0, 50, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(rows[1].at("columns"), nlohmann::json({0, 0, 0, 0, 0, 0, 0, 0, 0, kPage}));
  EXPECT_EQ(rows[2].at("columns"), nlohmann::json({0, 0, 50, 50, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(rows[2].at("bytes_changed"), 100);
  const auto coarse = must({"heat", store, "v1..v2", "--columns", "3", "--json"}).json();
  EXPECT_EQ(coarse.at("column_bytes"), 4 * kPage);
  EXPECT_EQ(coarse.at("rows")[0].at("columns"), nlohmann::json({100, 0, 0}));
}

TEST_F(History, HeatIsDrawnForATerminalAndAsAPicture) {
  const std::string store = make_history();
  const auto lines = lines_of(
      run({"heat", store, "v1..v3", "--columns", "10"}, [] { ::setenv("LC_ALL", "C", 1); }).out);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_TRUE(contains(lines[1], "|         @|")) << lines[1];
  EXPECT_TRUE(contains(lines[2], "|  ::      |")) << lines[2];
  const std::string blocks = run({"heat", store, "v1..v3", "--columns", "10"}, [] {
                               ::setenv("LC_ALL", "C.UTF-8", 1);
                             }).out;
  EXPECT_TRUE(contains(blocks, "│         █│")) << blocks;
  const std::string svg = must({"heat", store, "--columns", "10", "--svg"}).out;
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_TRUE(contains(svg, "<title>v3: 4.0 KiB from 36864 on</title>")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST_F(History, APictureEscapesNamesAndMessages) {
  const std::string store = make_store_with({noise(1, 1)});
  must({"snapshot", store, "é"});
  const std::string svg = must({"heat", store, "--svg"}).out;
  EXPECT_TRUE(contains(svg, ">é</text>")) << svg;
  EXPECT_EQ(run({"heat", store, "--svg", "--json"}).status, 2);
}

TEST_F(History, BlameFindsTheVersionThatChangedAByteLast) {
  const std::string store = make_history();
  const auto ranges = must({"blame", store, "--json"}).json().at("ranges");
  struct Expected {
    std::size_t offset, length;
    const char* version;
  };
  const Expected expected[] = {{0, 3 * kPage - 50, "v1"},
                               {3 * kPage - 50, 50, "v2"},
                               {3 * kPage, 50, "v4"},
                               {3 * kPage + 50, 6 * kPage - 50, "v1"},
                               {9 * kPage, kPage, "v3"}};
  ASSERT_EQ(ranges.size(), std::size(expected)) << ranges.dump();
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(ranges[i].at("offset"), expected[i].offset);
    EXPECT_EQ(ranges[i].at("length"), expected[i].length);
    EXPECT_EQ(ranges[i].at("version"), expected[i].version);
    EXPECT_EQ(ranges[i].at("or_before"), std::string(expected[i].version) == "v1");
  }
}

TEST_F(History, BlameAcceptsARangeAndWholePages) {
  const std::string store = make_history();
  const auto part =
      must({"blame", store, "--offset", std::to_string(3 * kPage + 20), "--length", "1K", "--json"})
          .json()
          .at("ranges");
  ASSERT_EQ(part.size(), 2U);
  EXPECT_EQ(part[0].at("length"), 30);
  EXPECT_EQ(part[0].at("version"), "v4");
  EXPECT_EQ(part[1].at("length"), 1024 - 30);
  const auto pages = must({"blame", store, "--pages", "--json"}).json().at("ranges");
  ASSERT_EQ(pages.size(), 5U) << pages.dump();
  EXPECT_EQ(pages[1].at("offset"), 2 * kPage);
  EXPECT_EQ(pages[1].at("version"), "v2");
  EXPECT_EQ(pages[2].at("offset"), 3 * kPage);
  EXPECT_EQ(pages[2].at("length"), kPage);
  EXPECT_EQ(pages[2].at("version"), "v4");
  const auto recent = must({"blame", store, "v3..v4", "--json"}).json();
  EXPECT_EQ(recent.at("oldest"), "v3");
  EXPECT_EQ(recent.at("ranges").size(), 3U);
  EXPECT_TRUE(contains(must({"blame", store, "v3..v4"}).out, "v3 or before"));
}

TEST_F(History, ImpossibleRequestsAreReported) {
  const std::string store = make_history();
  must({"branch", store, "side", "v1"});
  EXPECT_TRUE(contains(run({"heat", store, "v3..side"}).err, "'v3' is not before 'side'"));
  EXPECT_EQ(run({"heat", store, "nobody..main"}).status, 3);
  EXPECT_EQ(run({"heat", store, "--columns", "0"}).status, 2);
  EXPECT_EQ(run({"heat", store, "--columns", "5000"}).status, 2);
  EXPECT_EQ(run({"blame", store, "--offset", "40K"}).status, 2);
  EXPECT_EQ(run({"blame", store, "--length", "0"}).status, 2);
  must({"rm", store, "--branch", "main"});
  must({"branch", store, "other", "v1"});
  EXPECT_TRUE(contains(run({"heat", store}).err, "several branches, none of them 'main'"));
  must({"init", path("empty")});
  EXPECT_EQ(run({"heat", path("empty")}).status, 3);
}

TEST_F(History, ARegionThatGrowsIsComparedToItsEnd) {
  const std::string store = make_store_with({noise(2, 1), noise(2, 1) + noise(3, 2)});
  const auto heat = must({"heat", store, "v1..v2", "--columns", "5", "--json"}).json();
  const auto& columns = heat.at("rows")[0].at("columns");
  EXPECT_EQ(columns[0], 0);
  EXPECT_GT(columns[4].get<int>(), 4000);
  const auto ranges = must({"blame", store, "v1..v2", "--pages", "--json"}).json().at("ranges");
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[1].at("offset"), 2 * kPage);
  EXPECT_EQ(ranges[1].at("length"), 3 * kPage);
}

}  // namespace
}  // namespace vellum::cli_test
