// Each test is a failure that was seen in an existing store. docs/durability.md lists them all,
// with those that other files test. "Privateer" is github.com/LLNL/Privateer at dcb5a80, by its
// source.
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>

#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

namespace fs = std::filesystem;

class KnownFailures : public StoreTest {
 protected:
  // Bytes that do not compress, all over the region.
  static void fill(const Region& region, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::uint64_t at = 0; at < region.size_bytes(); at += 8)
      word_at(region, at) = random() | 1;
  }

  static std::string pack_of(const std::string& store) {
    for (const auto& entry : fs::recursive_directory_iterator(store)) {
      if (entry.path().extension() == ".pack") return entry.path();
    }
    throw std::runtime_error("no pack in " + store);
  }
};

// Privateer writes a version's block list up to the highest block that this process has touched; a
// snapshot after reopening ends there, and is empty when nothing was touched. (update_metadata)
TEST_P(KnownFailures, ASnapshotAfterReopeningHasUntouchedPages) {
  Store store = create();
  Region region = store.create_region("main", 4 * kMiB, options());
  fill(region, 1);
  region.commit();
  auto expected = content_of(region);
  region.close();
  region = store.open_region("main", options());
  region.snapshot("untouched");
  word_at(region, 5 * kPage) = 42;
  region.snapshot("one-page-touched");
  region.close();
  Store again = Store::open(path());
  EXPECT_TRUE(content_of(again.open_version("untouched", options())) == expected);
  std::memcpy(expected.data() + 5 * kPage, "\x2a\0\0\0\0\0\0", 8);
  EXPECT_TRUE(content_of(again.open_version("one-page-touched", options())) == expected);
  EXPECT_TRUE(content_of(again.open_region("main", options())) == expected);
}

// Privateer compares the result of pread(2) with -1 only. It shows zeros for a file that became
// shorter, and checks nothing that it read.
class LostBlock : public KnownFailures {
 protected:
  void SetUp() override {
    KnownFailures::SetUp();
    if (IsSkipped()) return;
    Store store = create();
    Region region = store.create_region("main", 4 * kMiB, options());
    fill(region, 1);
    region.snapshot("s");
  }

  // Opens the version, has the block lost, and touches every page.
  void expect_no_zeros(const std::function<void(const std::string&)>& lose) const {
    const auto end = run_child([&] {
      const Region version = Store::open(path()).open_version("s", options());
      lose(pack_of(path()));
      try {
        version.prefetch(version.whole());
        require(false, "prefetch() says what is corrupted");
      } catch (const Error& error) {
        require(error.code() == Errc::corrupted, error.what());
      }
      std::uint64_t zeros = 0;
      for (std::uint64_t at = 0; at < version.size_bytes(); at += 8) {
        zeros += word_at(version, at) == 0;
      }
      require(false, "all of it was read, with " + std::to_string(zeros) + " zeros");
    });
    EXPECT_CHILD_SIGNAL(end, SIGBUS);
  }
};

TEST_P(LostBlock, ATruncatedFileIsNotReadAsZeros) {
  expect_no_zeros([](const std::string& pack) { fs::resize_file(pack, fs::file_size(pack) / 2); });
}

// A file system that has lost unsynced data keeps the size, and reads zeros.
TEST_P(LostBlock, AZeroedBlockIsNotReadAsZeros) {
  expect_no_zeros([](const std::string& pack) {
    std::fstream file(pack, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kMiB));
    const std::string zeros(300'000, '\0');
    file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
    require(file.good(), "the pack is written");
  });
}

TEST_P(LostBlock, AMissingFileIsNotReadAsZeros) {
  const std::string pack = pack_of(path());
  fs::remove(pack);
  const auto open_and_read = [&] {
    const Region version = Store::open(path()).open_version("s", options());
    version.prefetch(version.whole());
  };
  expect_error(Errc::corrupted, {fs::path(pack).filename()}, open_and_read);
}

// Privateer's read-only open opens files read-only; but closing writes the version's block list
// again (close, msync, update_metadata), up to the last block that the reader touched.
class ReadOnly : public KnownFailures {
 protected:
  // Snapshots, a second branch, commits that are only in a journal, and leftovers of a killed
  // process in tmp: everything that an opening could repair.
  void SetUp() override {
    KnownFailures::SetUp();
    if (IsSkipped()) return;
    const auto end = run_child([&] {
      Store store = Store::create(path());
      Region region = store.create_region("main", kMiB, options());
      fill(region, 1);
      region.snapshot("first");
      word_at(region, 0) = 2;
      region.snapshot("second");
      store.create_branch("side", "first");
      word_at(region, 8) = 2;
      region.commit();
      std::ofstream(path() + "/tmp/left-over") << "by a crash";
      _exit(0);  // without closing
    });
    ASSERT_TRUE(end.exited_with(0)) << testing::PrintToString(end);
  }

  // Where everybody can get to, which a temporary directory may not be.
  std::string path() const { return memory_ / "store"; }

  // The calls of a reader.
  static void use(const std::string& path, const RegionOptions& options) {
    Store store = Store::open(path);
    for (const auto& info : store.versions()) {
      const Region version = store.open_version(info.name, options);
      version.prefetch({0, kMiB / 2});
      require(content_of(version) == content_of(store, info.name), "both ways of reading agree");
    }
    require(word_at(store.open_version("main", options), 8) == 2, "the journal's commit is seen");
    require(store.version("second").name == "second" && store.contains("side"), "names");
    require(store.diff("first", "second", nullptr).pages_different == 1, "diff");
    require(store.stat().snapshots == 2, "stat");
    require(store.verify({.read_data = true}).damages.empty(), "verify");
    require(store.verify().damages.empty(), "verify");
  }

  struct FileState {
    std::string content;
    struct stat status{};
    bool operator==(const FileState& other) const {
      const auto same = [](const timespec& a, const timespec& b) {
        return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
      };
      return content == other.content && status.st_ino == other.status.st_ino &&
             status.st_size == other.status.st_size && status.st_mode == other.status.st_mode &&
             status.st_blocks == other.status.st_blocks &&
             same(status.st_mtim, other.status.st_mtim) &&
             same(status.st_ctim, other.status.st_ctim);
    }
  };

  std::map<std::string, FileState> files() const {
    std::map<std::string, FileState> out;
    const auto add = [&](const fs::path& at) {
      FileState& state = out[at];
      stat(at.c_str(), &state.status);
      std::ifstream file(at, std::ios::binary);
      if (S_ISREG(state.status.st_mode)) state.content.assign(std::istreambuf_iterator(file), {});
    };
    add(path());
    for (const auto& entry : fs::recursive_directory_iterator(path())) add(entry.path());
    return out;
  }

  void allow_reading_only(bool only) const {
    for (const auto& [name, state] : files()) {
      const mode_t search = S_ISDIR(state.status.st_mode) ? 0111 : 0;
      chmod(name.c_str(), (only ? 0444 : 0644) | search);
    }
    chmod(memory_.path().c_str(), 0755);
  }

 private:
  const TempDirectory memory_{memory_directory()};
};

TEST_P(ReadOnly, ReadingChangesNoFile) {
  const auto before = files();
  ASSERT_GT(before.size(), 8u);
  usleep(20'000);  // the clock of time stamps advances
  use(path(), options());
  const auto after = files();
  EXPECT_EQ(after.size(), before.size());
  for (const auto& [name, state] : before) {
    EXPECT_TRUE(after.contains(name) && after.at(name) == state) << name << " has changed";
  }
}

// The files are not even opened for writing, which would leave no trace.
TEST_P(ReadOnly, ReadingOpensNoFileForWriting) {
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  ASSERT_GE(watch, 0);
  for (const auto& [name, state] : files()) {
    if (!S_ISDIR(state.status.st_mode)) continue;
    const std::uint32_t events = IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE |
                                 IN_MOVED_FROM | IN_MOVED_TO;
    ASSERT_GE(inotify_add_watch(watch, name.c_str(), events), 0);
  }
  use(path(), options());
  alignas(inotify_event) char seen[4096];
  EXPECT_EQ(read(watch, seen, sizeof seen), -1) << "something was written in the store";
  EXPECT_EQ(errno, EAGAIN);
  Store::open(path()).open_region("main", options()).close();  // the watch works
  EXPECT_GT(read(watch, seen, sizeof seen), 0);
  close(watch);
}

// The reader has no permission to write there, so it cannot be root.
TEST_P(ReadOnly, ReadingNeedsNoPermissionToWrite) {
  allow_reading_only(true);
  constexpr int kNoEngine = 3, kNoWay = 4;
  const auto end = run_child([&] {
    if (getuid() == 0) {
      require(setgid(65534) == 0 && setuid(65534) == 0, "become nobody");
      prctl(PR_SET_DUMPABLE, 1);  // /proc/self stays readable
    }
    if (access(path().c_str(), R_OK | X_OK) != 0) _exit(kNoWay);
    require(access((path() + "/tmp").c_str(), W_OK) != 0, "the store cannot be written");
    try {
      use(path(), options());
    } catch (const Error& error) {
      if (error.code() == Errc::unsupported) _exit(kNoEngine);
      throw;
    }
    expect_error(Errc::io, {"main"},
                 [&] { (void)Store::open(path()).open_region("main", options()); });
    require(!testing::Test::HasFailure(), "writing is refused");
  });
  allow_reading_only(false);
  if (end.exited_with(kNoEngine)) GTEST_SKIP() << kNoUffd;
  if (end.exited_with(kNoWay)) GTEST_SKIP() << "user nobody cannot reach " << path();
  EXPECT_CHILD_EXIT(end, 0);
}

class Descriptors : public KnownFailures {
 protected:
  std::string path() const { return memory_ / "store"; }

  static std::size_t descriptors() {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
  }

 private:
  const TempDirectory memory_{memory_directory()};
};

// Privateer loses one in each msync(): it calls close(fd == -1), which closes descriptor 0 instead;
// afterwards it opens /dev/null where standard input was.
TEST_P(Descriptors, CommitsLeakNoDescriptors) {
  Store store = Store::create(path());
  Region region = store.create_region("main", kMiB, options());
  struct stat input_before{};
  struct stat input_after{};
  const int has_input = fstat(STDIN_FILENO, &input_before);
  std::size_t before = 0;
  const auto turns = static_cast<std::uint64_t>(rounds(2000, 300));
  for (std::uint64_t i = 0; i < turns; ++i) {
    const std::uint64_t at = i * 7 % 256 * kPage;
    word_at(region, at) = i + 1;
    region.commit();
    if (i % 10 == 0) {
      const std::string name = "s" + std::to_string(i);
      region.snapshot(name);
      EXPECT_EQ(word_at(store.open_version(name, options()), at), i + 1);
    }
    if (i % 50 == 0) {
      region.close();
      region = Store::open(path()).open_region("main", options());
    }
    if (i == 60) before = descriptors();  // what is opened once is open now
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(fstat(STDIN_FILENO, &input_after), has_input);
  EXPECT_EQ(input_after.st_ino, input_before.st_ino);
}

// This counts the descriptors of stores and regions that were closed, and of calls that failed.
TEST_P(Descriptors, ClosingARegionClosesItsDescriptors) {
  Store::create(path()).create_region("main", kMiB, options()).close();
  const auto use = [&] {
    Store store = Store::open(path());
    Region region = store.open_region("main", options());
    word_at(region, 0) += 1;
    region.commit();
    EXPECT_THROW((void)store.open_region("main", options()), Error);
    EXPECT_THROW((void)store.open_version("none", options()), Error);
    EXPECT_EQ(word_at(store.open_version("main", options()), 0), word_at(region, 0));
    EXPECT_TRUE(store.verify().damages.empty());
  };
  use();
  const std::size_t before = descriptors();
  for (int i = 0; i < rounds(300, 60); ++i) use();
  EXPECT_EQ(descriptors(), before);
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
}

// Privateer moves every loaded block to its address by mremap(2): one mapping per block, until the
// kernel's limit of 65,530, where its handler calls exit().
TEST_P(KnownFailures, MappingsDoNotGrowWithPages) {
  Store store = create();
  Region region = store.create_region("main", 128 * kMiB, options());
  const std::size_t limit = mappings() + 512;  // sanitizers add some
  for (std::uint64_t round = 1; round <= 4; ++round) {
    for (std::uint64_t page = 5 * round; page < 32'768; page += 24) {
      word_at(region, page * kPage) = round;
    }
    if (GetParam() == Engine::uffd) {
      EXPECT_LE(mappings(), limit);
    }
    EXPECT_GT(region.commit().pages_changed, 1000u);
    EXPECT_LE(mappings(), limit) << "after commit " << round;
  }
}

// NoTsan: its runtime needs mappings of its own, and does not survive being refused one.
TEST_P(KnownFailures, MorePagesThanMappingsAreCommitted_NoTsan) {
  if (kTsan) GTEST_SKIP() << "the runtime does not survive the mapping limit";
  constexpr std::uint64_t kIslands = 40'000;  // two mappings each, where each has its own
  constexpr std::uint64_t kStride = 16 * kPage;
  const TempDirectory fast(memory_directory());  // ext4 zeroes the surroundings of every island
  Store store = Store::create(fast / "store");
  RegionOptions large = options();
  large.capacity_bytes = kIslands * kStride;
  Region region = store.create_region("main", large.capacity_bytes, large);
  for (std::uint64_t i = 0; i < kIslands; ++i) word_at(region, i * kStride + 8) = i + 1;
  region.commit();
  for (std::uint64_t i = 0; i < kIslands; ++i) word_at(region, i * kStride + 16) = i + 2;
  region.commit();
  region.close();
  region = store.open_region("main", large);
  for (std::uint64_t i = 0; i < kIslands; ++i) {
    ASSERT_EQ(word_at(region, i * kStride + 8), i + 1);
    ASSERT_EQ(word_at(region, i * kStride + 16), i + 2);
  }
}

// Privateer's handler calls exit(-1) for every fault outside its regions: no signal, no core, no
// handler of the program's own; and its destructors run, which write to the store.
constexpr std::uintptr_t kNull = 0x18;  // a member of a null object

void report_and_die(int, siginfo_t* info, void*) {
  char text[64];
  const int length = std::snprintf(text, sizeof text, "crash at %p\n", info->si_addr);
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  signal(SIGSEGV, SIG_DFL);  // the access faults again
}

const ChildProgram kNullDereference("null dereference", [](const auto& arguments) {
  signal(SIGSEGV, SIG_DFL);
  if (arguments.at(2) == "own handler") {
    struct sigaction action{};
    action.sa_sigaction = report_and_die;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
  }
  RegionOptions options;
  options.engine = engine_named(arguments.at(1));
  options.capacity_bytes = 64 * kMiB;
  Region region = Store::open(arguments.at(0)).open_region("main", options);
  word_at(region, 0) += 1;
  require(chdir(arguments.at(3).c_str()) == 0, "a place for the core");
  rlimit cores{};
  getrlimit(RLIMIT_CORE, &cores);
  cores.rlim_cur = std::min<rlim_t>(cores.rlim_max, 1u << 30);
  if (!kSanitizer) setrlimit(RLIMIT_CORE, &cores);
  require(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0, "the parent looks on");
  // Hidden from the compiler, which removes undefined accesses.
  volatile std::uintptr_t address = kNull;
  *reinterpret_cast<volatile std::uint64_t*>(address) = 1;
});

class NullDereference : public KnownFailures {
 protected:
  struct End {
    int status = 0;
    siginfo_t last_fault{};  // of the last SIGSEGV that came to the process
    std::string standard_error;
  };

  End run(const std::string& handler) const {
    create().create_region("main", kMiB, options()).close();
    Child child = start_program("null dereference",
                                {path(), engine_name(GetParam()), handler, directory_.path()});
    End end;
    while (waitpid(child.pid(), &end.status, 0) == child.pid() && WIFSTOPPED(end.status)) {
      const int stop = WSTOPSIG(end.status);
      if (stop == SIGSEGV) ptrace(PTRACE_GETSIGINFO, child.pid(), nullptr, &end.last_fault);
      ptrace(PTRACE_CONT, child.pid(), nullptr, static_cast<long>(stop));
    }
    end.standard_error = child.wait().standard_error;
    return end;
  }

  // A core is written here, and the limit allows it.
  static bool leaves_cores() {
    std::string pattern;
    std::ifstream("/proc/sys/kernel/core_pattern") >> pattern;
    rlimit cores{};
    getrlimit(RLIMIT_CORE, &cores);
    return !kSanitizer && pattern == "core" && cores.rlim_max >= 1u << 30;
  }

  void expect_own_sigsegv(const End& end) const {
    ASSERT_TRUE(WIFSIGNALED(end.status)) << end.status << end.standard_error;
    EXPECT_EQ(WTERMSIG(end.status), SIGSEGV);
    EXPECT_EQ(end.last_fault.si_code, SEGV_MAPERR);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(end.last_fault.si_addr), kNull);
    if (leaves_cores()) {
      EXPECT_TRUE(WCOREDUMP(end.status)) << "no core";
    }
  }
};

TEST_P(NullDereference, ANullDereferenceDiesBySigsegv) { expect_own_sigsegv(run("no handler")); }

TEST_P(NullDereference, ANullDereferenceReachesTheProgramsHandler) {
  const End end = run("own handler");
  EXPECT_NE(end.standard_error.find("crash at 0x18\n"), std::string::npos) << end.standard_error;
  expect_own_sigsegv(end);
}

VELLUM_BOTH_ENGINES(KnownFailures);
VELLUM_BOTH_ENGINES(LostBlock);
VELLUM_BOTH_ENGINES(ReadOnly);
VELLUM_BOTH_ENGINES(Descriptors);
VELLUM_BOTH_ENGINES(NullDereference);

}  // namespace
}  // namespace vellum::test
