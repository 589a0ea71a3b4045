// A process of the model, and what befalls it: at some call it is stopped while others work, is
// killed, finds the disk full, or meets a server that fails or sends damaged bytes.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "remote/engine/object_store.hpp"
#include "support/disk/forwarding_fs.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::remote::meeting {

struct Fate {
  enum class End { none, killed, disk_full, server_gone, server_fails_once, bytes_damaged };
  End end = End::none;
  std::uint64_t end_at = 0;    // the nth change, or request
  bool after = false;          // the call has had its effect
  std::uint64_t pause_at = 0;  // the nth call of any kind; 0: never
};

// Counts the calls of one actor.
//
// Threads: any. `meanwhile` runs in the thread that made the actor.
class FateAtCall {
 public:
  FateAtCall(Fate fate, std::function<void()> meanwhile)
      : fate_(fate), meanwhile_(std::move(meanwhile)) {}

  bool has_struck() const { return struck_; }
  bool was_paused() const { return paused_; }

  void look() {
    if (++calls_ != fate_.pause_at || std::this_thread::get_id() != thread_) return;
    paused_ = true;
    meanwhile_();
  }
  template <typename Call>
  auto change(bool takes_space, const Call& call) -> decltype(call()) {
    look();
    if (fate_.end == Fate::End::disk_full && takes_space && is_due(changes_, true)) {
      throw Error(Errc::no_space, "the disk is full");
    }
    return killed_around(call);
  }
  template <typename Call>
  auto request(const Call& call) -> decltype(call()) {
    look();
    const bool fails =
        fate_.end == Fate::End::server_gone || fate_.end == Fate::End::server_fails_once;
    if (!fails || !is_due(requests_, fate_.end == Fate::End::server_gone)) {
      return killed_around(call);
    }
    if (!fate_.after) throw Error(Errc::io, "the server is gone");
    call();
    throw Error(Errc::io, "the server is gone");
  }
  void damage(std::vector<std::byte>& bytes) {
    if (fate_.end != Fate::End::bytes_damaged || bytes.empty() || !is_due(replies_, false)) return;
    bytes[fate_.end_at * 7919 % bytes.size()] ^= std::byte{1};
  }

 private:
  bool is_due(std::atomic<std::uint64_t>& count, bool from_then_on) {
    const std::uint64_t n = ++count;
    if (n != fate_.end_at && (!from_then_on || n < fate_.end_at)) return false;
    return struck_ = true;
  }
  template <typename Call>
  auto killed_around(const Call& call) -> decltype(call()) {
    if (fate_.end != Fate::End::killed) return call();
    const std::uint64_t n = ++steps_;
    if (n < fate_.end_at) return call();
    struck_ = true;
    if (n == fate_.end_at && fate_.after) call();
    throw sim::PowerCut();
  }

  const Fate fate_;
  const std::function<void()> meanwhile_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::atomic<std::uint64_t> calls_{0}, changes_{0}, requests_{0}, replies_{0}, steps_{0};
  std::atomic<bool> struck_{false}, paused_{false};
};

class ActorFs final : public vellum::test::ForwardingFs {
 public:
  ActorFs(base::Fs& below, FateAtCall& fate) : ForwardingFs(below), fate_(fate) {}

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    const auto open_below = [&] { return ForwardingFs::open(path, mode); };
    if (mode == base::OpenMode::create_new) {
      return std::make_unique<File>(fate_.change(true, open_below), fate_);
    }
    fate_.look();
    return std::make_unique<File>(open_below(), fate_);
  }
  void rename(const std::string& from, const std::string& to) override {
    fate_.change(false, [&] { ForwardingFs::rename(from, to); });
  }
  void rename_new(const std::string& from, const std::string& to) override {
    fate_.change(false, [&] { ForwardingFs::rename_new(from, to); });
  }
  void link(const std::string& from, const std::string& to) override {
    fate_.change(false, [&] { ForwardingFs::link(from, to); });
  }
  void unlink(const std::string& path) override {
    fate_.change(false, [&] { ForwardingFs::unlink(path); });
  }
  void make_directory(const std::string& path) override {
    fate_.change(true, [&] { ForwardingFs::make_directory(path); });
  }
  void remove_directory(const std::string& path) override {
    fate_.change(false, [&] { ForwardingFs::remove_directory(path); });
  }
  void sync_directory(const std::string& path) override {
    fate_.change(false, [&] { ForwardingFs::sync_directory(path); });
  }
  std::vector<base::DirEntry> list(const std::string& path) const override {
    fate_.look();
    return ForwardingFs::list(path);
  }

 private:
  class File final : public vellum::test::ForwardingFile {
   public:
    File(std::unique_ptr<base::File> below, FateAtCall& fate)
        : ForwardingFile(std::move(below)), fate_(fate) {}
    void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
      fate_.change(true, [&] { ForwardingFile::pwrite(bytes, at); });
    }
    void sync_data() override {
      fate_.change(false, [&] { ForwardingFile::sync_data(); });
    }
    void truncate(std::uint64_t size) override {
      fate_.change(false, [&] { ForwardingFile::truncate(size); });
    }
    void allocate(std::uint64_t at, std::uint64_t length) override {
      fate_.change(true, [&] { ForwardingFile::allocate(at, length); });
    }
    void punch(std::uint64_t at, std::uint64_t length) override {
      fate_.change(false, [&] { ForwardingFile::punch(at, length); });
    }

   private:
    FateAtCall& fate_;
  };
  FateAtCall& fate_;
};

class ActorObjects final : public ObjectStore {
 public:
  ActorObjects(std::shared_ptr<ObjectStore> objects, FateAtCall& fate)
      : objects_(std::move(objects)), fate_(fate) {}

  const std::string& url() const noexcept override { return objects_->url(); }
  std::size_t connections() const noexcept override { return objects_->connections(); }
  const ObjectsKey* objects_key() const noexcept override { return objects_->objects_key(); }
  std::vector<std::byte> get(const std::string& key, std::uint64_t limit) override {
    auto bytes = fate_.request([&] { return objects_->get(key, limit); });
    fate_.damage(bytes);
    return bytes;
  }
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    auto bytes = fate_.request([&] { return objects_->get_range(key, range); });
    fate_.damage(bytes);
    return bytes;
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most) override {
    auto bytes = fate_.request([&] { return objects_->get_start(key, most); });
    fate_.damage(bytes);
    return bytes;
  }
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    return fate_.request([&] { return objects_->has(key, size_bytes); });
  }
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    return fate_.request([&] { return objects_->put_if_absent(key, bytes); });
  }
  void put(const std::string& key, std::span<const std::byte> bytes) override {
    fate_.request([&] { objects_->put(key, bytes); });
  }
  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    return fate_.request([&] { return objects_->list(prefix, most); });
  }
  void make_durable(const std::string& key) override {
    fate_.request([&] { objects_->make_durable(key); });
  }
  void remove(const std::string& key) override {
    fate_.request([&] { objects_->remove(key); });
  }
  void sweep() noexcept override { objects_->sweep(); }

 private:
  const std::shared_ptr<ObjectStore> objects_;
  FateAtCall& fate_;
};

// An actor's view of the disk and the remote. REQUIRES: it outlives the stores that it opens.
class Actor {
 public:
  using OpenObjects = std::function<std::shared_ptr<ObjectStore>(base::Fs&)>;
  Actor(base::Fs& disk, const OpenObjects& open, Fate fate, std::function<void()> meanwhile)
      : fate(fate, std::move(meanwhile)),
        fs(disk, this->fate),
        objects(std::make_shared<ActorObjects>(open(fs), this->fate)) {}

  FateAtCall fate;
  ActorFs fs;
  const std::shared_ptr<ObjectStore> objects;
};

}  // namespace vellum::remote::meeting
