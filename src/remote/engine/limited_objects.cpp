#include "remote/engine/limited_objects.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/fail.hpp"

namespace vellum::remote {
namespace {

using Clock = std::chrono::steady_clock;

// Each transfer has its own time, of its bytes divided by the rate, after those of earlier ones.
class Pace {
 public:
  explicit Pace(std::uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  // Waits until the time of this transfer has passed. False: stop() was called.
  bool wait_for(std::size_t bytes) {
    if (bytes_per_second_ == 0) return true;
    const std::chrono::duration<double> time(static_cast<double>(bytes) /
                                             static_cast<double>(bytes_per_second_));
    std::unique_lock lock(mutex_);
    next_ = std::max(next_, Clock::now()) + std::chrono::ceil<Clock::duration>(time);
    return !wakes_.wait_until(lock, next_, [&] { return stopped_; });
  }
  void stop() noexcept {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wakes_.notify_all();
  }

 private:
  const std::uint64_t bytes_per_second_;
  std::condition_variable wakes_;
  std::mutex mutex_;  // guards the members below
  Clock::time_point next_{};
  bool stopped_ = false;
};

class LimitedObjects final : public ObjectStore {
 public:
  LimitedObjects(std::unique_ptr<ObjectStore> objects, const TransferLimits& limits)
      : objects_(std::move(objects)),
        connections_(limits.connections),
        pace_(limits.bytes_per_second) {}

  const std::string& url() const noexcept override { return objects_->url(); }
  std::size_t connections() const noexcept override {
    return connections_ != 0 ? connections_ : objects_->connections();
  }
  ObjectVersions* versions() noexcept override { return objects_->versions(); }
  std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) override {
    return paced(key, objects_->get(key, limit_bytes));
  }
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    return paced(key, objects_->get_range(key, range));
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most_bytes) override {
    return paced(key, objects_->get_start(key, most_bytes));
  }
  // Not paced, like a listing: the answer is next to nothing.
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    return objects_->has(key, size_bytes);
  }
  bool use_version(const std::string& key, std::size_t number) override {
    return objects_->use_version(key, number);
  }
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    wait_for(key, bytes.size());
    return objects_->put_if_absent(key, bytes);
  }
  void put(const std::string& key, std::span<const std::byte> bytes) override {
    wait_for(key, bytes.size());
    objects_->put(key, bytes);
  }
  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    return objects_->list(prefix, most);
  }
  void make_durable(const std::string& key) override { objects_->make_durable(key); }
  void remove(const std::string& key) override { objects_->remove(key); }
  void remove_all(std::span<const std::string> keys) override { objects_->remove_all(keys); }
  void stop() noexcept override {
    pace_.stop();
    objects_->stop();
  }
  void sweep() noexcept override { objects_->sweep(); }

 private:
  void wait_for(const std::string& key, std::size_t bytes) {
    if (!pace_.wait_for(bytes)) {
      fail(Errc::io, "{}: {}: not transferred when the command was to end", url(), key);
    }
  }
  std::vector<std::byte> paced(const std::string& key, std::vector<std::byte> bytes) {
    wait_for(key, bytes.size());
    return bytes;
  }

  const std::unique_ptr<ObjectStore> objects_;
  const std::size_t connections_;
  Pace pace_;
};

}  // namespace

std::unique_ptr<ObjectStore> limit_transfers(std::unique_ptr<ObjectStore> objects,
                                             const TransferLimits& limits) {
  if (limits.bytes_per_second == 0 && limits.connections == 0) return objects;
  return std::make_unique<LimitedObjects>(std::move(objects), limits);
}

}  // namespace vellum::remote
