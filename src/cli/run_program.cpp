#include "cli/run_program.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <vellum/error.hpp>

#include "shim/program_kind.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) == 0) return name;
    throw Error(Errc::not_found, fmt::format("{}: {}", name, std::strerror(errno)));
  }
  const char* path = std::getenv("PATH");
  for (std::string_view left(path != nullptr ? path : "/usr/bin:/bin"); !left.empty();) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string candidate = std::string(left.substr(0, end)) + "/" + name;
    left.remove_prefix(std::min(end + 1, left.size()));
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate)) return candidate;
  }
  throw Error(Errc::not_found, fmt::format("{}: no such program", name));
}

void require_preloadable(const std::string& program) {
  char path[PATH_MAX] = {};
  program.copy(path, sizeof path - 1);
  const shim::ProgramKind kind = shim::kind_of_program(path);
  const std::string problem = fmt::format("{}: {}", path, shim::what_it_means(kind));
  if (kind == shim::ProgramKind::go)
    fmt::print(stderr, "vellum: {}; what it writes is recorded when the run has ended\n", problem);
  else if (kind != shim::ProgramKind::preloadable && kind != shim::ProgramKind::unknown)
    throw Error(Errc::unsupported, problem);
}

const std::array kSignals = {SIGCHLD, SIGUSR1, SIGTERM, SIGHUP};

[[noreturn]] void become(const RunningProgram& program, const sigset_t& mask) {
  for (const auto& [name, value] : program.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : program.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  signal(SIGINT, SIG_DFL);
  signal(SIGQUIT, SIG_DFL);
  execvp(arguments[0], arguments.data());
  fmt::print(stderr, "vellum: {}: {}\n", arguments[0], std::strerror(errno));
  _exit(errno == ENOENT ? 127 : 126);
}

std::optional<int> ended(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, WNOHANG) != child) return std::nullopt;
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status);
}

}  // namespace

std::string preloadable_program(const std::string& name) {
  const std::string program = find_program(name);
  require_preloadable(program);
  return program;
}

std::string shim_library() {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* directory : {"../lib", "../" VELLUM_LIBDIR, "../lib64"}) {
    const fs::path candidate = bin / directory / "libvellum-run.so";
    if (fs::exists(candidate)) return fs::canonical(candidate).string();
  }
  throw Error(Errc::unsupported,
              fmt::format("libvellum-run.so is not beside {}: in {}", bin.string(),
                          (bin / "../" VELLUM_LIBDIR).lexically_normal().string()));
}

// The terminal's SIGINT and SIGQUIT go to the program by themselves, being of the same group.
int run_program(const RunningProgram& program) {
  sigset_t wanted, before;
  sigemptyset(&wanted);
  for (const int number : kSignals) sigaddset(&wanted, number);
  sigprocmask(SIG_BLOCK, &wanted, &before);
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  const pid_t child = fork();
  if (child < 0) throw Error(Errc::io, fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) become(program, before);
  using Clock = std::chrono::steady_clock;
  auto next = Clock::now() + program.period;
  for (;;) {
    timespec timeout{3600, 0};
    if (program.period.count() != 0) {
      const auto left = std::max<std::chrono::nanoseconds>(next - Clock::now(), {});
      timeout = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    }
    const int number = sigtimedwait(&wanted, nullptr, &timeout);
    if (number == SIGCHLD) {
      if (const auto status = ended(child)) return *status;
    } else if (number == SIGTERM || number == SIGHUP) {
      kill(child, number);
    } else if (number == SIGUSR1) {
      program.on_tick();
    } else if (program.period.count() != 0 && Clock::now() >= next) {
      program.on_tick();
      next = Clock::now() + program.period;
    }
  }
}

}  // namespace vellum::cli
