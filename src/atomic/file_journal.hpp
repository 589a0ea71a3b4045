// atomic/file_journal.hpp: the journal that belongs to a file: found after a crash, or made.
#pragma once

#include <vellum/atomic_file.hpp>

#include <memory>
#include <optional>
#include <string>

#include "atomic/medium.hpp"
#include "atomic/redo_journal.hpp"
#include "base/file.hpp"

namespace vellum::atomic {

// The file on the medium that is asked for; automatic: in persistent memory when it is there.
// Errc::unsupported.
std::unique_ptr<MediumFile> image_of(base::File& file, Medium medium);

class FileJournal {
 public:
  // Takes the journal that a crash left, brings it to the file, and goes on with it; or makes one.
  // It is on the medium of the file, and `journal_bytes` long at once in persistent memory. `image`
  // becomes the file on its medium. Errors: AtomicFile::open().
  static FileJournal open(base::Fs& fs, const std::string& path, base::File& file, Medium medium,
                          std::uint64_t journal_bytes, std::unique_ptr<MediumFile>& image);
  // Only the first half, and it is removed then, or kept when it is damaged.
  static RecoveryReport recover(base::Fs& fs, const std::string& path, base::File& file,
                                const RecoveryOptions& options);

  RedoJournal& log() noexcept { return log_; }
  // REQUIRES: it is empty. Durable when it returns.
  void remove(base::Fs& fs, const std::string& path);

 private:
  FileJournal(std::unique_ptr<base::File> file, RedoJournal log)
      : file_(std::move(file)), log_(std::move(log)) {}
  static FileJournal make(base::Fs& fs, const std::string& path, const base::File& file,
                          bool mapped, std::uint64_t journal_bytes);

  std::unique_ptr<base::File> file_;  // holds the lock
  RedoJournal log_;
};

}  // namespace vellum::atomic
