#include "cli/run_program.hpp"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <vellum/error.hpp>

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

// "#!interpreter argument": the interpreter.
std::optional<std::string> interpreter_of(const std::string& program) {
  std::ifstream in(program, std::ios::binary);
  std::string line;
  if (in.get() != '#' || in.get() != '!' || !std::getline(in, line)) return std::nullopt;
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return std::nullopt;
  return line.substr(begin, line.find_first_of(" \t\r", begin) - begin);
}

// Whether the kernel would start the dynamic linker first (elf(5)). What is no ELF file is left to
// execve(2) to refuse.
bool is_static(const std::string& program) {
  std::ifstream in(program, std::ios::binary);
  Elf64_Ehdr header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!in || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    throw Error(Errc::unsupported, fmt::format("{}: not a program of this machine", program));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    in.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof part));
    in.read(reinterpret_cast<char*>(&part), sizeof part);
    if (in && part.p_type == PT_INTERP) return false;
  }
  return true;
}

void require_dynamic(const std::string& program, int depth) {
  struct stat status{};
  if (stat(program.c_str(), &status) != 0)
    throw Error(Errc::not_found, fmt::format("{}: {}", program, std::strerror(errno)));
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != 0)
    throw Error(Errc::unsupported,
                fmt::format("{}: runs as another user, and the dynamic linker takes nothing from "
                            "this one",
                            program));
  if (is_static(program))
    throw Error(Errc::unsupported,
                fmt::format("{}: statically linked: nothing can be put in front of its C library",
                            program));
  const auto interpreter = interpreter_of(program);
  if (interpreter && depth < 4) require_dynamic(*interpreter, depth + 1);
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
  require_dynamic(program, 0);
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
