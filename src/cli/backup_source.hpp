// cli/backup_source.hpp: what `vellum backup` reads: a file that others may have open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace vellum::cli {

class BackupSource {
 public:
  virtual ~BackupSource() = default;
  BackupSource() = default;
  BackupSource(const BackupSource&) = delete;
  BackupSource& operator=(const BackupSource&) = delete;

  virtual std::uint64_t expected_bytes() const = 0;
  // As ReadFn. The end comes when all of it was of one moment; otherwise Errc::busy, which names
  // the file.
  virtual std::size_t read(void* to, std::size_t capacity_bytes) = 0;
};

// LMDB's file as of one transaction, beside its writers. `stopped`, and any other file: as it is,
// if nobody writes it meanwhile.
std::unique_ptr<BackupSource> open_backup_source(const std::string& file, bool stopped);

}  // namespace vellum::cli
