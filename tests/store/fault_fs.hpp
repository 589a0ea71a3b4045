// A file system that counts its calls and fails the one it is told to.
#pragma once

#include <array>
#include <mutex>
#include <string>

#include "base/file.hpp"
#include "vellum/error.hpp"

namespace vellum::store::test {

enum class Call {
  open,
  create,
  write,
  sync,
  truncate,
  punch,
  rename,
  unlink,
  mkdir,
  sync_dir,
  mark,
  count
};

class FaultFs final : public base::Fs {
 public:
  explicit FaultFs(base::Fs& real) : real_(real) {}

  // The nth call from now on (1: the next one) fails; with `lasting` all after it as well. A write
  // that fails writes half of its bytes first; a sync that fails syncs nothing.
  void fail_nth(Call call, std::uint64_t nth, Errc code, bool lasting = false) {
    const std::lock_guard guard(mutex_);
    at(call) = {0, nth, code, lasting};
  }
  void heal() {
    const std::lock_guard guard(mutex_);
    for (Plan& p : plans_) p.nth = 0;
  }
  std::uint64_t seen(Call call) {
    const std::lock_guard guard(mutex_);
    return at(call).seen;
  }
  void reset_counts() {
    const std::lock_guard guard(mutex_);
    for (Plan& p : plans_) p.seen = 0;
  }

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    check(mode == base::OpenMode::create_new ? Call::create : Call::open, path);
    return std::make_unique<FaultFile>(*this, real_.open(path, mode));
  }
  void rename(const std::string& from, const std::string& to) override {
    check(Call::rename, to);
    real_.rename(from, to);
  }
  void rename_new(const std::string& from, const std::string& to) override {
    check(Call::rename, to);
    real_.rename_new(from, to);
  }
  void unlink(const std::string& path) override {
    check(Call::unlink, path);
    real_.unlink(path);
  }
  void make_directory(const std::string& path) override {
    check(Call::mkdir, path);
    real_.make_directory(path);
  }
  void remove_directory(const std::string& path) override { real_.remove_directory(path); }
  void sync_directory(const std::string& path) override {
    check(Call::sync_dir, path);
    real_.sync_directory(path);
  }
  std::vector<base::DirEntry> list(const std::string& path) const override {
    return real_.list(path);
  }
  bool exists(const std::string& path) const override { return real_.exists(path); }

 private:
  struct Plan {
    std::uint64_t seen = 0, nth = 0;
    Errc code = Errc::io;
    bool lasting = false;
  };

  class FaultFile final : public base::File {
   public:
    FaultFile(FaultFs& fs, std::unique_ptr<base::File> real) : fs_(fs), real_(std::move(real)) {}
    const std::string& path() const noexcept override { return real_->path(); }
    std::uint64_t size_bytes() const override { return real_->size_bytes(); }
    void pread(std::span<std::byte> out, std::uint64_t offset) const override {
      real_->pread(out, offset);
    }
    int try_pread(std::span<std::byte> out, std::uint64_t offset) const noexcept override {
      return real_->try_pread(out, offset);
    }
    void pwrite(std::span<const std::byte> bytes, std::uint64_t offset) override {
      try {
        fs_.check(Call::write, path());
      } catch (...) {
        real_->pwrite(bytes.first(bytes.size() / 2), offset);
        throw;
      }
      real_->pwrite(bytes, offset);
    }
    void sync_data() override {
      fs_.check(Call::sync, path());
      real_->sync_data();
    }
    void truncate(std::uint64_t size) override {
      fs_.check(Call::truncate, path());
      real_->truncate(size);
    }
    void allocate(std::uint64_t offset, std::uint64_t length) override {
      real_->allocate(offset, length);
    }
    void punch(std::uint64_t offset, std::uint64_t length) override {
      fs_.check(Call::punch, path());
      real_->punch(offset, length);
    }
    bool try_lock_exclusive() override { return real_->try_lock_exclusive(); }
    bool try_lock_shared() override { return real_->try_lock_shared(); }
    bool mark_byte(std::uint64_t at) override {
      fs_.check(Call::mark, path());
      return real_->mark_byte(at);
    }
    void unmark_byte(std::uint64_t at) override { real_->unmark_byte(at); }
    std::vector<std::uint64_t> marked_bytes() const override { return real_->marked_bytes(); }
    bool replaced() const override { return real_->replaced(); }
    std::uint64_t allocated_bytes() const override { return real_->allocated_bytes(); }

   private:
    FaultFs& fs_;
    std::unique_ptr<base::File> real_;
  };

  Plan& at(Call call) { return plans_[static_cast<std::size_t>(call)]; }
  void check(Call call, const std::string& path) {
    const std::lock_guard guard(mutex_);
    Plan& p = at(call);
    ++p.seen;
    if (p.nth == 0 || p.seen < p.nth || (p.seen > p.nth && !p.lasting)) return;
    throw Error(p.code, path + ": planned failure");
  }

  base::Fs& real_;
  std::mutex mutex_;
  std::array<Plan, static_cast<std::size_t>(Call::count)> plans_;
};

}  // namespace vellum::store::test
