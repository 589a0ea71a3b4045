// mount/stop_signals.cpp: see stop_signals.hpp.
#include "mount/stop_signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/fail.hpp"
#include "base/threads/start_thread.hpp"

namespace vellum::mount {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// The handler writes to a pipe, so that any thread may get the signal.
int signal_pipe[2] = {-1, -1};

void tell(int) {
  const int error = errno;
  const char byte = 0;
  [[maybe_unused]] const ssize_t ignored =
      write(signal_pipe[1], &byte, 1);  // a full pipe is a notification already
  errno = error;
}

// Without SA_RESTART: the signal interrupts the loop.
void install(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

// syncfs(2) does not wait for the writes that it causes in FUSE, so each file needs a call.
void write_back(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;  // already unmounted, which has written everything back
  fsync(fd);           // an error is reported again by the last commit
  close(fd);
}

}  // namespace

StopSignals::StopSignals(fuse_session* session, std::vector<std::string> written)
    : session_(session), written_(std::move(written)), loop_(pthread_self()) {
  if (pipe2(signal_pipe, O_CLOEXEC) != 0) fail(Errc::io, "pipe: {}", std::strerror(errno));
  fcntl(signal_pipe[1], F_SETFL, O_NONBLOCK);
  waiting_ = base::start_thread("waits for signals", [this] { wait_and_stop(); });
  install(tell);
}

void StopSignals::wait_and_stop() {
  char byte = 0;
  while (read(signal_pipe[0], &byte, 1) < 0 && errno == EINTR) {
  }
  if (ended_) return;
  for (const std::string& file : written_) write_back(file);
  fuse_session_exit(session_);
  // Repeated: the loop may have checked just before the signal, and begun to wait just after.
  while (!ended_) {
    pthread_kill(loop_, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

StopSignals::~StopSignals() {
  ended_ = true;
  tell(0);
  waiting_.join();
  install(SIG_IGN);  // the remaining steps are not interrupted
  for (int& end : signal_pipe) {
    close(end);
    end = -1;
  }
}

}  // namespace vellum::mount
