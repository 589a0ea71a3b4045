// What `vellum replicate` reports while it runs: lines of JSON, metrics, a service manager; and its
// rules for old snapshots at the remote.
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "region/api/snapshots_of.hpp"
#include "run/run_lib.hpp"

namespace vellum::cli_test {
namespace {

using namespace std::chrono_literals;

class ReplicateReports : public CliTest {
 protected:
  void begin(Arguments more) {
    Arguments arguments{"replicate", store, url(), "--interval", "40ms"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    child = fork();
    if (child != 0) return;
    if (freopen(out.c_str(), "w", stdout) == nullptr) _exit(99);
    if (!socket.empty()) {
      ::setenv("NOTIFY_SOCKET", socket.c_str(), 1);
      ::setenv("WATCHDOG_USEC", "400000", 1);
    }
    become_vellum(arguments);
  }
  int end() {
    kill(child, SIGTERM);
    return status_at_end();
  }
  int status_at_end() const {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  template <typename Condition>
  void wait_until(const Condition& condition) const {
    for (int i = 0; i < 1200; ++i) {
      if (condition()) return;
      std::this_thread::sleep_for(50ms);
    }
    ADD_FAILURE() << "it does not come";
  }
  bool has_there(const std::string& name) const {
    const auto names = lines_of(run({"log", url(), "--names"}).out);
    return std::ranges::count(names, name) != 0;
  }
  std::string text_of(const std::string& file) const {
    return std::filesystem::exists(file) ? read_file(file) : "";
  }
  std::string url() const { return "file://" + path("remote"); }

  const std::string store = make_store_with({noise(20, 1)});
  const std::string out = path("out");
  std::string socket;
  pid_t child = -1;
};

TEST_F(ReplicateReports, EachPushIsALineAndMetricsAreInTheFile) {
  const std::string metrics = path("m.prom");
  begin({"--json", "--metrics", metrics});
  wait_until([&] { return contains(text_of(metrics), "replication_pushes_total{"); });
  wait_until([&] { return has_there("v1"); });
  must({"import", store, "main", file("f", noise(20, 7)), "--snapshot", "a"});
  wait_until([&] { return has_there("a"); });
  EXPECT_EQ(end(), 0);
  const auto lines = lines_of(read_file(out));
  ASSERT_GE(lines.size(), 2u);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const auto line = nlohmann::json::parse(lines[i]);
    for (const char* key : {"time", "behind_ms", "pushes", "versions", "bytes_uploaded", "failure"})
      EXPECT_TRUE(line.contains(key)) << lines[i];
    EXPECT_EQ(line.at("failure"), nullptr);
  }
  const auto last = nlohmann::json::parse(lines.back());
  EXPECT_GE(last.at("pushes"), 2);
  EXPECT_EQ(last.at("forgotten"), 0);
  const std::string text = read_file(metrics);
  EXPECT_TRUE(contains(text, "# TYPE vellum_replication_lag_seconds gauge\n"));
  EXPECT_TRUE(contains(text, "vellum_replication_lag_seconds{store=\"" + store + "\",url=\"" +
                                 url() + "\"} 0.000\n"));
  EXPECT_TRUE(contains(text, "vellum_replication_failing{"));
  EXPECT_TRUE(contains(text, "} " + std::to_string(last.at("pushes").get<int>()) + "\n"));
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

TEST_F(ReplicateReports, AServiceManagerLearnsWhenItIsReadyAndThatItLives) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket = "@vellum-test-" + std::to_string(getpid());
  std::copy(socket.begin(), socket.end(), address.sun_path);
  address.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
  begin({"--quiet"});
  std::string told;
  const auto receive = [&] {
    char text[4096];
    const ssize_t got = ::recv(fd, text, sizeof text, MSG_DONTWAIT);
    if (got > 0) told.append(text, static_cast<std::size_t>(got));
  };
  const auto wait_for = [&](const std::string& text, std::size_t times) {
    wait_until([&] {
      receive();
      std::size_t count = 0;
      for (std::size_t at = 0; (at = told.find(text, at)) != std::string::npos; ++at) ++count;
      return count >= times;
    });
  };
  wait_for("READY=1\n", 1);
  wait_for("STATUS=sent 2 versions", 1);
  wait_for("WATCHDOG=1\n", 2);
  kill(child, SIGTERM);
  wait_for("STOPPING=1\n", 1);
  EXPECT_EQ(status_at_end(), 0);
  EXPECT_EQ(told.find("READY=1"), told.rfind("READY=1"));
  ::close(fd);
}

TEST_F(ReplicateReports, RulesRemoveOldSnapshotsAtTheRemote) {
  for (const char* name : {"a", "b", "c"}) must({"snapshot", store, name});
  begin({"--keep-last", "2", "--json"});
  wait_until([&] { return has_there("c") && !has_there("a"); });
  EXPECT_EQ(must({"log", url(), "--names"}).out, "main\nc\nb\n");
  must({"snapshot", store, "d"});
  wait_until([&] { return has_there("d") && !has_there("b"); });
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(must({"log", url(), "--names"}).out, "main\nd\nc\n");
  EXPECT_EQ(nlohmann::json::parse(lines_of(read_file(out)).back()).at("forgotten"), 3);
  EXPECT_EQ(must({"log", store, "--names"}).out, "main\nd\nc\nb\na\nv1\n");
  EXPECT_EQ(run({"replicate", store, url(), "--keep-last", "x"}).status, 2);
}

TEST_F(ReplicateReports, RulesRemoveAWholeSetAlsoWhereABranchIsGone) {
  const auto member = [](const std::string& set, const std::string& branch) {
    return api::member_name(set, {"main", "side"}, branch);
  };
  must({"branch", store, "side", "main"});
  for (const char* set : {"a", "b"}) must({"snapshot", store, set, "--all"});
  begin({});
  wait_until([&] { return has_there(member("b", "side")); });
  EXPECT_EQ(end(), 0);
  must({"rm", store, "--branch", "side"});
  begin({"--keep-last", "1"});
  wait_until([&] { return !has_there(member("a", "main")); });
  EXPECT_EQ(end(), 0);
  EXPECT_FALSE(has_there(member("a", "side")));
  for (const char* branch : {"main", "side"}) EXPECT_TRUE(has_there(member("b", branch)));
}

}  // namespace
}  // namespace vellum::cli_test
