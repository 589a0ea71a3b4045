// Recovery of an atomic file without opening it.
#include <vellum/atomic_file.hpp>

#include "base/files/real_path.hpp"
#include "interfaces/atomic_file/file_journal.hpp"

namespace vellum {

RecoveryReport AtomicFile::recover(const std::string& path, const RecoveryOptions& options) {
  base::Fs& fs = base::posix_fs();
  const std::string real = base::real_path(path);
  const auto file = fs.open(real, base::OpenMode::read_write);
  return atomic_file::FileJournal::recover(fs, real, *file, options);
}

}  // namespace vellum
