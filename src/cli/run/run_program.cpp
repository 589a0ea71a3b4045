#include "cli/run/run_program.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "cli/terminal/output.hpp"
#include "run/run/program_kind.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

const std::array kSignals = {SIGCHLD, SIGUSR1, SIGTERM, SIGHUP, SIGINT};

[[noreturn]] void become(const RunningProgram& program, const sigset_t& mask) {
  for (const auto& [name, value] : program.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : program.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  signal(SIGINT, SIG_DFL);
  signal(SIGQUIT, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);  // main() ignores it
  execvp(arguments[0], arguments.data());
  const int problem = errno;
  print_error(fmt::format("{}: {}", arguments[0], std::strerror(problem)));
  _exit(problem == ENOENT ? 127 : 126);
}

using Clock = std::chrono::steady_clock;
using Timeout = std::chrono::nanoseconds;

// The time that a process left by the program gets to open a file, or to end.
constexpr Timeout kGrace = std::chrono::seconds(2);

int as_shell_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// A run lasts from the program's start until it and its remaining processes with files of the run
// have ended. These become this process's children when their parents have ended.
class Run {
 public:
  Run(const RunningProgram& program, pid_t child, const sigset_t& wanted)
      : program_(program), child_(child), wanted_(wanted) {}

  int to_end() {
    while (!is_over()) {
      const Timeout timeout = time_to_next_check();
      const timespec wait{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
      on_signal(sigtimedwait(&wanted_, nullptr, &wait));
      if (program_.period.count() != 0 && Clock::now() >= next_tick_) tick();
    }
    report_left();
    return *status_;
  }

 private:
  void on_signal(int number) {
    if (number == SIGCHLD) reap();
    if (number == SIGUSR1) program_.on_tick();
    if (number != SIGTERM && number != SIGHUP && number != SIGINT) return;
    // The terminal also sends SIGINT to the program, because it is in the same group. Programs that
    // a shell has started in the background ignore it.
    if (!status_ && number != SIGINT) kill(child_, number);
    if (status_) end_left(number == SIGINT ? SIGTERM : number);
  }

  void reap() {
    int status = 0;
    for (pid_t id; (id = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (id != child_) continue;
      status_ = as_shell_status(status);
      ended_at_ = Clock::now();
    }
  }

  void tick() {
    program_.on_tick();
    next_tick_ = Clock::now() + program_.period;
  }

  // A second request ends the wait for processes that do not end.
  void end_left(int number) {
    gives_up_ = asked_;
    asked_ = true;
    for (const LeftProcess& process : left_) kill(process.id, number);
  }

  bool is_over() {
    if (!status_ || gives_up_) return gives_up_;
    left_ = descendants(program_.held_below);
    if (left_.empty()) return true;
    const bool any_holds = std::any_of(left_.begin(), left_.end(), holds);
    const bool may_hold = Clock::now() < ended_at_ + kGrace;
    if (any_holds && !may_hold) report_waiting();
    return !any_holds && !may_hold;
  }

  static bool holds(const LeftProcess& process) { return process.holds; }

  // Polls: no event reports that a process opens or closes a file.
  Timeout time_to_next_check() const {
    Timeout out = status_ ? std::chrono::milliseconds(50) : std::chrono::hours(1);
    if (program_.period.count() != 0)
      out = std::clamp<Timeout>(next_tick_ - Clock::now(), Timeout(0), out);
    return out;
  }

  void report_waiting() {
    if (told_) return;
    const auto process = std::find_if(left_.begin(), left_.end(), holds);
    print_error(
        fmt::format("waiting for {} (process {}), which has files of the run open: Ctrl-C "
                    "or SIGTERM ends it, a second one ends the wait",
                    process->name, process->id));
    told_ = true;
  }

  void report_left() const {
    for (const LeftProcess& process : left_)
      if (process.holds || !program_.quiet)
        print_error(
            fmt::format("{} (process {}) continues without vellum run", process.name, process.id));
  }

  const RunningProgram& program_;
  const pid_t child_;
  const sigset_t& wanted_;
  std::optional<int> status_;
  Clock::time_point ended_at_, next_tick_ = Clock::now() + program_.period;
  std::vector<LeftProcess> left_;
  bool asked_ = false, gives_up_ = false, told_ = false;
};

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) == 0) return name;
    fail(Errc::not_found, "{}: {}", name, std::strerror(errno));
  }
  const char* path = std::getenv("PATH");
  for (std::string_view left(path != nullptr ? path : "/usr/bin:/bin"); !left.empty();) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string candidate = std::string(left.substr(0, end)) + "/" + name;
    left.remove_prefix(std::min(end + 1, left.size()));
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate)) return candidate;
  }
  fail(Errc::not_found, "{}: no such program", name);
}

void require_preloadable(const std::string& program, bool reads_version) {
  char path[PATH_MAX] = {};
  program.copy(path, sizeof path - 1);
  const preload::ProgramKind kind = preload::kind_of_program(path);
  const std::string problem = fmt::format("{}: {}", path, preload::what_it_means(kind));
  if (kind == preload::ProgramKind::go && !reads_version)
    print_error(problem + "; its writes are recorded when the run has ended");
  else if (kind != preload::ProgramKind::preloadable && kind != preload::ProgramKind::unknown)
    fail(Errc::unsupported, "{}", problem);
}

std::string preload_library() {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* directory : {"../lib", "../" VELLUM_LIBDIR, "../lib64"}) {
    const fs::path candidate = bin / directory / "libvellum-run.so";
    if (fs::exists(candidate)) return fs::canonical(candidate).string();
  }
  fail(Errc::unsupported, "libvellum-run.so is missing: the vellum in {} needs it in {}",
       bin.string(), (bin / "../" VELLUM_LIBDIR).lexically_normal().string());
}

int run_program(const RunningProgram& program) {
  sigset_t wanted, before;
  sigemptyset(&wanted);
  for (const int number : kSignals) sigaddset(&wanted, number);
  sigprocmask(SIG_BLOCK, &wanted, &before);
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = fork();
  if (child < 0) fail(Errc::io, "fork: {}", std::strerror(errno));
  if (child == 0) become(program, before);
  return Run(program, child, wanted).to_end();
}

}  // namespace vellum::cli
