// The report of `vellum run`, and the proof that nothing bypasses it silently: programs that are
// started with another environment, statically linked ones, system calls that the C library does
// not make, and files that were never opened.
#include <sys/stat.h>

#include <cerrno>

#include <filesystem>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

namespace fs = std::filesystem;

class RunAroundNoSanitizer : public CliTest {
 protected:
  std::string store() const { return path("store"); }
  std::string data() const { return path("data"); }
  Arguments command(const Arguments& options, const std::string& file,
                    const Arguments& program) const {
    Arguments out = {"run", "--store", store(), "--file", file};
    out.insert(out.end(), options.begin(), options.end());
    out.emplace_back("--");
    out.insert(out.end(), program.begin(), program.end());
    return out;
  }
  // The object on the last line of standard output.
  nlohmann::json outcome(const std::string& file, const Arguments& program) const {
    last_ = run(command({"--json"}, file, program));
    const std::size_t end = last_.out.find_last_not_of('\n');
    const std::size_t line = last_.out.rfind('\n', end) + 1;
    if (last_.out.empty() || last_.out[line] != '{') {
      ADD_FAILURE() << last_.out << last_.err;
      return {{"commits", 0}, {"problems", nlohmann::json::array()}};
    }
    return nlohmann::json::parse(last_.out.substr(line));
  }
  nlohmann::json outcome(const Arguments& program) const { return outcome(data(), program); }
  static nlohmann::json problem(const std::string& file, const char* name) {
    return {{{"file", file}, {"problem", name}}};
  }
  void expect_head(const std::string& branch, const std::string& file) const {
    fs::remove(path("exported"));
    must({"export", store(), branch, path("exported")});
    EXPECT_TRUE(read_file(path("exported")) == read_file(file)) << file;
  }
  void start_anew() const {
    fs::remove_all(store());
    fs::remove(data());
  }
  mutable Result last_;
};

TEST_F(RunAroundNoSanitizer, TheSummaryIsOneLine) {
  const Arguments program = {VELLUM_FILE_CALLS, "hundred-commits", data()};
  const Result text = must(command({}, data(), program));
  EXPECT_NE(std::string::npos, text.err.find("vellum: 1 file, 101 commits in " + store() + "\n"))
      << text.err;
  EXPECT_EQ("", text.out);
  EXPECT_EQ("", must(command({"--quiet"}, data(), program)).err);
  const nlohmann::json object = outcome({VELLUM_FILE_CALLS, "killed", data()});
  EXPECT_EQ(1, object.at("files"));
  EXPECT_LE(1, object.at("commits"));
  EXPECT_EQ(128 + 9, object.at("program_status"));
  EXPECT_EQ(store(), object.at("store"));
  EXPECT_EQ(nlohmann::json::array(), object.at("problems"));
}

TEST_F(RunAroundNoSanitizer, TheLibraryIsLoadedWithAnyEnvironment) {
  for (const char* call : {"execve",
                           "other-preload",
                           "no-environment",
                           "execle",
                           "execvpe",
                           "fexecve",
                           "execveat",
                           "execveat-empty",
                           "posix_spawn",
                           "posix_spawnp",
                           "vfork",
                           "clearenv-execv",
                           "clearenv-execvp",
                           "clearenv-execl",
                           "clearenv-execlp",
                           "clearenv-system",
                           "clearenv-popen",
                           "clearenv-wordexp",
                           "system-without-environ",
                           "system-unset"}) {
    const auto said = outcome({VELLUM_STARTS, call, VELLUM_FILE_CALLS, "kept", data()});
    EXPECT_EQ(0, last_.status) << call << ": " << last_.err;
    EXPECT_LE(1, said.at("commits")) << call;
    EXPECT_EQ(nlohmann::json::array(), said.at("problems")) << call;
    ASSERT_TRUE(fs::exists(data())) << call;
    expect_head("main", data());
    start_anew();
  }
}

TEST_F(RunAroundNoSanitizer, TheLibraryIsLoadedByProgramsThatEnvStarts) {
  const std::string commands[] = {"env -i ", "env -u LD_PRELOAD ",
                                  "env -i PATH=/bin:/usr/bin sh -c "};
  for (const std::string& command : commands) {
    const std::string inner = VELLUM_FILE_CALLS " kept " + data();
    const bool shell = command.ends_with("-c ");
    const auto said = outcome({"sh", "-c", command + (shell ? "'" + inner + "; true'" : inner)});
    EXPECT_LE(1, said.at("commits")) << command << last_.err;
    EXPECT_EQ(nlohmann::json::array(), said.at("problems")) << command;
    start_anew();
  }
}

TEST_F(RunAroundNoSanitizer, AStaticProgramIsReportedAndItsWritesAreCommitted) {
  const std::string writes = VELLUM_STATIC_PROGRAM " " + data() + " static 3; true";
  for (const char* what : {"a new file", "a file that is known"}) {
    const auto said = outcome({"sh", "-c", writes + (*what == 'a' ? "" : what)});
    EXPECT_EQ(problem(data(), "changed_around"), said.at("problems")) << what;
    EXPECT_EQ("statically_linked", said.at("programs_around_vellum").at(0).at("kind"));
    EXPECT_NE(std::string::npos, last_.err.find(VELLUM_STATIC_PROGRAM " is statically linked"))
        << last_.err;
    EXPECT_NE(std::string::npos, last_.err.find(data() + ": changed around vellum")) << last_.err;
    expect_head("main", data());
    must({"run", "--store", store(), "--file", data(), "--", VELLUM_FILE_CALLS, "kept", data()});
  }
}

TEST_F(RunAroundNoSanitizer, EachWayToStartAStaticProgramIsReportedOnce) {
  for (const char* call : {"execve", "execle", "execvpe", "fexecve", "execveat", "execveat-empty",
                           "posix_spawn", "posix_spawnp", "vfork", "clearenv-system"}) {
    outcome({"sh", "-c",
             VELLUM_STARTS " " + std::string(call) + " " VELLUM_STATIC_PROGRAM " a b; " +
                 VELLUM_STARTS " " + call + " " VELLUM_STATIC_PROGRAM " a b"});
    const std::size_t output = last_.err.find(" is statically linked");
    ASSERT_NE(std::string::npos, output) << call << ": " << last_.err;
    EXPECT_EQ(std::string::npos, last_.err.find(" is statically linked", output + 1)) << last_.err;
  }
}

TEST_F(RunAroundNoSanitizer, CallsThatBypassTheCLibraryAreReported) {
  auto said = outcome({VELLUM_RAW_CALLS, data(), "raw"});
  EXPECT_EQ(0, last_.status) << last_.err;
  EXPECT_NE(std::string::npos, last_.err.find("is a Go program")) << last_.err;
  EXPECT_EQ(problem(data(), "changed_around"), said.at("problems"));
  expect_head("main", data());
  said = outcome({"sh", "-c", VELLUM_RAW_CALLS " " + data() + " again; true"});
  EXPECT_EQ(problem(data(), "changed_around"), said.at("problems"));
  EXPECT_EQ("go", said.at("programs_around_vellum").at(0).at("kind"));
  expect_head("main", data());
  start_anew();
  said = outcome({VELLUM_RAW_CALLS, data(), "past it", "opened by the C library"});
  EXPECT_EQ(problem(data(), "changed_around"), said.at("problems")) << last_.err;
  expect_head("main", data());
}

// The bytes are in the same place as without Vellum, and the run reports that not every flush is a
// version.
TEST_F(RunAroundNoSanitizer, AsynchronousWritesOfTheKernelAreReported) {
  bool any = false;
  for (const char* how : {"io_uring", "linux-aio"}) {
    const Arguments program = {VELLUM_KERNEL_WRITERS, how, data()};
    const Result plain = run_program(program);
    if (plain.status == 77) continue;  // the kernel, or a container's rules, refuse it
    any = true;
    ASSERT_EQ(0, plain.status) << how;
    const std::string content = read_file(data());
    start_anew();
    const auto said = outcome(program);
    EXPECT_EQ(0, last_.status) << how << last_.err;
    EXPECT_EQ(problem(data(), "changed_around"), said.at("problems")) << how << last_.err;
    EXPECT_NE(std::string::npos, last_.err.find(data() + ": changed around vellum")) << last_.err;
    EXPECT_TRUE(content == read_file(data())) << how;
    expect_head("main", data());
    start_anew();
    EXPECT_EQ(13, run(command({"--strict"}, data(), program)).status) << how;
    start_anew();
  }
  if (!any) GTEST_SKIP() << "neither io_uring nor Linux AIO here";
}

// Programs that request it through the C library, or through its own libraries, use other calls
// instead.
TEST_F(RunAroundNoSanitizer, AsynchronousWritesOfTheKernelAreRefused) {
  const Result asked = run(command({}, data(), {VELLUM_KERNEL_WRITERS, "asks", data()}));
  EXPECT_EQ(77, asked.status) << asked.err;
  for (const char* name : {"io_setup", "io_uring_queue_init_params"}) {
    const std::string program = "import ctypes, sys; sys.exit(-getattr(ctypes.CDLL(None), '" +
                                std::string(name) + "')(4, None))";
    EXPECT_EQ(EPERM, run(command({}, data(), {"python3", "-c", program})).status) << name;
  }
}

TEST_F(RunAroundNoSanitizer, NewFilesOfAPatternAreFound) {
  fs::create_directory(path("d"));
  write_file(path("d/old.db"), "is not touched");
  write_file(path("d/changed.db"), "is");
  const std::string writes = VELLUM_STATIC_PROGRAM " " + path("d/changed.db") + " static 3;" +
                             VELLUM_STATIC_PROGRAM " " + path("d/new.db") + " static 3; true";
  const auto said = outcome(path("d/*.db"), {"sh", "-c", writes});
  nlohmann::json expected = problem(path("d/changed.db"), "changed_around");
  expected.push_back(problem(path("d/new.db"), "changed_around").at(0));
  EXPECT_EQ(expected, said.at("problems"));
  const std::string branches = must({"branch", store(), "--names"}).out;
  EXPECT_NE(std::string::npos, branches.find("new.db\n")) << branches;
  EXPECT_EQ(std::string::npos, branches.find("old.db")) << branches;
}

// The content is a version, but there may have been no write.
TEST_F(RunAroundNoSanitizer, AnotherModeOrNameIsNoProblem) {
  fs::create_directory(path("d"));
  write_file(path("d/a.db"), "same");
  const std::string a = path("d/a.db"), second = path("second"),
                    changes = "cat " + a + " && chmod 600 " + a + " && ln " + a + " " + second;
  EXPECT_EQ(0, run(command({"--strict"}, path("d/*.db"), {"sh", "-c", changes})).status);
  const std::string branch = must({"branch", store(), "--names"}).out;
  expect_head(branch.substr(0, branch.find('\n')), path("d/a.db"));
}

TEST_F(RunAroundNoSanitizer, ManyProblemsArePrintedAsTenLinesAndACompleteObject) {
  std::string writes;
  for (int i = 0; i < 12; ++i)
    writes += VELLUM_STATIC_PROGRAM " " + path(std::to_string(i) + ".db") + " static 3; ";
  EXPECT_EQ(12U, outcome(path("*.db"), {"sh", "-c", writes + "true"}).at("problems").size());
  EXPECT_NE(std::string::npos, last_.err.find("vellum: and 2 files more")) << last_.err;
}

TEST_F(RunAroundNoSanitizer, AFileThatIsNeverOpenedIsReported) {
  for (const std::string& file : {path("misspelt"), path("*.misspelt")}) {
    EXPECT_EQ(problem(file, "never_opened"), outcome(file, {"true"}).at("problems"));
    EXPECT_NE(std::string::npos, last_.err.find(file + ": was never opened")) << last_.err;
    EXPECT_EQ(0, last_.status);
    EXPECT_EQ(13, run(command({"--strict"}, file, {"true"})).status);
    EXPECT_EQ(5, run(command({"--strict"}, file, {"sh", "-c", "exit 5"})).status);
  }
  write_file(data(), "is read");
  EXPECT_EQ(nlohmann::json::array(), outcome({"cmp", data(), data()}).at("problems"));
  EXPECT_EQ(0, run(command({"--strict"}, data(), {"cat", data()})).status);
  must({"snapshot", store(), "old"});
  EXPECT_EQ(13, run(command({"--strict", "--version", "old"}, data(), {"true"})).status);
  EXPECT_EQ(0, run(command({"--strict", "--version", "old"}, data(), {"cat", data()})).status);
}

// A child of vfork(2) that closes its parent's file changes nothing for its parent.
TEST_F(RunAroundNoSanitizer, ProcessOneIsDistinguishedFromItsChild) {
  if (run_program({"unshare", "-pf", "true"}).status != 0) GTEST_SKIP() << "no PID namespaces here";
  const auto said = outcome({"unshare", "-pf", VELLUM_FILE_CALLS, "process-one", data()});
  EXPECT_EQ(0, last_.status) << last_.err;
  EXPECT_EQ(nlohmann::json::array(), said.at("problems")) << last_.err;
  expect_head("main", data());
  EXPECT_EQ("still", read_file(data()).substr(100, 5));
}

// A file whose writes bypassed the library, but that has the content of its branch, is not a
// problem.
TEST_F(RunAroundNoSanitizer, EqualContentIsNoChange) {
  write_file(data(), "static");
  must(command({}, data(), {"cat", data()}));
  const auto said = outcome(
      {"sh", "-c", VELLUM_STATIC_PROGRAM " " + data() + " static 0; cmp " + data() + " " + data()});
  EXPECT_EQ(nlohmann::json::array(), said.at("problems"));
  EXPECT_EQ(0, said.at("commits"));
}

TEST_F(RunAroundNoSanitizer, APathThatIsNotAFileIsRefused) {
  const auto refused = [&](const std::string& file, int status, const std::string& code,
                           const std::string& named) {
    expect_failure(command({}, file, {"true"}), status, code, named);
    EXPECT_FALSE(fs::exists(store())) << file;
  };
  refused(path("no/such/file"), 3, "not_found", "its directory " + path("no/such") + " does not");
  refused(path(""), 2, "invalid_argument", "a directory, not a regular file");
  fs::create_directory(path("lmdb"));
  write_file(path("lmdb/data.mdb"), "");
  refused(path("lmdb"), 2, "invalid_argument", path("lmdb/data.mdb"));
  refused("", 2, "invalid_argument", "--file is empty");
  refused(path("a\nb"), 2, "invalid_argument", "line break");
  fs::create_symlink(path("loop"), path("loop"));
  refused(path("loop"), 2, "invalid_argument", "too many levels");
  ASSERT_EQ(0, mkfifo(path("fifo").c_str(), 0600));
  refused(path("fifo"), 2, "invalid_argument", "not a regular file");
}

TEST_F(RunAroundNoSanitizer, LinksAndRelativePatternsAreResolved) {
  fs::create_directory(path("real"));
  fs::create_directory_symlink(path("real"), path("link"));
  fs::create_symlink("real/behind", path("dangling"));
  const auto commits = [&](const std::string& file, const std::string& opened) {
    const auto said = outcome(file, {VELLUM_FILE_CALLS, "kept", opened});
    EXPECT_EQ(nlohmann::json::array(), said.at("problems")) << file << last_.err;
    fs::remove_all(store());
    return said.at("commits").get<int>();
  };
  EXPECT_LE(1, commits(path("dangling"), path("dangling")));
  EXPECT_TRUE(fs::exists(path("real/behind")));
  EXPECT_LE(1, commits(path("link/*.db"), path("link/a.db")));
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  EXPECT_LE(1, commits("real/*.db", "real/b.db"));
  EXPECT_LE(1, commits("[ab].db", "a.db"));
  write_file(path("a[1].db"), "exists");
  EXPECT_LE(1, commits("a[1].db", "a[1].db"));
  fs::current_path(before);
}

}  // namespace
}  // namespace vellum::cli_test
