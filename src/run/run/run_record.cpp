#include "run/run/run_record.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <xxhash.h>

#include "run/process/real.hpp"
#include "run/run/program_kind.hpp"

namespace vellum::preload {
namespace {

RunRecord* record = nullptr;  // set once, before the program's own code runs
char record_path[64];         // "/proc/PID/fd/N"

// The process ID may have been reused: nothing is written before the nonce matches.
RunRecord* map(const char* path, std::uint64_t nonce) noexcept {
  const int fd = VELLUM_REAL(open)(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat status;
  void* at = MAP_FAILED;
  if (VELLUM_REAL(fstat)(fd, &status) == 0 && status.st_size == sizeof(RunRecord))
    at = VELLUM_REAL(mmap)(nullptr, sizeof(RunRecord), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  VELLUM_REAL(close)(fd);
  if (at == MAP_FAILED) return nullptr;
  auto* const found = static_cast<RunRecord*>(at);
  if (found->nonce == nonce) return found;
  VELLUM_REAL(munmap)(at, sizeof(RunRecord));
  return nullptr;
}

}  // namespace

void attach_record() noexcept {
  const char* const value = std::getenv(kRecordVariable);
  const char* const space = value != nullptr ? std::strchr(value, ' ') : nullptr;
  if (space == nullptr || space - value >= static_cast<std::ptrdiff_t>(sizeof record_path)) return;
  std::copy(value, space, record_path);
  record = map(record_path, std::strtoull(space + 1, nullptr, 16));
}

void note_opened(std::size_t target) noexcept {
  if (record != nullptr && target < RunRecord::kMaxTargets) ++record->targets[target].opened;
}

void note_changed(std::size_t target) noexcept {
  if (record != nullptr && target < RunRecord::kMaxTargets) ++record->targets[target].changed;
}

// If the table is full, the program counts as reported.
bool note_program(const char* path, ProgramKind kind) noexcept {
  if (record == nullptr) return true;
  const std::size_t length = std::strlen(path);
  const std::uint64_t hash = XXH3_64bits(path, length) | 1;
  for (RunRecord::Program& program : record->programs) {
    std::uint64_t found = 0;
    if (!program.hash.compare_exchange_strong(found, hash)) {
      if (found == hash) return false;
      continue;
    }
    std::copy_n(path, std::min(length, sizeof program.path - 1), program.path);
    program.kind = static_cast<std::uint32_t>(kind);
    return true;
  }
  return false;
}

void note_whether_record_is_reachable() noexcept {
  if (record == nullptr) return;
  // The test is for open(2), by the effective user; access(2) tests for the real one.
  if (VELLUM_REAL(faccessat)(AT_FDCWD, record_path, R_OK | W_OK, AT_EACCESS) != 0)
    ++record->unreachable;
}

}  // namespace vellum::preload
