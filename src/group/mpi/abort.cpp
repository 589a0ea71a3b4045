// Ends a job after an error, once the launcher has read its message.
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vellum/mpi.hpp>

namespace vellum {
namespace {

// Whether the launcher has read all output. True if that is unknown.
bool is_read(int fd) noexcept {
  struct stat status{};
  if (fstat(fd, &status) != 0) return true;
  const bool pipe = S_ISFIFO(status.st_mode);
  if (!pipe && !S_ISSOCK(status.st_mode) && !S_ISCHR(status.st_mode)) return true;
  int left = 0;
  return ioctl(fd, pipe ? FIONREAD : TIOCOUTQ, &left) != 0 || left == 0;
}

}  // namespace

void abort_job(MPI_Comm communicator, const std::string& reason, int status) noexcept {
  constexpr std::chrono::milliseconds kLongest{5000}, kStep{1};
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  std::fflush(stdout);
  std::fprintf(stderr, "rank %d: %s\n", rank, reason.c_str());
  std::fflush(stderr);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while ((!is_read(STDOUT_FILENO) || !is_read(STDERR_FILENO)) &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kStep);
  MPI_Abort(communicator, status);
  _exit(status);  // if MPI_Abort() returns
}

}  // namespace vellum
