// vellum show --stat, diff --stat, du and heat --png: changes, and their size.
#include "format/wire/types.hpp"
#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

using format::kPageBytes;

class Observability : public CliTest {
 protected:
  // 64 pages, so parts of two pages. v2 changes 100 bytes across the border of pages 1 and 2, and
  // all of page 40.
  std::string make_history() const {
    const std::string v1 = noise(64, 1);
    std::string v2 = v1;
    for (std::size_t i = 2 * kPageBytes - 50; i < 2 * kPageBytes + 50; ++i)
      v2[i] = static_cast<char>(~v1[i]);
    for (std::size_t i = 40 * kPageBytes; i < 41 * kPageBytes; ++i)
      v2[i] = static_cast<char>(~v1[i]);
    return make_store_with({v1, v2});
  }
};

nlohmann::json part(std::size_t offset, std::size_t pages, std::size_t bytes) {
  return {{"offset", offset},
          {"length", 2 * kPageBytes},
          {"pages_different", pages},
          {"bytes_different", bytes}};
}

TEST_F(Observability, DiffByPartsListsEachPartThatDiffers) {
  const std::string store = make_history();
  const auto stat = must({"diff", store, "v1", "v2", "--stat", "--json"}).json();
  EXPECT_EQ(stat.at("part_bytes"), 2 * kPageBytes);
  EXPECT_EQ(stat.at("parts"), nlohmann::json({part(0, 1, 50), part(2 * kPageBytes, 1, 50),
                                              part(40 * kPageBytes, 1, kPageBytes)}));
  EXPECT_EQ(stat.at("pages_different"), 3);
  EXPECT_EQ(stat.at("bytes_different"), 100 + kPageBytes);
  EXPECT_EQ(stat.at("different"), true);
  const auto lines = lines_of(must({"diff", store, "v1", "v2", "--stat"}).out);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(contains(lines[1], "8.0 KiB      1     50 B  +")) << lines[1];
  EXPECT_TRUE(lines[3].ends_with("  " + std::string(40, '+'))) << lines[3];
  EXPECT_TRUE(contains(lines[4], "4196 bytes in 2 ranges on 3 pages")) << lines[4];
}

TEST_F(Observability, APageWithSeveralRangesCountsOnce) {
  const std::string v1 = noise(2, 1);
  std::string v2 = v1;
  for (const std::size_t at : {std::size_t{10}, std::size_t{1000}, kPageBytes + 5}) v2[at] ^= 1;
  const std::string store = make_store_with({v1, v2});
  const auto stat = must({"diff", store, "v1", "v2", "--stat", "--json"}).json();
  EXPECT_EQ(stat.at("range_count"), 3);
  ASSERT_EQ(stat.at("parts").size(), 2U);
  EXPECT_EQ(stat.at("parts")[0].at("pages_different"), 1);
  EXPECT_EQ(stat.at("parts")[0].at("bytes_different"), 2);
}

TEST_F(Observability, DiffByPartsOfEqualAndOfGrownVersions) {
  const std::string store = make_store_with({noise(3, 1), noise(3, 1) + noise(2, 2)});
  must({"snapshot", store, "again", "v2"});
  EXPECT_EQ(must({"diff", store, "v2", "again", "--stat"}).out, "no difference\n");
  EXPECT_EQ(run({"diff", store, "v2", "again", "--stat", "--exit-code"}).status, 0);
  const auto grown = must({"diff", store, "v1", "v2", "--stat", "--json"}).json();
  ASSERT_EQ(grown.at("parts").size(), 2U);
  EXPECT_EQ(grown.at("parts")[0].at("offset"), 3 * kPageBytes);
  EXPECT_EQ(run({"diff", store, "v1", "v2", "--stat", "--quiet"}).status, 1);
  EXPECT_EQ(run({"diff", store, "v1", "v2", "--stat", "--pages"}).status, 2);
  EXPECT_EQ(run({"diff", store, "v1", "v2", "--stat", "--summary"}).status, 2);
}

TEST_F(Observability, ShowComparesAVersionWithItsParent) {
  const std::string store = make_history();
  const auto stat = must({"show", store, "v2", "--stat", "--json"}).json().at("stat");
  EXPECT_EQ(stat.at("parts").size(), 3U);
  EXPECT_EQ(stat.at("bytes_different"), 100 + kPageBytes);
  EXPECT_TRUE(contains(must({"show", store, "v2", "--stat"}).out,
                       "4196 bytes in 2 ranges on 3 pages since 'v1'"));
  EXPECT_FALSE(must({"show", store, "v2", "--json"}).json().contains("stat"));
  EXPECT_TRUE(must({"show", store, "v1", "--stat", "--json"}).json().at("stat").is_null());
  EXPECT_TRUE(contains(must({"show", store, "v1", "--stat"}).out, "no earlier version"));
}

TEST_F(Observability, ARemovedParentIsNotReplacedByANewVersionOfItsName) {
  const std::string store = make_history();
  must({"rm", store, "v1"});
  EXPECT_TRUE(must({"show", store, "v2", "--stat", "--json"}).json().at("stat").is_null());
  must({"snapshot", store, "v1", "main"});
  EXPECT_TRUE(must({"show", store, "v2", "--stat", "--json"}).json().at("stat").is_null());
}

TEST_F(Observability, DuPrintsTheBytesThatOnlyOneVersionNeeds) {
  const std::string store = make_store_with({noise(50, 1), noise(50, 2), noise(5, 3)});
  const auto du = must({"du", store, "--json"}).json();
  const auto& versions = du.at("versions");
  ASSERT_EQ(versions.size(), 4U);
  std::size_t own = 0;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    own += versions[i].at("unique_bytes").get<std::size_t>();
    if (i != 0) {
      EXPECT_GE(versions[i - 1].at("unique_bytes"), versions[i].at("unique_bytes"));
    }
  }
  EXPECT_EQ(du.at("needed_by_one_bytes"), own);
  EXPECT_EQ(du.at("needed_by_one_bytes").get<std::size_t>() +
                du.at("needed_by_several_bytes").get<std::size_t>() +
                du.at("needed_by_none_bytes").get<std::size_t>(),
            du.at("pack_bytes"));
  const auto one = must({"du", store, "v3", "v1", "--json"}).json().at("versions");
  ASSERT_EQ(one.size(), 2U);
  EXPECT_EQ(one[0].at("name"), "v3");
  EXPECT_EQ(one[0].at("unique_bytes"), 0) << "v3 is main's head, too";
  EXPECT_EQ(one[1].at("nonzero_bytes"), 50 * kPageBytes);
  EXPECT_GE(one[1].at("unique_bytes").get<std::size_t>(), 50 * kPageBytes);
  EXPECT_EQ(run({"du", store, "nobody"}).status, 3);
  // A version's own bytes in du are the bytes that a collection frees.
  const auto freeable = [&] {
    return must({"gc", store, "--dry-run", "--json"}).json().at("freeable_bytes").get<long>();
  };
  const long before = freeable();
  must({"rm", store, "v1"});
  EXPECT_NEAR(static_cast<double>(freeable() - before), one[1].at("unique_bytes").get<double>(),
              2 * kPageBytes);
}

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

TEST_F(Observability, HeatWritesAPngPicture) {
  const std::string store = make_history();
  const std::string picture = path("heat.png");
  const Result result = run({"heat", store, "--columns", "10", "--png", picture, "--json"});
  if (result.status == 12) GTEST_SKIP() << "built without libpng";
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string png = read_file(picture);
  ASSERT_GT(png.size(), 33U);
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(png.substr(12, 4), "IHDR");
  const auto heat = must({"heat", store, "--columns", "10", "--json"}).json();
  const std::size_t rows = heat.at("rows").size(),
                    columns = heat.at("rows")[0].at("columns").size();
  EXPECT_EQ(big_endian(png, 16), columns * 8);
  EXPECT_EQ(big_endian(png, 20), rows * 14);
  EXPECT_EQ(result.json().at("width"), columns * 8);
  EXPECT_EQ(png[25], 3) << "colours are those of a palette";
  EXPECT_EQ(run({"heat", store, "--svg", "--png", picture}).status, 2);
  EXPECT_EQ(run({"heat", store, "--png", path("no/heat.png")}).status, 3);
  must({"heat", store, "v1..v2", "--png", picture});
  EXPECT_NE(read_file(picture), png) << "the file is replaced";
}

}  // namespace
}  // namespace vellum::cli_test
