// interfaces/atomic_file/file_journal.hpp: the journal of a file: found after a crash, or created.
#pragma once

#include <vellum/atomic_file.hpp>

#include <memory>
#include <optional>
#include <string>

#include "base/files/file.hpp"
#include "interfaces/atomic_file/medium.hpp"
#include "interfaces/atomic_file/redo_journal.hpp"

namespace vellum::atomic_file {

// The file on the requested medium. automatic: persistent memory when the file is in it.
// Errc::unsupported.
std::unique_ptr<MediumFile> image_of(base::File& file, Medium medium);

class FileJournal {
 public:
  // Applies the journal of a crash to the file and continues with it, or creates one. It is on the
  // file's medium, and in persistent memory it has `journal_bytes` at once.
  // `image` becomes the file on its medium. Errors: AtomicFile::open().
  static FileJournal open(base::Fs& fs, const std::string& path, base::File& file, Medium medium,
                          std::uint64_t journal_bytes, std::unique_ptr<MediumFile>& image);
  // Only applies a crash's journal, then removes it, or keeps it when it is corrupted.
  static RecoveryReport recover(base::Fs& fs, const std::string& path, base::File& file,
                                const RecoveryOptions& options);

  RedoJournal& log() noexcept { return log_; }
  // REQUIRES: it is empty. Durable on return.
  void remove(base::Fs& fs, const std::string& path);

 private:
  FileJournal(std::unique_ptr<base::File> file, RedoJournal log)
      : file_(std::move(file)), log_(std::move(log)) {}
  static FileJournal make(base::Fs& fs, const std::string& path, const base::File& file,
                          bool mapped, std::uint64_t journal_bytes);

  std::unique_ptr<base::File> file_;  // holds the lock
  RedoJournal log_;
};

}  // namespace vellum::atomic_file
