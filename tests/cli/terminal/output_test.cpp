// Standard output and standard error: full disks, closed pipes, terminals, and control characters
// that must not reach a terminal.
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

class OutputTest : public CliTest {};

// Opens `path` for standard output; in the child, so without allocation.
InChild output_to(const char* path) {
  return [path] {
    const int fd = ::open(path, O_WRONLY);
    ::dup2(fd, STDOUT_FILENO);
    ::close(fd);
  };
}

TEST_F(OutputTest, ARedirectToAFullDiskIsAnError) {
  const std::string s = make_store_with({noise(300, 1)});
  for (const Arguments& arguments :
       {Arguments{"log", s}, Arguments{"log", s, "--json"}, Arguments{"cat", s, "v1"},
        Arguments{"cat", s, "main"}, Arguments{"stat", s}, Arguments{"show", s, "v1"},
        Arguments{"diff", s, "v1", "main"}, Arguments{"diff", s, "v1", "main", "--json"},
        Arguments{"verify", s}, Arguments{"--help"}, Arguments{"--version"}}) {
    const Result result = run(arguments, output_to("/dev/full"));
    EXPECT_EQ(result.status, 9) << arguments[0];
    EXPECT_EQ(result.err, "vellum: cannot write to standard output: No space left on device\n");
  }
}

TEST_F(OutputTest, AClosedOutputIsAnErrorAndDamagesNoFile) {
  const std::string s = make_store();
  const std::string f = file("f", noise(3, 1));
  const auto close_all = [] {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    ::close(STDERR_FILENO);
  };
  EXPECT_EQ(run({"log", s}, [] { ::close(STDOUT_FILENO); }).status, 0);  // no output
  EXPECT_EQ(run({"stat", s}, [] { ::close(STDOUT_FILENO); }).status, 10);
  run({"import", s, "main", f, "--snapshot", "a"}, close_all);
  run({"show", s, "nothing"}, close_all);
  EXPECT_EQ(must({"cat", s, "a"}).out, noise(3, 1));
  must({"verify", s, "--read-data"});
}

// As in `vellum cat ... | head -c 1`: the signal ends it silently, like cat(1).
TEST_F(OutputTest, AClosedPipeEndsTheProgramSilently) {
  const std::string s = make_store_with({noise(300, 1)});
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  ::close(pipe[0]);
  const Result killed = run({"cat", s, "v1"}, [&] {
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(pipe[1], STDOUT_FILENO);
  });
  EXPECT_EQ(killed.signal, SIGPIPE);
  EXPECT_EQ(killed.err, "");
  const Result output = run({"cat", s, "v1"}, [&] {
    ::signal(SIGPIPE, SIG_IGN);
    ::dup2(pipe[1], STDOUT_FILENO);
  });
  EXPECT_EQ(output.status, 10);
  EXPECT_NE(output.err.find("Broken pipe"), std::string::npos) << output.err;
  ::close(pipe[1]);
}

TEST_F(OutputTest, ProgressIsShownOnlyOnATerminal) {
  const std::string s = make_store();
  const std::string f = file("f", noise(4000, 1));
  const Result import = run_on_terminal({"import", s, "main", f, "--snapshot", "a"});
  EXPECT_EQ(import.status, 0);
  EXPECT_NE(import.err.find("\rimport: "), std::string::npos) << import.err;
  EXPECT_NE(import.err.find(" of 15.6 MiB ("), std::string::npos) << import.err;
  EXPECT_TRUE(import.err.ends_with("\r\x1b[K")) << "the line has to be wiped";
  EXPECT_NE(run_on_terminal({"export", s, "a", path("o1")}).err.find("export: "),
            std::string::npos);
  EXPECT_NE(run_on_terminal({"verify", s, "--read-data"}).err.find("verify: "), std::string::npos);
  EXPECT_EQ(run_on_terminal({"export", s, "a", path("o2"), "--no-progress"}).err, "");
  EXPECT_EQ(run_on_terminal({"export", s, "a", path("o3"), "--quiet"}).err, "");
  EXPECT_EQ(run({"export", s, "a", path("o4")}).err, "");
}

TEST_F(OutputTest, ControlCharactersFromAStoreAreEscaped) {
  const std::string s = make_store();
  must({"import", s, "main", file("f", noise(1, 1)), "--snapshot", "a", "-m",
        "red \x1b[31m bell \x07 csi \xc2\x9b raw \x9b ümlaut"});
  const std::string safe = "red \\x1b[31m bell \\x07 csi \\xc2\\x9b raw \\x9b ümlaut";
  EXPECT_NE(must({"log", s}).out.find(safe), std::string::npos);
  EXPECT_NE(must({"show", s, "a"}).out.find(safe), std::string::npos);
  const std::string message = must({"show", s, "a", "--json"}).json().at("message");
  EXPECT_NE(message.find("ümlaut"), std::string::npos);
  const Result error = run({"show", s, "x\x1b[31m\n"});
  EXPECT_EQ(error.status, 3);
  EXPECT_NE(error.err.find("x\\x1b[31m\\x0a"), std::string::npos) << error.err;
}

TEST_F(OutputTest, JsonFailuresAreObjectsAndTextIsOnStandardError) {
  const Result result = run({"show", "--json", path("nowhere"), "x"});
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.json().at("error").at("exit_status"), 3);
  EXPECT_TRUE(result.err.starts_with("vellum: " + path("nowhere")));
}

TEST_F(OutputTest, JsonAsAMessageIsNotTheOption) {
  const std::string s = make_store_with({noise(1, 1)});
  const Result result = must({"snapshot", s, "b", "main", "-m", "--json"});
  EXPECT_TRUE(result.out.starts_with("created snapshot 'b'")) << result.out;
  EXPECT_EQ(must({"show", s, "b", "--json"}).json().at("message"), "--json");
}

TEST_F(OutputTest, GlobalOptionsMayPrecedeOrFollowTheCommand) {
  const std::string s = make_store_with({noise(1, 1)});
  EXPECT_EQ(must({"--json", "log", s}).out, must({"log", s, "--json"}).out);
  EXPECT_EQ(must({"--json", "log", s}).out, must({"log", "--json", s}).out);
}

}  // namespace
}  // namespace vellum::cli_test
