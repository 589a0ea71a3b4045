// cli/files/backup_source.hpp: the input of `vellum backup`: a file that others may have open.
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
  // Like ReadFn. The end is reported only if all bytes are of one moment; otherwise throws
  // Errc::busy, which names the file.
  virtual std::size_t read(void* to, std::size_t capacity_bytes) = 0;
};

// Reads LMDB's file as of one transaction, beside its writers. With `stopped`, and for any other
// file, reads it as it is, provided that nobody writes it meanwhile.
std::unique_ptr<BackupSource> open_backup_source(const std::string& file, bool stopped);

}  // namespace vellum::cli
