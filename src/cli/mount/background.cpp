// cli/mount/background.cpp: see background.hpp.
#include "cli/mount/background.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {

Background::Background() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(Errc::io, "pipe: {}", std::strerror(errno));
  child_ = fork();
  if (child_ < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    fail(Errc::io, "fork: {}", std::strerror(error));
  }
  ready_ = ends[child_ == 0 ? 1 : 0];
  close(ends[child_ == 0 ? 0 : 1]);
}

Background::~Background() {
  if (ready_ >= 0) close(ready_);
}

void Background::is_ready() {
  setsid();  // until now the terminal could ask for a passphrase
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && nowhere >= 0; ++fd) {
    // A log file is kept; with a pipe, its reader would wait for the end.
    struct stat status{};
    if (fd == STDERR_FILENO && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) continue;
    dup2(nowhere, fd);
  }
  if (nowhere > STDERR_FILENO) close(nowhere);
  // A working directory would keep its file system from being unmounted.
  if (chdir("/") != 0) fail(Errc::io, "/: {}", std::strerror(errno));
  const char byte = 0;
  [[maybe_unused]] const ssize_t ignored = write(ready_, &byte, 1);
  close(ready_);
  ready_ = -1;
}

int Background::wait() {
  char byte = 0;
  ssize_t n = 0;
  while ((n = read(ready_, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (n == 1) return kExitOk;
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : kExitOther;
}

}  // namespace vellum::cli
