// Child processes: their bodies, and how they ended.
//
// run_child() forks and waits; start_child() does not wait. A body that throws ends the child with
// kThrew and its message on standard error. run_program() starts this test program again and runs a
// registered ChildProgram there: for code that needs a process that has not opened a region yet.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace vellum::test {

inline constexpr int kThrew = 97;

// Inside a child: ends it when the condition does not hold.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

struct ChildEnd {
  int status = 0;
  std::string standard_error;

  bool exited_with(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
  bool died_by(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }
};

inline void PrintTo(const ChildEnd& end, std::ostream* out) {
  if (WIFSIGNALED(end.status)) {
    *out << "died by signal " << WTERMSIG(end.status);
  } else {
    *out << "exited with " << WEXITSTATUS(end.status);
  }
  *out << "; standard error: " << end.standard_error;
}

inline void expect_end(const ChildEnd& end, bool as_expected, const char* file, int line) {
  if (!as_expected) ADD_FAILURE_AT(file, line) << "the child " << testing::PrintToString(end);
}

// `end` is evaluated once: it may be a wait().
#define EXPECT_CHILD_EXIT(end, code)                                                      \
  [&](const ::vellum::test::ChildEnd& of_child) {                                         \
    ::vellum::test::expect_end(of_child, of_child.exited_with(code), __FILE__, __LINE__); \
  }(end)
#define EXPECT_CHILD_SIGNAL(end, signal)                                                \
  [&](const ::vellum::test::ChildEnd& of_child) {                                       \
    ::vellum::test::expect_end(of_child, of_child.died_by(signal), __FILE__, __LINE__); \
  }(end)

class Child {
 public:
  Child(pid_t pid, int error_fd) : pid_(pid), error_fd_(error_fd) {}
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), error_fd_(std::exchange(other.error_fd_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }

  pid_t pid() const { return pid_; }
  void kill(int signal) const { ::kill(pid_, signal); }
  bool running() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }

  ChildEnd wait() {
    ChildEnd end;
    while (waitpid(pid_, &end.status, 0) < 0 && errno == EINTR) {
    }
    char text[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(error_fd_, text, sizeof text, at)) > 0; at += n) {
      end.standard_error.append(text, static_cast<std::size_t>(n));
    }
    close(error_fd_);
    pid_ = -1;
    error_fd_ = -1;
    return end;
  }

 private:
  pid_t pid_;
  int error_fd_;
};

namespace detail {

inline void run_body(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    _exit(kThrew);
  }
  _exit(0);
}

inline void prepare_child(int error_fd, pid_t parent) {
  dup2(error_fd, STDERR_FILENO);
  rlimit cores{};
  getrlimit(RLIMIT_CORE, &cores);
  cores.rlim_cur = 0;  // a child that wants a core dump can still raise the limit
  setrlimit(RLIMIT_CORE, &cores);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a killed test leaves no child behind
  if (getppid() != parent) _exit(kThrew);
}

}  // namespace detail

inline Child start_child(const std::function<void()>& body) {
  const int error_fd = memfd_create("standard-error", MFD_CLOEXEC);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    detail::prepare_child(error_fd, parent);
    detail::run_body(body);
  }
  return Child(pid, error_fd);
}

inline ChildEnd run_child(const std::function<void()>& body) { return start_child(body).wait(); }

// Registered by a global: `static const ChildProgram kName("name", [](const Arguments& a) {...});`
class ChildProgram {
 public:
  using Arguments = std::vector<std::string>;
  using Body = std::function<void(const Arguments&)>;

  ChildProgram(const std::string& name, Body body) {
    if (table().empty()) testing::AddGlobalTestEnvironment(new Runner);
    table()[name] = std::move(body);
  }

 private:
  friend Child start_program(const std::string& name, const Arguments& arguments);
  static constexpr const char* kVariable = "VELLUM_TEST_CHILD";

  static std::map<std::string, Body>& table() {
    static std::map<std::string, Body> programs;
    return programs;
  }

  // Runs before any test and replaces all of them.
  struct Runner : testing::Environment {
    void SetUp() override {
      const char* value = std::getenv(kVariable);
      if (value == nullptr) return;
      Arguments words;
      for (std::string rest = value;; rest.erase(0, rest.find('\n') + 1)) {
        words.push_back(rest.substr(0, rest.find('\n')));
        if (rest.find('\n') == std::string::npos) break;
      }
      const Body& body = table().at(words.front());
      words.erase(words.begin());
      detail::run_body([&] { body(words); });
    }
  };
};

// Arguments may contain any character but newlines.
inline Child start_program(const std::string& name, const ChildProgram::Arguments& arguments) {
  std::string value = name;
  for (const auto& argument : arguments) value += "\n" + argument;
  const int error_fd = memfd_create("standard-error", MFD_CLOEXEC);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    detail::prepare_child(error_fd, parent);
    setenv(ChildProgram::kVariable, value.c_str(), 1);
    execl("/proc/self/exe", "test", "--gtest_brief=1", static_cast<char*>(nullptr));
    _exit(kThrew);
  }
  return Child(pid, error_fd);
}

inline ChildEnd run_program(const std::string& name, const ChildProgram::Arguments& arguments) {
  return start_program(name, arguments).wait();
}

}  // namespace vellum::test
