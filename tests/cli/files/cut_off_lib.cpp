#include "cli/files/cut_off_lib.hpp"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <stdexcept>

namespace vellum::cli_test {
namespace {

constexpr long kChanging[] = {
    SYS_mkdirat, SYS_renameat2, SYS_linkat,    SYS_unlinkat,  SYS_pwrite64,
    SYS_write,   SYS_ftruncate, SYS_fallocate, SYS_fdatasync, SYS_fsync,
#ifdef SYS_mkdir  // of the older architectures: x86-64
    SYS_mkdir,   SYS_rename,    SYS_link,      SYS_unlink,    SYS_rmdir,
#endif
};

bool changes_files(const __ptrace_syscall_info& call) {
  const auto number = static_cast<long>(call.entry.nr);
  if (number == SYS_openat) return (call.entry.args[2] & O_CREAT) != 0;
  return std::find(std::begin(kChanging), std::end(kChanging), number) != std::end(kChanging);
}

int wait_for_stop(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error("waitpid failed");
  }
  return status;
}

[[noreturn]] void become_traced(const Arguments& arguments) {
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  become_vellum(arguments);
}

bool at_changing_call(pid_t child) {
  __ptrace_syscall_info call{};
  const auto size = reinterpret_cast<void*>(sizeof call);
  if (::ptrace(PTRACE_GET_SYSCALL_INFO, child, size, &call) < 0)
    throw std::runtime_error("no system call's information");
  return call.op == PTRACE_SYSCALL_INFO_ENTRY && changes_files(call);
}

}  // namespace

bool cut_off(const Arguments& arguments, unsigned nth, int signal) {
  const pid_t child = ::fork();
  if (child == 0) become_traced(arguments);
  int status = wait_for_stop(child);  // at exec
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  for (unsigned calls = 0; WIFSTOPPED(status);) {
    const bool at_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    const bool at_exec = WSTOPSIG(status) == SIGTRAP;
    if (at_call && at_changing_call(child) && ++calls == nth) {
      ::kill(child, signal);
      ::ptrace(PTRACE_DETACH, child, nullptr, signal);
      status = wait_for_stop(child);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
      return true;
    }
    const long pass_on = at_call || at_exec ? 0 : WSTOPSIG(status);
    ::ptrace(PTRACE_SYSCALL, child, nullptr, pass_on);
    status = wait_for_stop(child);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << arguments[0] << ": " << status;
  return false;
}

}  // namespace vellum::cli_test
