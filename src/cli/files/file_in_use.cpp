#include "cli/files/file_in_use.hpp"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "interfaces/atomic_file/journal_file.hpp"

namespace vellum::cli {
bool is_open_in_other_process(const base::File& file, FileUse use) {
  // A process that opens the file during the lease waits, and this process gets a signal.
  std::signal(SIGIO, SIG_IGN);
  const int lease = use == FileUse::writing ? F_RDLCK : F_WRLCK;
  if (::fcntl(file.descriptor(), F_SETLEASE, lease) != 0) return errno == EAGAIN;
  ::fcntl(file.descriptor(), F_SETLEASE, F_UNLCK);
  return false;
}

void require_no_journal(const std::string& path) {
  const std::string journal = atomic_file::journal_path(path);
  if (!base::posix_fs().exists(journal)) return;
  fail(Errc::busy, "{}: a program uses {}, or has crashed; after a crash, run vellum recover {}",
       journal, path, path);
}

}  // namespace vellum::cli
