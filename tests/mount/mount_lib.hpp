// A store that is mounted for the duration of a test.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "run/run_lib.hpp"

namespace vellum::cli_test {

class MountTest : public CliTest {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(path("m"));
    if (access("/dev/fuse", R_OK | W_OK) != 0) GTEST_SKIP() << "/dev/fuse cannot be opened";
  }
  ~MountTest() override {
    stop(SIGTERM);
    while (umount2(path("m").c_str(), MNT_DETACH) == 0) {
    }
  }

  std::string at(const std::string& name) const { return path("m") + "/" + name; }

  // Starts the server process, and waits until the directory shows the store. Its messages are in
  // log().
  void serve(const std::string& store, const Arguments& options = {}) {
    Arguments arguments{"mount", store, path("m")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    int said[2];
    ASSERT_EQ(0, pipe(said));
    server_ = fork();
    if (server_ == 0) {
      dup2(said[1], STDOUT_FILENO);
      close(said[0]);
      dup2(open(path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
      become_vellum(arguments);
    }
    close(said[1]);
    char byte = 0;
    EXPECT_EQ(1, read(said[0], &byte, 1)) << "it does not mount: " << log();
    close(said[0]);
  }
  // The number of mounts on the directory, one over the other.
  std::size_t mounts() const {
    std::size_t count = 0;
    for (const std::string& line : lines_of(read_file("/proc/self/mountinfo"))) {
      if (contains(line, " " + path("m") + " ")) ++count;
    }
    return count;
  }
  std::string log() const { return read_file(path("log")); }
  pid_t server() const { return server_; }
  // These two return its exit status, or 128 plus the signal. A failed server's log is printed.
  int stop(int signal) {
    if (server_ <= 0) return -1;
    kill(server_, signal);
    return wait_for_server();
  }
  int wait_for_server() {
    int status = 0;
    while (waitpid(server_, &status, 0) < 0 && errno == EINTR) {
    }
    server_ = -1;
    if (status != 0) std::fprintf(stderr, "the server's log: %s\n", log().c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  static std::vector<std::string> names_in(const std::string& directory) {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      out.push_back(entry.path().filename());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  pid_t server_ = -1;
};

}  // namespace vellum::cli_test
