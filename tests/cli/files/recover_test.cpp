// vellum recover applies the commits of a killed program to its file.
#include <unistd.h>
#include <vellum/msync.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class Recover : public CliTest {
 protected:
  std::string target() const { return path("file"); }
  // A program commits one text, stores another, and dies.
  void leave_a_journal(int commits = 1) const {
    std::ofstream(target()) << std::string(10000, '.');
    const pid_t child = fork();
    if (child == 0) {
      const int fd = open(target().c_str(), O_RDWR);
      void* at = vellum_mmap(nullptr, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      auto* text = static_cast<char*>(at);
      for (int i = 0; i < commits; ++i) {
        std::memcpy(text + 5000 + i * 1000, "committed", 9);
        if (vellum_msync(at, 10000, MS_SYNC) != 0) _exit(1);
      }
      std::memcpy(text + 6000, "not", 3);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(0, status);
  }
};

TEST_F(Recover, TheLastCommitIsAppliedToTheFile) {
  leave_a_journal();
  EXPECT_EQ(std::string(10000, '.'), read_file(target()));
  const auto report = must({"recover", target(), "--json"}).json();
  EXPECT_EQ(true, report.at("journal"));
  EXPECT_EQ(1, report.at("commits"));
  EXPECT_EQ(std::string(5000, '.') + "committed" + std::string(4991, '.'), read_file(target()));
  EXPECT_FALSE(std::filesystem::exists(target() + ".vellum-journal"));
  EXPECT_NE(must({"recover", target()}).out.find("nothing to recover"), std::string::npos);
}

TEST_F(Recover, AJournalOfAnotherFileIsRefusedUnlessBothWereCopied) {
  leave_a_journal();
  const std::string copy = path("copy");
  for (const char* suffix : {"", ".vellum-journal"})
    std::filesystem::copy_file(target() + suffix, copy + suffix);
  const auto refused = run({"recover", copy});
  EXPECT_EQ(11, refused.status);
  EXPECT_NE(refused.err.find("--copied"), std::string::npos) << refused.err;
  EXPECT_EQ(std::string(10000, '.'), read_file(copy));
  must({"recover", copy, "--copied"});
  EXPECT_EQ("committed", read_file(copy).substr(5000, 9));
}

// Three commits, the second corrupted: the first is applied on request, and no data is lost.
TEST_F(Recover, CommitsBeforeTheDamageAreAppliedOnRequest) {
  leave_a_journal(3);
  const std::string journal = target() + ".vellum-journal";
  std::string bytes = read_file(journal);
  const std::size_t second = bytes.find("committed", bytes.find("committed") + 1);
  ASSERT_NE(second, std::string::npos);
  bytes[second] = 'X';
  write_file(journal, bytes);

  const Result refused = run({"recover", target()});
  EXPECT_EQ(11, refused.status);
  EXPECT_NE(refused.err.find("commit 2 of the journal is corrupted, 3 were durable"),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("vellum recover --corrupted"), std::string::npos) << refused.err;
  EXPECT_EQ(std::string(10000, '.'), read_file(target()));
  EXPECT_EQ(bytes, read_file(journal));

  write_file(journal + ".corrupted", "an earlier one");
  const Result asked = run({"recover", target(), "--corrupted", "--json"});
  EXPECT_EQ(11, asked.status);
  const auto report = asked.json();
  EXPECT_EQ(1, report.at("commits"));
  EXPECT_EQ(2, report.at("commits_lost"));
  EXPECT_EQ(journal + ".corrupted.2", report.at("kept_as").get<std::string>());
  EXPECT_EQ("corrupted", report.at("error").at("code"));
  EXPECT_EQ(std::string(5000, '.') + "committed" + std::string(4991, '.'), read_file(target()));
  EXPECT_EQ(bytes, read_file(journal + ".corrupted.2"));
  EXPECT_EQ("an earlier one", read_file(journal + ".corrupted"));
  EXPECT_FALSE(std::filesystem::exists(journal));
  EXPECT_NE(must({"recover", target()}).out.find("nothing to recover"), std::string::npos);
}

// A journal without a header has no usable content: the file is not changed, and the journal is
// renamed.
TEST_F(Recover, AJournalWithoutAHeaderIsRenamed) {
  leave_a_journal();
  const std::string journal = target() + ".vellum-journal";
  const std::string bytes = std::string(8192, 'x') + read_file(journal).substr(8192);
  write_file(journal, bytes);
  EXPECT_EQ(11, run({"recover", target()}).status);
  const Result asked = run({"recover", target(), "--corrupted"});
  EXPECT_EQ(11, asked.status);
  EXPECT_NE(asked.out.find("kept as " + journal + ".corrupted"), std::string::npos) << asked.out;
  EXPECT_NE(asked.err.find("is not the journal of a file"), std::string::npos) << asked.err;
  EXPECT_EQ(std::string(10000, '.'), read_file(target()));
  EXPECT_EQ(bytes, read_file(journal + ".corrupted"));
}

TEST_F(Recover, TheOptionForCorruptedJournalsHasNoEffectOnAnIntactOne) {
  leave_a_journal();
  const auto report = must({"recover", target(), "--corrupted", "--json"}).json();
  EXPECT_EQ(1, report.at("commits"));
  EXPECT_TRUE(report.at("kept_as").is_null());
  EXPECT_FALSE(std::filesystem::exists(target() + ".vellum-journal.corrupted"));
}

TEST_F(Recover, APathThatIsNotAFileIsRefusedByName) {
  const auto missing = run({"recover", path("none")});
  EXPECT_EQ(3, missing.status);
  EXPECT_NE(missing.err.find("/none"), std::string::npos) << missing.err;
  EXPECT_NE(0, run({"recover", directory_.string()}).status);
}

}  // namespace
}  // namespace vellum::cli_test
