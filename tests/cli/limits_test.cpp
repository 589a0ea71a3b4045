// Limits of batch systems, and a machine that grants no thread: commands work, or report the
// missing resource.
#include <csignal>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

using LimitsNoSanitizer = CliTest;  // a sanitizer needs terabytes of address space

InChild limited(__rlimit_resource resource, rlim_t most) {
  return [resource, most] {
    const rlimit limit{most, most};
    ::setrlimit(resource, &limit);
  };
}

TEST_F(LimitsNoSanitizer, CommandsNeedLittleAddressSpace) {
  const std::string s = make_store_with({noise(300, 1), noise(300, 2)});
  const std::string f = file("f", noise(300, 3));
  for (const Arguments& arguments :
       {Arguments{"log", s}, Arguments{"stat", s}, Arguments{"show", s, "v1"},
        Arguments{"cat", s, "v1"}, Arguments{"diff", s, "v1", "v2"},
        Arguments{"verify", s, "--read-data"}, Arguments{"export", s, "v1", path("out")},
        Arguments{"import", s, "main", f, "--snapshot", "v3"}, Arguments{"rm", s, "v2"},
        Arguments{"gc", s}}) {
    const Result result = run(arguments, limited(RLIMIT_AS, rlim_t{400'000} << 10));
    EXPECT_EQ(result.status, 0) << arguments[0] << ": " << result.err;
  }
}

TEST_F(LimitsNoSanitizer, AnOutputThatGrowsTooLargeIsAnError) {
  const std::string s = make_store_with({noise(300, 1)});
  const std::string out = path("out");
  const Result redirected = run({"cat", s, "v1"}, [&] {
    const rlimit limit{8192, 8192};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const int fd = ::open(out.c_str(), O_CREAT | O_WRONLY, 0600);
    ::dup2(fd, STDOUT_FILENO);
  });
  EXPECT_EQ(redirected.signal, 0);
  EXPECT_EQ(redirected.status, 9) << redirected.err;
  const Result exported =
      run({"export", s, "v1", path("exported")}, limited(RLIMIT_FSIZE, 64u << 10));
  EXPECT_EQ(exported.signal, 0);
  EXPECT_EQ(exported.status, 9) << exported.err;
  EXPECT_TRUE(contains(exported.err, "ulimit -f")) << exported.err;
  const std::string f = file("f", noise(300, 2));
  const Result imported =
      run({"import", s, "main", f, "--snapshot", "v2"}, limited(RLIMIT_FSIZE, 256u << 10));
  EXPECT_EQ(imported.signal, 0);
  EXPECT_EQ(imported.status, 9) << imported.err;
  must({"verify", s, "--read-data"});
  EXPECT_EQ(must({"cat", s, "v1"}).out, noise(300, 1));
}

TEST_F(LimitsNoSanitizer, WithoutThreadsTheCallerDoesTheWork) {
  const std::string s = make_store_with({noise(300, 1), noise(300, 2)});
  const std::string f = file("f", noise(300, 3));
  must({"remote", "add", s, "origin", "file://" + path("remote")});
  for (Arguments arguments :
       {Arguments{"import", s, "main", f, "--snapshot", "v3"}, Arguments{"cat", s, "v3"},
        Arguments{"export", s, "v1", path("out")}, Arguments{"verify", s, "--read-data"},
        Arguments{"rm", s, "v2"}, Arguments{"gc", s}, Arguments{"log", s},
        Arguments{"push", s, "v1"}}) {
    arguments.insert(arguments.begin(), {VELLUM_OTHER_MACHINE, "no-threads", VELLUM_CLI});
    const Result result = run_program(arguments);
    EXPECT_EQ(result.signal, 0) << arguments[3];
    EXPECT_TRUE(result.status == 0 || contains(result.err, "cannot start the thread that"))
        << arguments[3] << ": " << result.status << ", " << result.err;
  }
}

}  // namespace
}  // namespace vellum::cli_test
