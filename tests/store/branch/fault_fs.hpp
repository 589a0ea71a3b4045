// A file system that counts its calls and fails the call of a given number.
#pragma once

#include <array>
#include <mutex>
#include <string>

#include "support/disk/forwarding_fs.hpp"
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
  pin,
  count
};

class FaultFs final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;

  // The nth call from now on (1: the next one) fails; with `lasting`, all later ones fail, too.
  // Only calls whose path contains `in` count. A failing write first writes half of its bytes; a
  // failing sync syncs nothing.
  void fail_nth(Call call, std::uint64_t nth, Errc code, bool lasting = false,
                const std::string& in = "") {
    const std::lock_guard guard(mutex_);
    at(call) = {0, nth, code, lasting, in};
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
    return std::make_unique<FaultFile>(*this, ForwardingFs::open(path, mode));
  }
  void rename(const std::string& from, const std::string& to) override {
    check(Call::rename, to);
    ForwardingFs::rename(from, to);
  }
  void rename_new(const std::string& from, const std::string& to) override {
    check(Call::rename, to);
    ForwardingFs::rename_new(from, to);
  }
  void unlink(const std::string& path) override {
    check(Call::unlink, path);
    ForwardingFs::unlink(path);
  }
  void make_directory(const std::string& path) override {
    check(Call::mkdir, path);
    ForwardingFs::make_directory(path);
  }
  void sync_directory(const std::string& path) override {
    check(Call::sync_dir, path);
    ForwardingFs::sync_directory(path);
  }

 private:
  struct Plan {
    std::uint64_t seen = 0, nth = 0;
    Errc code = Errc::io;
    bool lasting = false;
    std::string in = {};
  };

  class FaultFile final : public vellum::test::ForwardingFile {
   public:
    FaultFile(FaultFs& fs, std::unique_ptr<base::File> real)
        : ForwardingFile(std::move(real)), fs_(fs) {}
    void pwrite(std::span<const std::byte> bytes, std::uint64_t offset) override {
      try {
        fs_.check(Call::write, path());
      } catch (...) {
        ForwardingFile::pwrite(bytes.first(bytes.size() / 2), offset);
        throw;
      }
      ForwardingFile::pwrite(bytes, offset);
    }
    void sync_data() override {
      fs_.check(Call::sync, path());
      ForwardingFile::sync_data();
    }
    void truncate(std::uint64_t size) override {
      fs_.check(Call::truncate, path());
      ForwardingFile::truncate(size);
    }
    void punch(std::uint64_t offset, std::uint64_t length) override {
      fs_.check(Call::punch, path());
      ForwardingFile::punch(offset, length);
    }
    bool pin_byte(std::uint64_t at) override {
      fs_.check(Call::pin, path());
      return ForwardingFile::pin_byte(at);
    }

   private:
    FaultFs& fs_;
  };

  Plan& at(Call call) { return plans_[static_cast<std::size_t>(call)]; }
  void check(Call call, const std::string& path) {
    const std::lock_guard guard(mutex_);
    Plan& p = at(call);
    if (path.find(p.in) == std::string::npos) return;
    ++p.seen;
    if (p.nth == 0 || p.seen < p.nth || (p.seen > p.nth && !p.lasting)) return;
    throw Error(p.code, path + ": planned failure");
  }

  std::mutex mutex_;
  std::array<Plan, static_cast<std::size_t>(Call::count)> plans_;
};

}  // namespace vellum::store::test
