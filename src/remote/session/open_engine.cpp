#include "remote/session/open_engine.hpp"

#include "remote/engine/directory_engine.hpp"
#include "remote/engine/limited_objects.hpp"
#include "remote/engine/url.hpp"
#include "remote/s3/s3_engine.hpp"

#include <mutex>

namespace vellum::remote {
namespace {

constexpr std::size_t kConnectionsLater = 16;  // an engine with fewer queues the calls

class LaterObjects final : public ObjectStore {
 public:
  LaterObjects(base::Fs& fs, std::string url, std::chrono::milliseconds wait)
      : fs_(fs), url_(std::move(url)), wait_(wait) {}

  const std::string& url() const noexcept override { return url_; }
  std::size_t connections() const noexcept override { return kConnectionsLater; }
  std::vector<std::byte> get(const std::string& key, std::uint64_t limit_bytes) override {
    return now().get(key, limit_bytes);
  }
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    return now().get_range(key, range);
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most_bytes) override {
    return now().get_start(key, most_bytes);
  }
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    return now().has(key, size_bytes);
  }
  bool use_version(const std::string& key, std::size_t number) override {
    return now().use_version(key, number);
  }
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    return now().put_if_absent(key, bytes);
  }
  void put(const std::string& key, std::span<const std::byte> bytes) override {
    now().put(key, bytes);
  }
  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    return now().list(prefix, most);
  }
  void make_durable(const std::string& key) override { now().make_durable(key); }
  void remove(const std::string& key) override { now().remove(key); }
  void remove_all(std::span<const std::string> keys) override { now().remove_all(keys); }
  void stop() noexcept override {
    const std::lock_guard lock(mutex_);
    if (objects_ != nullptr) objects_->stop();
  }

 private:
  ObjectStore& now() {
    const std::lock_guard lock(mutex_);
    if (objects_ == nullptr) objects_ = open_object_store(fs_, url_, wait_);
    return *objects_;
  }

  base::Fs& fs_;
  const std::string url_;
  const std::chrono::milliseconds wait_;
  std::mutex mutex_;
  std::unique_ptr<ObjectStore> objects_;
};

}  // namespace

std::shared_ptr<ObjectStore> open_object_store_later(base::Fs& fs, const std::string& url,
                                                     std::chrono::milliseconds wait) {
  return std::make_shared<LaterObjects>(fs, url, wait);
}

std::unique_ptr<ObjectStore> open_object_store(base::Fs& fs, const std::string& url,
                                               std::chrono::milliseconds wait,
                                               const TransferLimits& limits) {
  const RemoteUrl parsed = parse_remote_url(url);
  std::unique_ptr<ObjectStore> objects;
  if (parsed.kind == RemoteUrl::EngineKind::directory) {
    objects = std::make_unique<DirectoryEngine>(fs, parsed.path);
  } else {
    objects = open_s3(parsed, wait, limits.connections);
  }
  return limit_transfers(std::move(objects), limits);
}

}  // namespace vellum::remote
