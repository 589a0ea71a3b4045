// Commands that create a file or a directory, ended by a signal at each of their calls: under the
// final name there is all or nothing, the same command succeeds afterwards, and no other file is
// left then.
#include <signal.h>

#include <set>
#include <vellum/datastore.hpp>

#include "cli/files/cut_off_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

// A command that creates `out`, and the check that it is complete.
struct Making {
  const char* name;
  std::function<Arguments(const std::string& directory)> arguments;
  std::function<bool(const std::string& directory)> whole;
  bool at_once;  // it is complete as soon as it has its name
};

const std::string& content(int version) {
  static const std::string contents[] = {noise(6, 1), std::string(4 * 4096, 'a') + noise(3, 2)};
  return contents[version - 1];
}

bool file_is(const std::string& path, int version) { return read_file(path) == content(version); }

bool store_is(const std::string& store) { return run({"cat", store, "v2"}).out == content(2); }

const Making kMakings[] = {
    {"export",
     [](const std::string& d) { return Arguments{"export", d + "store", "v2", d + "out"}; },
     [](const std::string& d) { return file_is(d + "out", 2); }, true},
    {"restore",
     [](const std::string& d) { return Arguments{"restore", d + "store", "v2", d + "out"}; },
     [](const std::string& d) { return file_is(d + "out", 2); }, true},
    {"repair",
     [](const std::string& d) { return Arguments{"repair", d + "store", "--to", d + "out"}; },
     [](const std::string& d) { return store_is(d + "out"); }, true},
    {"init", [](const std::string& d) { return Arguments{"init", d + "out"}; },
     [](const std::string& d) { return run({"log", d + "out"}).status == 0; }, false},
    {"import_metall",
     [](const std::string& d) { return Arguments{"import", d + "out", "--metall", d + "old"}; },
     [](const std::string& d) { return Datastore::consistent(d + "out"); }, false},
};

// No command handles SIGINT: it acts like SIGKILL, tested at fewer calls.
unsigned step_of(int signal) { return signal == SIGKILL ? 1 : 7; }

class CutOff : public CliTest, public testing::WithParamInterface<Making> {
 protected:
  std::string here() const { return directory_.string() + "/"; }
  std::set<std::string> entries() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_))
      names.insert(entry.path().filename().string());
    return names;
  }
  void make_metall() const {
    const std::string root = path("old") + "/mds/";
    fs::create_directories(root + "segment");
    fs::create_directories(root + "management");
    write_file(root + "segment/block-0", std::string(8192, 'b'));
    write_file(root + "management/names", "names");
    write_file(root + "properly_closed_mark", "");
  }
};

TEST_P(CutOff, AnInterruptedCommandLeavesAllOrNothingAndTheNextSucceedsNoAsan) {
  const Making& making = GetParam();
  make_store_with({content(1), content(2)});
  make_metall();
  const Arguments arguments = making.arguments(here());
  const std::string made = path("out");
  auto wanted = entries();
  wanted.insert("out");
  for (const int signal : {SIGKILL, SIGINT}) {
    for (unsigned nth = 1; cut_off(arguments, nth, signal); nth += step_of(signal)) {
      SCOPED_TRACE("signal " + std::to_string(signal) + " at call " + std::to_string(nth));
      const bool named = making.at_once && fs::exists(made);
      EXPECT_TRUE(!named || making.whole(here()));
      const Result again = run(arguments);
      // If it is interrupted after the last step, the result is complete.
      EXPECT_TRUE(again.status == 0 || (again.status == 4 && fs::exists(made))) << again.err;
      EXPECT_TRUE(fs::exists(made) && making.whole(here()));
      EXPECT_EQ(wanted, entries());
      fs::remove_all(made);
      if (HasFailure()) return;
    }
    fs::remove_all(made);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, CutOff, testing::ValuesIn(kMakings),
                         [](const auto& making) { return std::string(making.param.name); });

class CutOffRestore : public CliTest {};

TEST_F(CutOffRestore, AnInterruptedRestoreLeavesTheOldOrTheNewFileNoAsan) {
  const std::string store = make_store_with({content(1), content(2)});
  const std::string data = file("data", content(1));
  const auto count = [this] {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  };
  const auto before = count();
  for (const int signal : {SIGKILL, SIGINT}) {
    for (unsigned nth = 1; cut_off({"restore", store, "v2", data}, nth, signal);
         nth += step_of(signal)) {
      SCOPED_TRACE("signal " + std::to_string(signal) + " at call " + std::to_string(nth));
      EXPECT_TRUE(file_is(data, 1) || file_is(data, 2));
      must({"restore", store, "v1", data});
      EXPECT_TRUE(file_is(data, 1));
      EXPECT_EQ(before, count());
      if (HasFailure()) return;
    }
    must({"restore", store, "v1", data});
  }
}

}  // namespace
}  // namespace vellum::cli_test
