// Stores that are opened by URL, with engines that count, fail and damage requests.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vellum/store.hpp>

#include "region/api/store_impl.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/remote_fixture.hpp"
#include "support/paging.hpp"

namespace vellum::remote::test {

inline constexpr std::size_t kConnections = 8;
inline constexpr const char* kPartOf = "part of ";

// The manipulation of requests: get() of a key, get_range() as kPartOf + key, and list() as "list
// PREFIX". It may change while threads of an open store make requests.
class Interference {
 public:
  using Before = std::function<void(const std::string& key)>;  // may throw, may wait
  using After = std::function<void(const std::string& key, std::vector<std::byte>&)>;

  void set_before(Before before) {
    const std::lock_guard lock(mutex_);
    before_ = std::move(before);
  }
  void set_after(After after) {
    const std::lock_guard lock(mutex_);
    after_ = std::move(after);
  }
  void begin(const std::string& key) {
    Before before;
    {
      const std::lock_guard lock(mutex_);
      ++gets_[key];
      before = before_;
    }
    if (before) before(key);
  }
  void end(const std::string& key, std::vector<std::byte>& bytes) {
    After after;
    {
      const std::lock_guard lock(mutex_);
      after = after_;
    }
    if (after) after(key, bytes);
  }
  std::map<std::string, int> gets() {
    const std::lock_guard lock(mutex_);
    return gets_;
  }
  int gets_of(const std::string& prefix) {
    int sum = 0;
    for (const auto& [key, count] : gets()) sum += key.starts_with(prefix) ? count : 0;
    return sum;
  }

  // Threads that have called url(): each opening does so at its start.
  std::size_t threads_at_url() {
    const std::lock_guard lock(mutex_);
    return at_url_.size();
  }
  void note_url() {
    const std::lock_guard lock(mutex_);
    at_url_.insert(std::this_thread::get_id());
  }

 private:
  std::mutex mutex_;
  Before before_;
  After after_;
  std::map<std::string, int> gets_;
  std::set<std::thread::id> at_url_;
};

class InterferedObjects final : public ObjectStore {
 public:
  InterferedObjects(std::shared_ptr<ObjectStore> objects, std::shared_ptr<Interference> with)
      : objects_(std::move(objects)), with_(std::move(with)) {}

  const std::string& url() const noexcept override {
    with_->note_url();
    return objects_->url();
  }
  std::size_t connections() const noexcept override { return kConnections; }
  const ObjectsKey* objects_key() const noexcept override { return objects_->objects_key(); }
  std::vector<std::byte> get(const std::string& key, std::uint64_t limit) override {
    with_->begin(key);
    auto bytes = objects_->get(key, limit);
    with_->end(key, bytes);
    return bytes;
  }
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    with_->begin(kPartOf + key);
    auto bytes = objects_->get_range(key, range);
    with_->end(kPartOf + key, bytes);
    return bytes;
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most) override {
    with_->begin(kPartOf + key);
    auto bytes = objects_->get_start(key, most);
    with_->end(kPartOf + key, bytes);
    return bytes;
  }
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    with_->begin(kPartOf + key);
    return objects_->has(key, size_bytes);
  }
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    return objects_->put_if_absent(key, bytes);
  }
  void put(const std::string& key, std::span<const std::byte> bytes) override {
    objects_->put(key, bytes);
  }
  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    with_->begin("list " + prefix);
    return objects_->list(prefix, most);
  }
  void remove(const std::string& key) override { objects_->remove(key); }

 private:
  const std::shared_ptr<ObjectStore> objects_;
  const std::shared_ptr<Interference> with_;
};

class LazyTest : public RemoteTest {
 protected:
  RemoteOptions options() const {
    RemoteOptions out;
    out.cache_directory = dir.path("cache");
    out.longest_wait = std::chrono::seconds(20);
    return out;
  }
  std::shared_ptr<StoreDirectory> open_lazily(const RemoteOptions& options) const {
    return open_remote(base::posix_fs(), url(), options,
                       std::make_unique<InterferedObjects>(objects(), interference));
  }
  std::shared_ptr<ObjectStore> interfered() const {
    return std::make_shared<InterferedObjects>(objects(), interference);
  }
  std::shared_ptr<StoreDirectory> open_clone(const std::string& name) const {
    return remote::open_store(base::posix_fs(), dir.path(name), options(), interfered());
  }
  std::shared_ptr<StoreDirectory> clone_lazily(const std::string& name,
                                               std::vector<std::string> versions = {}) const {
    clone(base::posix_fs(), url(), dir.path(name), {std::move(versions), true}, nullptr,
          interfered());
    return open_clone(name);
  }
  Store open_store(const RemoteOptions& options) const {
    return StoreAccess::handle_of(open_lazily(options));
  }
  std::vector<std::filesystem::path> pieces() const {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path("r") + "/pieces")) {
      out.push_back(entry.path());
    }
    return out;
  }

  // A branch `large` of 8 MiB.
  void make_large() {
    std::mt19937_64 random(3);
    large = Model((8u << 20) / format::kPageBytes);
    store->create_branch("large", large.bytes.size(), 0);
    for (format::PageNumber p = 0; p < large.pages(); ++p) store::test::fill_text(large, p, random);
    commit(*BranchWriter::open(*store, "large"), large, true);
  }

  Model large{0};
  std::shared_ptr<Interference> interference = std::make_shared<Interference>();
};

inline void expect_bytes(const Region& region, const std::vector<std::byte>& bytes) {
  ASSERT_EQ(region.size_bytes(), bytes.size());
  EXPECT_EQ(std::memcmp(region.data(), bytes.data(), bytes.size()), 0);
}

// After an outage. A busy machine may need longer than the region's timeout.
inline bool comes_back(const Region& region) {
  return vellum::test::comes_true([&] {
    try {
      region.prefetch({0, region.size_bytes()});
      return true;
    } catch (const Error&) {
      return false;
    }
  });
}

inline void flip_byte(const std::filesystem::path& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 0x10));
}

}  // namespace vellum::remote::test
