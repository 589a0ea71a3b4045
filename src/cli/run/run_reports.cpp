#include "cli/run/run_reports.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::cli {

RunReports::RunReports() {
  constexpr std::size_t kBytes = sizeof(preload::RunRecord);
  fd_ = memfd_create("vellum-run-record", MFD_CLOEXEC);
  void* at = MAP_FAILED;
  if (fd_ >= 0 && ftruncate(fd_, kBytes) == 0)
    at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    if (fd_ >= 0) close(fd_);
    fail(Errc::io, "memory for the run's reports: {}", std::strerror(error));
  }
  record_ = static_cast<preload::RunRecord*>(at);  // initially all zero
  std::random_device random;
  record_->nonce = std::uint64_t{random()} << 32 | random();
}

RunReports::~RunReports() {
  munmap(record_, sizeof *record_);
  close(fd_);
}

std::string RunReports::variable() const {
  return fmt::format("/proc/{}/fd/{} {:x}", getpid(), fd_, record_->nonce);
}

// Omits a program whose note is incomplete because of a kill.
std::vector<RunReports::Program> RunReports::programs() const {
  std::vector<Program> out;
  for (const preload::RunRecord::Program& program : record_->programs) {
    const auto kind = static_cast<preload::ProgramKind>(program.kind.load());
    if (program.hash == 0 || kind == preload::ProgramKind{}) continue;
    out.push_back({std::string(program.path, strnlen(program.path, sizeof program.path)), kind});
  }
  return out;
}

}  // namespace vellum::cli
