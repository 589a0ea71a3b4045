// Notes which bytes of which files are read. What reading gives depends on those bytes alone, so
// damage elsewhere cannot change it: that makes trying every bit of a store affordable.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace vellum::corruption {

// For each file, which of its bytes were read.
using Trace = std::map<std::string, std::vector<bool>>;

class TracingFs final : public base::Fs {
 public:
  explicit TracingFs(base::Fs& below) : below_(below) {}
  void start(Trace& into) { trace_ = &into; }
  void stop() { trace_ = nullptr; }

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<Traced>(*this, below_.open(path, mode));
  }
  void rename(const std::string& from, const std::string& to) override { below_.rename(from, to); }
  void rename_new(const std::string& from, const std::string& to) override {
    below_.rename_new(from, to);
  }
  void unlink(const std::string& path) override { below_.unlink(path); }
  void make_directory(const std::string& path) override { below_.make_directory(path); }
  void remove_directory(const std::string& path) override { below_.remove_directory(path); }
  void sync_directory(const std::string& path) override { below_.sync_directory(path); }
  std::vector<base::DirEntry> list(const std::string& path) const override {
    return below_.list(path);
  }
  bool exists(const std::string& path) const override { return below_.exists(path); }

 private:
  class Traced final : public base::File {
   public:
    Traced(TracingFs& fs, std::unique_ptr<base::File> file) : fs_(fs), file_(std::move(file)) {}
    const std::string& path() const noexcept override { return file_->path(); }
    std::uint64_t size_bytes() const override { return file_->size_bytes(); }
    void pread(std::span<std::byte> out, std::uint64_t at) const override {
      fs_.note(file_->path(), at, out.size());
      file_->pread(out, at);
    }
    int try_pread(std::span<std::byte> out, std::uint64_t at) const noexcept override {
      fs_.note(file_->path(), at, out.size());
      return file_->try_pread(out, at);
    }
    void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
      file_->pwrite(bytes, at);
    }
    void sync_data() override { file_->sync_data(); }
    void truncate(std::uint64_t size) override { file_->truncate(size); }
    void allocate(std::uint64_t at, std::uint64_t length) override { file_->allocate(at, length); }
    void punch(std::uint64_t at, std::uint64_t length) override { file_->punch(at, length); }
    bool try_lock_exclusive() override { return file_->try_lock_exclusive(); }
    bool try_lock_shared() override { return file_->try_lock_shared(); }
    bool mark_byte(std::uint64_t at) override { return file_->mark_byte(at); }
    void unmark_byte(std::uint64_t at) override { file_->unmark_byte(at); }
    std::vector<std::uint64_t> marked_bytes() const override { return file_->marked_bytes(); }
    bool replaced() const override { return file_->replaced(); }
    std::uint64_t allocated_bytes() const override { return file_->allocated_bytes(); }

   private:
    TracingFs& fs_;
    std::unique_ptr<base::File> file_;
  };

  void note(const std::string& path, std::uint64_t at, std::size_t length) const {
    if (trace_ == nullptr) return;
    auto& bytes = (*trace_)[path];
    if (bytes.size() < at + length) bytes.resize(static_cast<std::size_t>(at + length));
    for (std::size_t i = 0; i < length; ++i) bytes[static_cast<std::size_t>(at) + i] = true;
  }

  base::Fs& below_;
  Trace* trace_ = nullptr;
};

inline bool was_read(const Trace& trace, const std::string& path, std::uint64_t at) {
  const auto found = trace.find(path);
  return found != trace.end() && at < found->second.size() &&
         found->second[static_cast<std::size_t>(at)];
}

}  // namespace vellum::corruption
