// vellum run: many files at once.
#include <algorithm>

#include <sys/resource.h>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

using RunManyFilesNoSanitizer = CliTest;

std::string content_of(int number) {
  return std::string(5000, '\0') + "content of " + std::to_string(number);
}

// 10,000 must fit into the limits of a process: 65,530 mappings, and some GiB.
TEST_F(RunManyFilesNoSanitizer, ManyWritableFilesTakeFewResources) {
  constexpr int kFiles = 80;
  const Result result = run({"run", "--store", path("store"), "--file", path("file.*"), "--",
                             VELLUM_MANY_FILES, std::to_string(kFiles), path("file")});
  ASSERT_EQ(0, result.status) << result.err;
  for (int i = 0; i < kFiles; ++i)
    EXPECT_EQ(content_of(i), read_file(path("file." + std::to_string(i))));
  // The program's own, the image, the journal, and the image's touched ranges.
  const auto of_a_thousand = nlohmann::json::parse(result.out);
  EXPECT_LE(of_a_thousand["descriptors"], 4010);
  EXPECT_LE(of_a_thousand["mappings"], 5500);
  EXPECT_LE(of_a_thousand["resident_kib"], 256 * 1000);
}

// Usually 1,024; Vellum needs some of these for each file.
TEST_F(RunManyFilesNoSanitizer, TheProgramKeepsItsSoftLimitOfDescriptors) {
  constexpr int kFiles = 60;
  const Result result = run({"run", "--store", path("store"), "--file", path("file.*"), "--",
                             VELLUM_MANY_FILES, std::to_string(kFiles), path("file"), "soft"},
                            [] {
                              rlimit limit;
                              getrlimit(RLIMIT_NOFILE, &limit);
                              limit.rlim_cur = 160;
                              setrlimit(RLIMIT_NOFILE, &limit);
                            });
  EXPECT_EQ(0, result.status) << result.err;
}

// Files that were open before are still committed.
TEST_F(RunManyFilesNoSanitizer, TheHardLimitIsAnErrorOfOpenThatNamesFileAndLimit) {
  const Result result = run({"run", "--store", path("store"), "--file", path("file.*"), "--",
                             VELLUM_MANY_FILES, "100", path("file")},
                            [] {
                              const rlimit limit{100, 100};
                              setrlimit(RLIMIT_NOFILE, &limit);
                            });
  EXPECT_EQ(1, result.status) << result.err;
  int opened = 0;
  while (read_file(path("file." + std::to_string(opened))) == content_of(opened)) ++opened;
  EXPECT_GE(opened, 10);
  const std::string number = std::to_string(opened);
  EXPECT_NE(std::string::npos, result.err.find("open " + number + ": Too many open files"))
      << result.err;
  EXPECT_NE(std::string::npos,
            result.err.find(path("file." + number) + ": this process may have 100 descriptors"))
      << result.err;
  for (int i = 0; i < opened; ++i) {
    std::string branch = path("file." + std::to_string(i));
    std::replace(branch.begin(), branch.end(), '/', '+');
    EXPECT_EQ(content_of(i), must({"cat", path("store"), branch}).out);
  }
}

// The program then has another directory than `vellum run`.
TEST_F(RunManyFilesNoSanitizer, ARelativeStoreIsTheSameFromEveryDirectory) {
  const Result result = run_program(
      {"sh", "-c",
       "cd \"$1\" && mkdir subdirectory && \"$2\" run --store store --file data -- "
       "sh -c 'cd subdirectory && dd if=/dev/zero of=../data bs=100 count=1 conv=fsync'",
       "sh", path(""), VELLUM_CLI});
  EXPECT_EQ(0, result.status) << result.err;
  EXPECT_EQ(std::string(100, '\0'), read_file(path("data")));
  must({"export", path("store"), "main", path("exported")});
  EXPECT_EQ(read_file(path("data")), read_file(path("exported")));
}

}  // namespace
}  // namespace vellum::cli_test
