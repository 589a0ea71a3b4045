// A file system in memory that knows what is durable: the crash test's disk.
//
// A write, truncation or hole is pending until its file is synced; a change of names is pending
// until one of the directories it touches is synced. A crash keeps what is durable and any subset
// of what is pending, in order, and may tear a pending write at 512-byte sectors.
//
// support/memory_fs.hpp is another: it looks like the kernel's files to its users (links, FIFOs,
// modes, files that were unlinked while open), and knows nothing of what lasts.
#pragma once

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "support/file_lock.hpp"
#include "vellum/error.hpp"

namespace vellum::store::test {

struct PowerCut : std::runtime_error {
  PowerCut() : std::runtime_error("power cut") {}
};

class PowerCutFs final : public base::Fs {
 public:
  PowerCutFs() { durable_.emplace("/", nullptr), live_.emplace("/", nullptr); }

  // The nth change from now on is only begun, and everything after it fails: the power is gone.
  void cut_power_at(std::uint64_t nth) { cut_at_ = changes_ + nth; }
  std::uint64_t changes() const { return changes_; }

  // What the next boot finds.
  std::unique_ptr<PowerCutFs> after_crash(std::mt19937_64& random) const {
    auto out = std::make_unique<PowerCutFs>();
    Names names = durable_;
    for (const NameChange& change : pending_names_) {
      if (random() % 2 == 0) change.apply(names);
    }
    for (const auto& [path, inode] : names) {
      std::shared_ptr<Inode> copy;
      if (inode != nullptr) {
        copy = std::make_shared<Inode>();
        copy->bytes = inode->durable;
        for (const Write& w : inode->pending) {
          if (random() % 2 == 0) apply(w, copy->bytes, &random);
        }
        copy->durable = copy->bytes;
      }
      out->durable_[path] = copy;
    }
    out->live_ = out->durable_;
    return out;
  }

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    const std::lock_guard guard(mutex_);
    const auto at = live_.find(path);
    if (mode == base::OpenMode::create_new) {
      if (at != live_.end()) throw Error(Errc::already_exists, path + ": exists");
      change();
      auto inode = std::make_shared<Inode>();
      add_name_change({parent(path)}, [path, inode](Names& n) { n[path] = inode; });
      finish_change();
      return std::make_unique<PowerCutFile>(*this, path, inode);
    }
    if (at == live_.end()) throw Error(Errc::not_found, path + ": no such file");
    if (at->second == nullptr) throw Error(Errc::corrupted, path + ": not a regular file");
    return std::make_unique<PowerCutFile>(*this, path, at->second);
  }
  void rename(const std::string& from, const std::string& to) override { move(from, to, true); }
  void rename_new(const std::string& from, const std::string& to) override {
    move(from, to, false);
  }
  void unlink(const std::string& path) override {
    const std::lock_guard guard(mutex_);
    require(path);
    change();
    add_name_change({parent(path)}, [path](Names& n) { n.erase(path); });
    finish_change();
  }
  void make_directory(const std::string& path) override {
    const std::lock_guard guard(mutex_);
    if (live_.contains(path)) throw Error(Errc::already_exists, path + ": exists");
    change();
    add_name_change({parent(path)}, [path](Names& n) { n[path] = nullptr; });
    finish_change();
  }
  void remove_directory(const std::string& path) override { unlink(path); }
  void sync_directory(const std::string& path) override {
    const std::lock_guard guard(mutex_);
    change();
    std::vector<NameChange> left;
    for (NameChange& c : pending_names_) {
      if (c.directories.contains(path)) {
        c.apply(durable_);
      } else {
        left.push_back(std::move(c));
      }
    }
    pending_names_ = std::move(left);
    finish_change();
  }
  std::vector<base::DirEntry> list(const std::string& path) const override {
    const std::lock_guard guard(mutex_);
    std::vector<base::DirEntry> out;
    for (const auto& [name, inode] : live_) {
      if (name == "/" || parent(name) != path) continue;
      out.push_back({name.substr(name.rfind('/') + 1), inode != nullptr, inode == nullptr});
    }
    return out;
  }
  bool exists(const std::string& path) const override {
    const std::lock_guard guard(mutex_);
    return live_.contains(path);
  }

 private:
  struct Write {
    enum Kind { write, truncate, punch } kind = write;
    std::uint64_t offset = 0, length = 0;
    std::vector<std::byte> bytes;
  };
  struct Inode {
    std::vector<std::byte> bytes, durable;
    std::vector<Write> pending;
    vellum::test::FileLock lock;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;
  struct NameChange {
    std::set<std::string> directories;
    std::function<void(Names&)> apply;
  };

  static std::string parent(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
  }
  static void apply(const Write& w, std::vector<std::byte>& bytes, std::mt19937_64* tear) {
    constexpr std::size_t kSector = 512;
    const std::size_t end = w.offset + (w.kind == Write::write ? w.bytes.size() : w.length);
    switch (w.kind) {
      case Write::truncate:
        bytes.resize(w.offset);
        return;
      case Write::punch:
        for (std::size_t i = w.offset; i < std::min(end, bytes.size()); ++i) bytes[i] = {};
        return;
      case Write::write:
        break;
    }
    if (bytes.size() < end) bytes.resize(end);
    const bool whole = tear == nullptr || (*tear)() % 2 == 0;
    for (std::size_t at = w.offset; at < end;) {
      const std::size_t stop = std::min(end, (at / kSector + 1) * kSector);
      if (whole || (*tear)() % 2 == 0) {
        std::memcpy(bytes.data() + at, w.bytes.data() + (at - w.offset), stop - at);
      }
      at = stop;
    }
  }

  // Every change begins with change() and ends with finish_change(): the one at which the power
  // goes leaves its pending effect, and never returns.
  void change() {
    if (cut_at_ != 0 && changes_ >= cut_at_) throw PowerCut();
    ++changes_;
    sync_counts_ = !(cut_at_ != 0 && changes_ == cut_at_);
  }
  void finish_change() {
    if (cut_at_ != 0 && changes_ >= cut_at_) throw PowerCut();
  }
  void add_name_change(std::set<std::string> directories, std::function<void(Names&)> apply_to) {
    apply_to(live_);
    pending_names_.push_back({std::move(directories), std::move(apply_to)});
  }
  void require(const std::string& path) const {
    if (!live_.contains(path)) throw Error(Errc::not_found, path + ": no such file");
  }
  void move(const std::string& from, const std::string& to, bool replace) {
    const std::lock_guard guard(mutex_);
    require(from);
    if (!replace && live_.contains(to)) throw Error(Errc::already_exists, to + ": exists");
    change();
    // A synced target directory holds the new name; whether the old one is gone by then does not
    // matter here.
    const auto inode = live_.at(from);
    add_name_change({parent(to)}, [from, to, inode](Names& n) {
      n.erase(from);
      n[to] = inode;
    });
    finish_change();
  }

  class PowerCutFile final : public base::File {
   public:
    PowerCutFile(PowerCutFs& fs, std::string path, std::shared_ptr<Inode> inode)
        : fs_(fs), path_(std::move(path)), inode_(std::move(inode)) {}
    ~PowerCutFile() override {
      const std::lock_guard guard(fs_.mutex_);
      inode_->lock.unlock(this);
    }
    const std::string& path() const noexcept override { return path_; }
    std::uint64_t size_bytes() const override {
      const std::lock_guard guard(fs_.mutex_);
      return inode_->bytes.size();
    }
    int try_pread(std::span<std::byte> out, std::uint64_t offset) const noexcept override {
      const std::lock_guard guard(fs_.mutex_);
      if (offset > inode_->bytes.size() || out.size() > inode_->bytes.size() - offset) {
        return ENODATA;
      }
      if (!out.empty()) std::memcpy(out.data(), inode_->bytes.data() + offset, out.size());
      return 0;
    }
    void pread(std::span<std::byte> out, std::uint64_t offset) const override {
      if (try_pread(out, offset) != 0) throw Error(Errc::corrupted, path_ + ": truncated");
    }
    void pwrite(std::span<const std::byte> bytes, std::uint64_t offset) override {
      add({Write::write, offset, 0, {bytes.begin(), bytes.end()}});
    }
    void truncate(std::uint64_t size) override { add({Write::truncate, size, 0, {}}); }
    void punch(std::uint64_t offset, std::uint64_t length) override {
      add({Write::punch, offset, length, {}});
    }
    void allocate(std::uint64_t, std::uint64_t) override {}
    void sync_data() override {
      const std::lock_guard guard(fs_.mutex_);
      fs_.change();
      if (!fs_.sync_counts_) throw PowerCut();  // before anything of it was done
      for (const Write& w : inode_->pending) apply(w, inode_->durable, nullptr);
      inode_->pending.clear();
      fs_.finish_change();
    }
    bool pin_byte(std::uint64_t at) override {
      const std::lock_guard guard(fs_.mutex_);
      return inode_->lock.pin(this, at);
    }
    bool try_lock_byte(std::uint64_t at) override {
      const std::lock_guard guard(fs_.mutex_);
      return inode_->lock.lock_byte(this, at);
    }
    bool byte_locked(std::uint64_t at) const override {
      const std::lock_guard guard(fs_.mutex_);
      return inode_->lock.locked_by_another(this, at);
    }
    void unpin_byte(std::uint64_t at) override {
      const std::lock_guard guard(fs_.mutex_);
      inode_->lock.unpin(this, at);
    }
    std::vector<std::uint64_t> pinned_bytes() const override {
      const std::lock_guard guard(fs_.mutex_);
      return inode_->lock.pins_of_others(this);
    }
    bool replaced() const override {
      const std::lock_guard guard(fs_.mutex_);
      const auto named = fs_.live_.find(path_);
      return named == fs_.live_.end() || named->second != inode_;
    }
    bool try_lock_exclusive() override {
      const std::lock_guard guard(fs_.mutex_);
      return inode_->lock.lock(this, true);
    }
    bool try_lock_shared() override {
      const std::lock_guard guard(fs_.mutex_);
      return inode_->lock.lock(this, false);
    }
    std::uint64_t allocated_bytes() const override { return size_bytes(); }

   private:
    void add(Write w) {
      const std::lock_guard guard(fs_.mutex_);
      fs_.change();
      apply(w, inode_->bytes, nullptr);
      inode_->pending.push_back(std::move(w));
      fs_.finish_change();
    }
    PowerCutFs& fs_;
    std::string path_;
    std::shared_ptr<Inode> inode_;
  };

  mutable std::mutex mutex_;
  Names live_, durable_;
  std::vector<NameChange> pending_names_;
  std::uint64_t changes_ = 0, cut_at_ = 0;
  bool sync_counts_ = true;
};

}  // namespace vellum::store::test
