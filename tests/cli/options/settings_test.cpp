// The default store and time format of command lines without one.
#include <cstdlib>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class Settings : public CliTest {
 protected:
  Settings() : mine_(make_store_with({noise(2, 1), noise(2, 2)})), other_(path("other")) {
    std::filesystem::create_directories(path("config/vellum"));
    must({"init", other_});
    must({"import", other_, "side", file("f", noise(1, 3))});
  }

  void configure(const std::string& text) const { write_file(path("config/vellum/config"), text); }

  // With VELLUM_STORE, unless it is empty, and the file of configure().
  Result run_with(const std::string& store, const Arguments& arguments) const {
    return run(arguments, [&] {
      ::setenv("XDG_CONFIG_HOME", config_.c_str(), 1);
      store.empty() ? ::unsetenv("VELLUM_STORE") : ::setenv("VELLUM_STORE", store.c_str(), 1);
    });
  }

  std::string mine_, other_;
  std::string config_ = path("config");
};

TEST_F(Settings, AVariableSetsTheStoreOfEveryCommand) {
  const Arguments lines[] = {{"log"},
                             {"log", "main"},
                             {"log", "--names", "v1"},
                             {"show", "v1"},
                             {"diff", "v1", "v2", "--exit-code"},
                             {"cat", "--offset", "1", "v1", "--length", "2"},
                             {"du"},
                             {"du", "v1"},
                             {"heat", "v1..v2"},
                             {"stat"},
                             {"branch", "new", "v1"},
                             {"tier", "list"},
                             {"remote", "add", "origin", "file://" + path("remote")},
                             {"push", "v1"},
                             {"export", "v1", path("out")},
                             {"rm", "--branch", "new"},
                             {"rm", "v1"},
                             {"gc"}};
  for (const Arguments& line : lines) {
    const Result result = run_with(mine_, line);
    EXPECT_EQ(result.status, line[0] == "diff" ? 1 : 0) << line[0] << ": " << result.err;
    if (line[0] != "log") continue;
    EXPECT_TRUE(contains(result.out, "v1")) << result.out;
  }
  EXPECT_EQ(read_file(path("out")), noise(2, 1));
  EXPECT_EQ(run({"show", mine_, "v1"}).status, 3) << "rm has removed it from this store";
}

TEST_F(Settings, AnArgumentPrecedesTheVariableAndThatTheFile) {
  configure("# mine\nstore = \"" + mine_ + "\"\n");
  const auto store_of = [](const Result& result) { return result.json().at("store"); };
  EXPECT_EQ(store_of(run_with("", {"log", "--json"})), mine_);
  EXPECT_EQ(store_of(run_with(other_, {"log", "--json"})), other_);
  EXPECT_EQ(store_of(run_with(mine_, {"log", other_, "--json"})), other_);
  EXPECT_EQ(store_of(run_with(mine_, {"show", other_, "side", "--json"})), other_);
  EXPECT_EQ(store_of(run_with(mine_, {"stat", other_, "--json"})), other_);
  EXPECT_EQ(run_with(mine_, {"init", path("fresh")}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(path("fresh/vellum.store")));
}

TEST_F(Settings, APathIsAlwaysTheStore) {
  const Result result = run_with(mine_, {"log", path("nowhere")});
  EXPECT_EQ(result.status, 3);
  EXPECT_TRUE(contains(result.err, path("nowhere"))) << result.err;
  // Store and file may be swapped; then no position is left for another store.
  EXPECT_EQ(run_with(mine_, {"backup", file("b", noise(1, 4)), other_, "--name", "b"}).status, 0);
  EXPECT_EQ(run({"show", other_, "b"}).status, 0);
  EXPECT_EQ(run_with(mine_, {"backup", file("c", noise(1, 4)), "--name", "c"}).status, 0);
  EXPECT_EQ(run({"show", mine_, "c"}).status, 0);
}

TEST_F(Settings, WithoutASettingTheStoreIsMissing) {
  const Result result = run_with("", {"log"});
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "STORE")) << result.err;
}

TEST_F(Settings, AnInvalidConfigurationFileIsReported) {
  const std::pair<const char*, const char*> wrong[] = {{"stoer = \"/x\"\n", "no setting 'stoer'"},
                                                       {"store = relative\n", "relative"},
                                                       {"store = /a b\n", "one value"},
                                                       {"time-format = local\n", "local"},
                                                       {"[s]\nstore = /x\n", "no setting 's'"}};
  for (const auto& [text, named] : wrong) {
    configure(text);
    const Result result = run_with("", {"log"});
    EXPECT_EQ(result.status, 2) << text;
    EXPECT_TRUE(contains(result.err, path("config/vellum/config"))) << result.err;
    EXPECT_TRUE(contains(result.err, named)) << result.err;
  }
}

TEST_F(Settings, TheTimeFormatIsConfigurable) {
  const std::string iso = must({"log", mine_}).out;
  EXPECT_TRUE(contains(iso, "Z")) << iso;
  const std::string human = must({"log", mine_, "--time-format", "human"}).out;
  EXPECT_TRUE(contains(human, " ago")) << human;
  EXPECT_TRUE(contains(must({"--time-format", "human", "show", mine_, "v1"}).out, " ago"));
  configure("time-format = human\n");
  EXPECT_TRUE(contains(run_with("", {"log", mine_}).out, " ago"));
  EXPECT_FALSE(contains(run_with("", {"log", mine_, "--time-format", "iso"}).out, " ago"));
  EXPECT_FALSE(contains(run_with("", {"log", mine_, "--json"}).out, " ago"));
  EXPECT_EQ(run({"log", mine_, "--time-format", "local"}).status, 2);
}

}  // namespace
}  // namespace vellum::cli_test
