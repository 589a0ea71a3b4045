// Atomic files, with each tracker and each medium: after close() and after a crash, the plain file
// holds the committed content and nothing else.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vellum/cards.h>
#include <vellum/atomic_file.hpp>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/sanitizers.hpp"

namespace vellum {
namespace {

namespace fs = std::filesystem;

struct Mode {
  const char* name;
  Tracker tracker;
  Medium medium;
};

// Names the code of the Error that `call` throws; ok: none.
template <typename Call>
Errc code_of(const Call& call, std::string* message = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return Errc::ok;
}

class AtomicFileTest : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    // Emulated persistent memory has to be tmpfs, where stores reach "the medium" at once.
    std::string pattern = "/dev/shm/vellum-test-XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(pattern.data()));
    directory_ = pattern;
    setenv("PMEM_IS_PMEM_FORCE", "1", 1);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name = "file") const { return directory_ / name; }
  AtomicFileOptions options() const {
    AtomicFileOptions out;
    out.tracker = GetParam().tracker;
    out.medium = GetParam().medium;
    out.journal_bytes = 256u << 10;
    return out;
  }
  bool marks() const { return GetParam().tracker != Tracker::pages; }

  // Stores as instrumented code does.
  void store(AtomicFile& file, std::size_t offset, const std::string& text) const {
    char* at = static_cast<char*>(file.data()) + offset;
    std::memcpy(at, text.data(), text.size());
    if (marks()) vellum_mark(at, text.size());
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // The file after a crash now and its recovery.
  std::string after_crash() const {
    const std::string copy = path("copy");
    for (const char* suffix : {"", ".vellum-journal"})
      fs::copy_file(path() + suffix, copy + suffix, fs::copy_options::overwrite_existing);
    AtomicFile::recover(copy, {.copied = true});
    EXPECT_FALSE(fs::exists(copy + ".vellum-journal"));
    return content(copy);
  }

  fs::path directory_;
};

// While it exists, this process writes no file at or after that byte.
class NoBytesBehind {
 public:
  explicit NoBytesBehind(std::uint64_t byte) : signal_(::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit less{byte, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &less);
  }
  ~NoBytesBehind() {
    setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }
  NoBytesBehind(const NoBytesBehind&) = delete;
  NoBytesBehind& operator=(const NoBytesBehind&) = delete;

 private:
  sighandler_t signal_;
  rlimit before_{};
};

std::vector<Mode> modes() {
  std::vector<Mode> out = {
      {"PagesOnDisk", Tracker::pages, Medium::disk},
      {"PagesInPersistentMemory", Tracker::pages, Medium::persistent_memory},
  };
  if (test::kTsan) return out;  // its memory is where the card table has to be
  out.push_back({"CardsOnDisk", Tracker::cards, Medium::disk});
  out.push_back({"CardsInPersistentMemory", Tracker::cards, Medium::persistent_memory});
  out.push_back({"BothOnDisk", Tracker::cards_and_pages, Medium::disk});
  return out;
}
INSTANTIATE_TEST_SUITE_P(Modes, AtomicFileTest, ::testing::ValuesIn(modes()),
                         [](const auto& info) { return info.param.name; });

TEST_P(AtomicFileTest, CommittedStoresAreInTheFileAndOthersAreNot) {
  auto file = AtomicFile::open_or_create(path(), 40000, options());
  EXPECT_EQ(GetParam().medium, file.medium());
  store(file, 100, "first");
  store(file, 39990, "the end");
  const AtomicCommitReport report = file.commit();
  EXPECT_EQ(1U, report.sequence);
  EXPECT_EQ(2U, report.pages_stored);
  store(file, 200, "not committed");
  EXPECT_EQ(content(path()), std::string(40000, '\0')) << "the file itself waits";
  const std::string crashed = after_crash();
  ASSERT_EQ(40000U, crashed.size());
  EXPECT_EQ("first", crashed.substr(100, 5));
  EXPECT_EQ("the end", crashed.substr(39990, 7));
  EXPECT_EQ('\0', crashed[200]);
  file.close();
  EXPECT_EQ(crashed, content(path()));
  EXPECT_FALSE(fs::exists(path() + ".vellum-journal"));
}

// The same stores to a plain buffer give the expected content of each commit.
TEST_P(AtomicFileTest, ACrashAfterACommitKeepsThatCommit) {
  constexpr std::size_t kBytes = 64 * 4096 + 777;
  auto file = AtomicFile::open_or_create(path(), kBytes, options());
  std::string model(kBytes, '\0');
  std::mt19937 random(11);  // NOLINT: the same run each time
  bool checkpointed = false;
  for (int round = 0; round < 120; ++round) {
    for (int i = 0; i < 40; ++i) {
      const std::size_t offset = random() % (kBytes - 300);
      const std::string text(1 + random() % 300, static_cast<char>('a' + random() % 26));
      store(file, offset, text);
      model.replace(offset, text.size(), text);
    }
    checkpointed |= file.commit().checkpointed;
    if (round % 10 == 0) {
      ASSERT_EQ(model, after_crash()) << round;
    }
  }
  EXPECT_TRUE(checkpointed) << "the journal was to be filled more than once";
  file.close();
  EXPECT_EQ(model, content(path()));
}

TEST_P(AtomicFileTest, OpensAfterAProcessWasKilled) {
  const pid_t child = fork();
  if (child == 0) {
    auto file = AtomicFile::open_or_create(path(), 8192, options());
    store(file, 5000, "kept");
    file.commit();
    store(file, 6000, "lost");
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  ASSERT_EQ(0, status);
  ASSERT_TRUE(fs::exists(path() + ".vellum-journal"));
  auto file = AtomicFile::open(path(), options());
  EXPECT_STREQ("kept", static_cast<char*>(file.data()) + 5000);
  EXPECT_STREQ("", static_cast<char*>(file.data()) + 6000);
  store(file, 6000, "again");
  file.commit();
  EXPECT_EQ("again", after_crash().substr(6000, 5));
}

TEST_P(AtomicFileTest, AChildOfForkMayDestroyAFileThatWasClosedBefore) {
  std::optional<AtomicFile> file = AtomicFile::open_or_create(path(), 8192, options());
  file->close();
  const pid_t child = fork();
  if (child == 0) {
    file.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
}

TEST_P(AtomicFileTest, AFileGrowsInPlaceAndKeepsItsStores) {
  auto file = AtomicFile::open_or_create(path(), 5000, options());
  void* const before = file.data();
  store(file, 4990, "old");
  file.resize(100000);
  EXPECT_EQ(before, file.data());
  store(file, 99990, "new");
  file.commit();
  const std::string crashed = after_crash();
  ASSERT_EQ(100000U, crashed.size());
  EXPECT_EQ("old", crashed.substr(4990, 3));
  EXPECT_EQ("new", crashed.substr(99990, 3));
  EXPECT_EQ(Errc::invalid_argument, code_of([&] { file.resize(1ULL << 50); }));
}

TEST_P(AtomicFileTest, AFileThatIsCutAndExtendedIsZeroPastTheCut) {
  auto file = AtomicFile::open_or_create(path(), 20000, options());
  store(file, 4990, "before and behind");
  store(file, 15000, "far behind");
  file.commit();
  store(file, 100, "not committed");
  store(file, 15000, "nor this");
  file.resize(5000);
  EXPECT_EQ(5000U, file.size_bytes());
  EXPECT_EQ("before and", after_crash().substr(4990));
  EXPECT_EQ('\0', after_crash()[100]);
  store(file, 4000, "x");
  file.commit();
  ASSERT_EQ(5000U, after_crash().size()) << "marks behind the cut are of no file";
  EXPECT_EQ('x', after_crash()[4000]);
  file.resize(20000);
  EXPECT_EQ('\0', static_cast<char*>(file.data())[5000]);
  EXPECT_EQ('\0', static_cast<char*>(file.data())[15000]);
  store(file, 18000, "behind");
  file.commit();
  const std::string crashed = after_crash();
  ASSERT_EQ(20000U, crashed.size());
  EXPECT_EQ("not committed", crashed.substr(100, 13));
  EXPECT_EQ("before and" + std::string(13000, '\0') + "behind", crashed.substr(4990, 13016));
}

// Whether a crash has left the file itself cut or not, longer or not, makes no difference.
TEST_P(AtomicFileTest, TheJournalHasTheLengthOfTheFile) {
  auto file = AtomicFile::open_or_create(path(), 50000, options());
  store(file, 40000, "of before the cut");
  store(file, 20000, "in the line of the cut");
  file.commit();
  file.checkpoint();
  const auto keep = [&](const char* name) {
    fs::copy_file(path(), path(name), fs::copy_options::overwrite_existing);
  };
  keep("uncut");
  file.resize(20005);
  keep("cut");
  file.resize(60000);
  keep("longer");
  store(file, 55000, "after");
  file.commit();
  std::string expected(60000, '\0');
  expected.replace(20000, 5, "in th").replace(55000, 5, "after");
  for (const char* name : {"uncut", "cut", "longer"}) {
    fs::copy_file(path() + ".vellum-journal", path(name) + ".vellum-journal");
    AtomicFile::recover(path(name), {.copied = true});
    EXPECT_TRUE(expected == content(path(name))) << name;
  }
  file.checkpoint();
  EXPECT_TRUE(expected == content(path()));
  file.resize(70000);
  file.commit();
  EXPECT_EQ(70000U, after_crash().size());
}

TEST_P(AtomicFileTest, CommitsMoreThanTheJournalHolds) {
  constexpr std::size_t kBytes = 2u << 20;
  auto file = AtomicFile::open_or_create(path(), kBytes, options());
  store(file, 10, "small");
  file.commit();
  const std::string text(kBytes, 'x');
  store(file, 0, text);
  file.commit();
  EXPECT_EQ(text, after_crash());
  store(file, 7, "behind it");
  file.commit();
  EXPECT_EQ("xbehind itx", after_crash().substr(6, 11));
}

TEST_P(AtomicFileTest, NothingToCommitWritesNothing) {
  auto file = AtomicFile::open_or_create(path(), 8192, options());
  EXPECT_EQ(0U, file.commit().bytes_written);
  store(file, 1, "a");
  file.commit();
  const AtomicCommitReport report = file.commit();
  EXPECT_EQ(0U, report.bytes_written);
  EXPECT_EQ(1U, report.sequence);
}

TEST_P(AtomicFileTest, StoresPastTheEndOnTheLastPageDoNotCount) {
  auto file = AtomicFile::open_or_create(path(), 4096 + 10, options());
  store(file, 4096 + 5, "over the end");
  store(file, 4096 + 500, "far over it");
  file.commit();
  file.close();
  const std::string now = content(path());
  ASSERT_EQ(4106U, now.size());
  EXPECT_EQ("over ", now.substr(4101));
}

// Only system calls on the journal can fail in this way: in persistent memory it is mapped.
TEST_P(AtomicFileTest, StoresOfAFailedCommitAreInTheNext) {
  if (GetParam().medium != Medium::disk) GTEST_SKIP() << "stores cannot fail";
  AtomicFile file = AtomicFile::open_or_create(path(), 10000, options());
  store(file, 5000, "stored");
  {
    const NoBytesBehind limit(4096);
    EXPECT_NE(Errc::ok, code_of([&] { file.commit(); }));
  }
  EXPECT_EQ(std::string(10000, '\0'), after_crash());
  file.commit();
  EXPECT_EQ("stored", after_crash().substr(5000, 6));
}

// The cut is in the journal first.
TEST_P(AtomicFileTest, AFileWhoseCutCannotBeRecordedIsNotCut) {
  if (GetParam().medium != Medium::disk) GTEST_SKIP() << "stores cannot fail";
  AtomicFile file = AtomicFile::open_or_create(path(), 10000, options());
  store(file, 5000, "stored");
  file.commit();
  {
    const NoBytesBehind limit(4096);
    EXPECT_NE(Errc::ok, code_of([&] { file.resize(100); }));
  }
  EXPECT_EQ(10000U, file.size_bytes());
  EXPECT_EQ(10000U, fs::file_size(path()));
  EXPECT_EQ("stored", after_crash().substr(5000, 6));
}

TEST_P(AtomicFileTest, OneOpenerAtATime) {
  auto file = AtomicFile::open_or_create(path(), 4096, options());
  EXPECT_EQ(Errc::busy, code_of([&] { (void)AtomicFile::open(path(), options()); }));
  EXPECT_EQ(Errc::busy, code_of([&] { AtomicFile::recover(path()); }));
  file.close();
  EXPECT_EQ(Errc::ok, code_of([&] { (void)AtomicFile::open(path(), options()); }));
  EXPECT_EQ(Errc::not_found, code_of([&] { (void)AtomicFile::open(path("none"), options()); }));
  EXPECT_EQ(Errc::invalid_argument, code_of([&] { AtomicFile().commit(); }));
}

TEST_P(AtomicFileTest, JournalOfAnotherFileIsRefused) {
  auto file = AtomicFile::open_or_create(path(), 4096, options());
  store(file, 0, "content");
  file.commit();
  fs::copy_file(path() + ".vellum-journal", path("other") + ".vellum-journal");
  std::ofstream(path("other")) << std::string(4096, 'o');
  std::string message;
  EXPECT_EQ(Errc::corrupted,
            code_of([&] { (void)AtomicFile::open(path("other"), options()); }, &message));
  EXPECT_NE(std::string::npos, message.find("other.vellum-journal")) << message;
  EXPECT_EQ(std::string(4096, 'o'), content(path("other")));
}

TEST_P(AtomicFileTest, AFileThatIsNoJournalIsRefusedByName) {
  std::ofstream(path()) << "content";
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{20000}}) {
    std::ofstream(path() + ".vellum-journal") << std::string(bytes, '?');
    std::string message;
    EXPECT_EQ(Errc::corrupted,
              code_of([&] { (void)AtomicFile::open(path(), options()); }, &message));
    EXPECT_NE(std::string::npos, message.find("file.vellum-journal")) << message;
  }
  EXPECT_EQ("content", content(path()));
}

class MarksNoTsan : public AtomicFileTest {};
INSTANTIATE_TEST_SUITE_P(Disk, MarksNoTsan,
                         ::testing::Values(Mode{"Cards", Tracker::cards, Medium::disk}),
                         [](const auto& info) { return info.param.name; });

// Writers store during commits. In the end the commits together have taken every store.
TEST_P(MarksNoTsan, NoStoreOfOtherThreadsIsLost) {
  constexpr std::size_t kBytes = 64 * 4096;
  auto file = AtomicFile::open_or_create(path(), kBytes, options());
  auto* words = static_cast<std::uint64_t*>(file.data());
  std::atomic<bool> stop{false};
  const auto writer = [&](unsigned seed) {
    std::mt19937 random(seed);
    while (!stop.load(std::memory_order_relaxed)) {
      std::uint64_t* word = words + random() % (kBytes / 16) * 2 + seed;
      std::atomic_ref(*word).store(random(), std::memory_order_relaxed);
      vellum_mark(word, sizeof *word);
    }
  };
  std::thread one(writer, 0), two(writer, 1);
  for (int i = 0; i < 200; ++i) file.commit();
  stop = true;
  one.join();
  two.join();
  file.commit();
  const std::string now(static_cast<const char*>(file.data()), kBytes);
  EXPECT_TRUE(now == after_crash());
}

TEST_P(MarksNoTsan, VerificationNamesTheMissedStoresPage) {
  AtomicFileOptions verified = options();
  verified.verify_cards = true;
  auto file = AtomicFile::open_or_create(path(), 10 * 4096, verified);
  store(file, 3 * 4096, "marked");
  file.commit();
  static_cast<char*>(file.data())[7 * 4096 + 130] = 'm';
  store(file, 7 * 4096, "marked, in the same page");
  for (int i = 0; i < 2; ++i) {  // the second commit does not forget
    std::string message;
    EXPECT_EQ(Errc::corrupted, code_of([&] { file.commit(); }, &message));
    EXPECT_NE(std::string::npos, message.find("page 7 (offset 28800,")) << message;
  }
  vellum_mark(static_cast<char*>(file.data()) + 7 * 4096 + 130, 1);
  EXPECT_EQ(1U, file.commit().pages_stored);
  EXPECT_EQ('m', after_crash()[7 * 4096 + 130]);
}

TEST_P(MarksNoTsan, WithoutMarksOnlyThePageTrackerFindsAStore) {
  auto file = AtomicFile::open_or_create(path(), 4096, options());
  static_cast<char*>(file.data())[1] = 'x';
  EXPECT_EQ(0U, file.commit().cards_stored);
  file.close();
  AtomicFileOptions both = options();
  both.tracker = Tracker::cards_and_pages;
  auto again = AtomicFile::open(path(), both);
  static_cast<char*>(again.data())[1] = 'x';
  EXPECT_EQ(1U, again.commit().cards_stored);
}

}  // namespace
}  // namespace vellum
