// vellum repair: the report, the new store, the exit status.
#include <filesystem>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class Repair : public CliTest {};

void flip(const std::string& file, std::size_t at) {
  std::string bytes = read_file(file);
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
  write_file(file, bytes);
}

TEST_F(Repair, AnIntactStoreIsCopied) {
  const std::string s = make_store_with({noise(20, 1), noise(20, 2)});
  const Result text = must({"repair", s, "--to", path("new")});
  EXPECT_NE(text.out.find("saved  snapshot 'v2'"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("0 lost"), std::string::npos) << text.out;
  EXPECT_EQ(must({"cat", path("new"), "v1"}).out, noise(20, 1));
  EXPECT_EQ(must({"cat", path("new"), "main"}).out, noise(20, 2));
  must({"verify", path("new"), "--read-data"});
  expect_failure({"repair", s, "--to", path("new")}, 4, "already_exists", path("new"));
}

// A branch has the same encoding in the new store as in the old one.
TEST_F(Repair, ABranchKeepsItsEncoding) {
  const std::string s = make_store_with({noise(20, 1)}), pages = std::string(300 * 4096, 'x');
  must({"branch", s, "plain", "main", "--compression", "none", "--hash", "sha256"});
  write_file(path("x"), pages);
  must({"import", s, "plain", path("x")});
  const std::string saved = path("new");
  must({"repair", s, "--to", saved});
  EXPECT_EQ(must({"show", saved, "plain", "--json"}).json().at("encoding"),
            must({"show", s, "plain", "--json"}).json().at("encoding"));
  EXPECT_EQ(must({"cat", saved, "plain"}).out, pages);
  EXPECT_GT(must({"stat", saved, "--json"}).json().at("pack_bytes"), pages.size());
  must({"verify", saved, "--read-data"});
}

TEST_F(Repair, LostVersionsAreNamedAndTheOthersSaved) {
  const std::string s = make_store_with({noise(20, 1), noise(20, 2)});
  flip(s + "/snapshots/v1.ref", 40);
  const Result dry = run({"repair", s, "--dry-run", "--json"});
  EXPECT_EQ(dry.status, 11);
  EXPECT_TRUE(dry.json().at("destination").is_null());
  EXPECT_FALSE(std::filesystem::exists(s + ".repaired"));
  const Result result = run({"repair", s, "--json"});
  EXPECT_EQ(result.status, 11) << result.err;
  const auto report = result.json();
  EXPECT_EQ(report.at("destination"), s + ".repaired");
  EXPECT_EQ(report.at("error").at("code"), "corrupted");
  ASSERT_EQ(report.at("lost").size(), 1u);
  EXPECT_EQ(report.at("lost").at(0).at("version"), "snapshot 'v1'");
  std::string recovered;
  for (const auto& saved : report.at("saved")) {
    if (!saved.at("exact")) recovered = saved.at("name");
  }
  ASSERT_NE(recovered, "");
  EXPECT_EQ(must({"cat", s + ".repaired", recovered}).out, noise(20, 1));
  EXPECT_EQ(must({"cat", s + ".repaired", "v2"}).out, noise(20, 2));
}

}  // namespace
}  // namespace vellum::cli_test
