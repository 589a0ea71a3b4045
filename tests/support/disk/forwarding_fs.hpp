// Passes every call on to another file system. Tests override the calls that they observe or
// change.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file.hpp"

namespace vellum::test {

class ForwardingFile : public base::File {
 public:
  explicit ForwardingFile(std::unique_ptr<base::File> below) : below_(std::move(below)) {}

  const std::string& path() const noexcept override { return below_->path(); }
  std::uint64_t size_bytes() const override { return below_->size_bytes(); }
  void pread(std::span<std::byte> out, std::uint64_t at) const override { below_->pread(out, at); }
  int try_pread(std::span<std::byte> out, std::uint64_t at) const noexcept override {
    return below_->try_pread(out, at);
  }
  void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
    below_->pwrite(bytes, at);
  }
  void begin_read(std::uint64_t at, std::uint64_t length) const noexcept override {
    below_->begin_read(at, length);
  }
  void begin_flush(std::uint64_t at, std::uint64_t length) noexcept override {
    below_->begin_flush(at, length);
  }
  void sync_data() override { below_->sync_data(); }
  void truncate(std::uint64_t size) override { below_->truncate(size); }
  void allocate(std::uint64_t at, std::uint64_t length) override { below_->allocate(at, length); }
  void punch(std::uint64_t at, std::uint64_t length) override { below_->punch(at, length); }
  bool try_lock_exclusive() override { return below_->try_lock_exclusive(); }
  bool try_lock_shared() override { return below_->try_lock_shared(); }
  bool pin_byte(std::uint64_t at) override { return below_->pin_byte(at); }
  bool try_lock_byte(std::uint64_t at) override { return below_->try_lock_byte(at); }
  bool byte_locked(std::uint64_t at) const override { return below_->byte_locked(at); }
  void unpin_byte(std::uint64_t at) override { below_->unpin_byte(at); }
  std::vector<std::uint64_t> pinned_bytes() const override { return below_->pinned_bytes(); }
  bool replaced() const override { return below_->replaced(); }
  std::uint64_t allocated_bytes() const override { return below_->allocated_bytes(); }
  std::uint64_t next_data(std::uint64_t at) const override { return below_->next_data(at); }
  std::uint64_t next_hole(std::uint64_t at) const override { return below_->next_hole(at); }
  base::FileIdentity identity() const override { return below_->identity(); }
  int descriptor() const noexcept override { return below_->descriptor(); }

 private:
  std::unique_ptr<base::File> below_;
};

class ForwardingFs : public base::Fs {
 public:
  explicit ForwardingFs(base::Fs& below) : below_(below) {}

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return below_.open(path, mode);
  }
  void rename(const std::string& from, const std::string& to) override { below_.rename(from, to); }
  void rename_new(const std::string& from, const std::string& to) override {
    below_.rename_new(from, to);
  }
  void link(const std::string& from, const std::string& to) override { below_.link(from, to); }
  void unlink(const std::string& path) override { below_.unlink(path); }
  void make_directory(const std::string& path) override { below_.make_directory(path); }
  void remove_directory(const std::string& path) override { below_.remove_directory(path); }
  void sync_directory(const std::string& path) override { below_.sync_directory(path); }
  std::vector<base::DirEntry> list(const std::string& path) const override {
    return below_.list(path);
  }
  bool exists(const std::string& path) const override { return below_.exists(path); }
  bool is_directory(const std::string& path) const override { return below_.is_directory(path); }
  std::optional<base::DirectoryState> directory_state(const std::string& path) const override {
    return below_.directory_state(path);
  }
  void set_directory_time(const std::string& path, std::int64_t time_ns) override {
    below_.set_directory_time(path, time_ns);
  }

 private:
  base::Fs& below_;
};

}  // namespace vellum::test
