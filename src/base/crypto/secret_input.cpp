// base/crypto/secret_input.cpp: see secret_input.hpp.
#include "base/crypto/secret_input.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/fail.hpp"

namespace vellum::base {
namespace {

class OwnDescriptor {
 public:
  explicit OwnDescriptor(int fd) noexcept : fd_(fd) {}
  ~OwnDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail_errno(const std::string& what, int error) {
  fail(error == ENOENT ? Errc::not_found : Errc::io, "{}: {}", what,
       std::generic_category().message(error));
}

// Starts the command with `out` as its standard output.
pid_t start(const std::string& command, int out) {
  posix_spawn_file_actions_t actions;
  if (const int error = ::posix_spawn_file_actions_init(&actions)) fail_errno("key command", error);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  std::string shell = "sh", option = "-c", text = command;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t child = -1;
  const int error = ::posix_spawn(&child, "/bin/sh", &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail_errno("key command", error);
  return child;
}

// The status of waitpid(2). A program that ignores SIGCHLD, or waits for any child itself, leaves
// none: 0.
int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno == ECHILD) return 0;
    if (errno != EINTR) fail_errno("key command", errno);
  }
  return status;
}

void require_success(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  fail(Errc::io, "the key command failed, with status {}",
       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

Secret read_secret(int fd, const std::string& what) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // a program that is started later could rewind a file
  Secret out(kMaxSecretBytes + 1);
  std::size_t used = 0;
  while (used < out.size()) {
    const ssize_t n = ::read(fd, out.bytes().data() + used, out.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno(what, errno);
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
  }
  if (used > kMaxSecretBytes) {
    fail(Errc::invalid_argument, "{}: a secret has at most {} bytes", what, kMaxSecretBytes);
  }
  out.shrink(used);
  return out;
}

Secret read_secret_file(const std::string& path) {
  const OwnDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail_errno(path, errno);
  return read_secret(file.get(), path);
}

Secret read_secret_command(const std::string& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("key command", errno);
  const OwnDescriptor from(ends[0]);
  pid_t child = -1;
  {
    const OwnDescriptor to(ends[1]);
    child = start(command, to.get());
  }
  Secret out;
  try {
    out = read_secret(from.get(), "key command");
  } catch (...) {
    ::kill(child, SIGKILL);
    wait_for(child);
    throw;
  }
  require_success(wait_for(child));
  return out;
}

void keep_first_line(Secret& secret) noexcept {
  const auto bytes = secret.bytes();
  auto end = std::find(bytes.begin(), bytes.end(), std::byte{'\n'});
  if (end != bytes.begin() && *(end - 1) == std::byte{'\r'}) --end;
  secret.shrink(static_cast<std::size_t>(end - bytes.begin()));
}

}  // namespace vellum::base
