// A file system that calls a test's hooks before and after some of its calls: to stop a thread
// there, to kill the process, or to run other code in between. Set hooks before other threads use
// the file system.
#pragma once

#include <functional>

#include "support/disk/forwarding_fs.hpp"

namespace vellum::test {

struct Hooks {
  using Hook = std::function<void(const std::string& path)>;
  Hook before_create, after_open, before_read, before_write, before_rename, before_link,
      before_unlink, before_make_directory;
  Hook after_list;                 // of a directory
  Hook before_lock;                // of a whole file
  Hook byte_refused, byte_locked;  // try_lock_byte()
};

class HookFs : public ForwardingFs {
 public:
  explicit HookFs(base::Fs& below) : ForwardingFs(below) {}
  Hooks hooks;

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    if (mode == base::OpenMode::create_new) call(hooks.before_create, path);
    auto file = std::make_unique<File>(*this, ForwardingFs::open(path, mode));
    if (mode == base::OpenMode::read_write) call(hooks.after_open, path);
    return file;
  }
  void rename(const std::string& from, const std::string& to) override {
    call(hooks.before_rename, to);
    ForwardingFs::rename(from, to);
  }
  void rename_new(const std::string& from, const std::string& to) override {
    call(hooks.before_rename, to);
    ForwardingFs::rename_new(from, to);
  }
  void link(const std::string& from, const std::string& to) override {
    call(hooks.before_link, to);
    ForwardingFs::link(from, to);
  }
  void unlink(const std::string& path) override {
    call(hooks.before_unlink, path);
    ForwardingFs::unlink(path);
  }
  void make_directory(const std::string& path) override {
    call(hooks.before_make_directory, path);
    ForwardingFs::make_directory(path);
  }
  std::vector<base::DirEntry> list(const std::string& path) const override {
    auto entries = ForwardingFs::list(path);
    call(hooks.after_list, path);
    return entries;
  }

 private:
  class File : public ForwardingFile {
   public:
    File(HookFs& fs, std::unique_ptr<base::File> below)
        : ForwardingFile(std::move(below)), fs_(fs) {}
    void pread(std::span<std::byte> out, std::uint64_t at) const override {
      call(fs_.hooks.before_read, path());
      ForwardingFile::pread(out, at);
    }
    void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
      call(fs_.hooks.before_write, path());
      ForwardingFile::pwrite(bytes, at);
    }
    bool try_lock_exclusive() override {
      call(fs_.hooks.before_lock, path());
      return ForwardingFile::try_lock_exclusive();
    }
    bool try_lock_byte(std::uint64_t at) override {
      const bool locked = ForwardingFile::try_lock_byte(at);
      call(locked ? fs_.hooks.byte_locked : fs_.hooks.byte_refused, path());
      return locked;
    }

   private:
    HookFs& fs_;
  };

  static void call(const Hooks::Hook& hook, const std::string& path) {
    if (hook) hook(path);
  }
};

}  // namespace vellum::test
