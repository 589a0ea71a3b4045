// store/packs/pack_file.hpp: a pack that is open for reading and can be closed concurrently.
//
// A thread that found a pack in a PackSet reads it without a lock and at any time, even in the
// fault handler. Therefore a pack that gc removed is closed only when no thread is reading it.
// Later reads fail as they do when gc has truncated the file.
//
// Threads: all calls from any thread.
#pragma once

#include <atomic>
#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/read_only_file.hpp"

namespace vellum::store {

class PackFile final : public base::ReadOnlyFile {
 public:
  explicit PackFile(std::unique_ptr<base::File> file)
      : path_(file->path()), file_(std::move(file)) {
    assert(file_ != nullptr);
  }

  // Closes the file. False: a thread is reading it. The file then stays open, but no new read
  // begins.
  bool try_close() noexcept;
  bool is_closed() const noexcept { return closed_.load(); }

  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size_bytes() const override;
  void pread(std::span<std::byte> out, std::uint64_t offset_bytes) const override;
  int try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept override;
  bool pin_byte(std::uint64_t offset_bytes) override;
  bool byte_locked(std::uint64_t offset_bytes) const override;
  void unpin_byte(std::uint64_t offset_bytes) override;
  std::vector<std::uint64_t> pinned_bytes() const override;
  bool replaced() const override;  // a closed pack counts as replaced
  std::uint64_t allocated_bytes() const override;
  std::uint64_t next_data(std::uint64_t offset_bytes) const override;
  std::uint64_t next_hole(std::uint64_t offset_bytes) const override;
  base::FileIdentity identity() const override;

 private:
  // Keeps the file open during its lifetime.
  class ReadGuard;

  const std::string path_;
  std::unique_ptr<base::File> file_;
  mutable std::atomic<std::uint32_t> users_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace vellum::store
