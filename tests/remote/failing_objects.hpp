// Object stores that fail at chosen calls.
#pragma once

#include <atomic>
#include <memory>
#include <vellum/error.hpp>

#include "remote/engine/object_store.hpp"

namespace vellum::remote::test {

// A wrapper of an object store whose calls may fail.
class ObjectsInFront : public ObjectStore {
 public:
  explicit ObjectsInFront(std::shared_ptr<ObjectStore> objects) : objects_(std::move(objects)) {}
  const std::string& url() const noexcept override { return objects_->url(); }
  std::size_t connections() const noexcept override { return objects_->connections(); }
  const ObjectsKey* objects_key() const noexcept override { return objects_->objects_key(); }
  std::vector<std::byte> get(const std::string& key, std::uint64_t limit) override {
    return call([&] { return objects_->get(key, limit); });
  }
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    return call([&] { return objects_->get_range(key, range); });
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most) override {
    return call([&] { return objects_->get_start(key, most); });
  }
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    return call([&] { return objects_->has(key, size_bytes); });
  }
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    return call([&] { return objects_->put_if_absent(key, bytes); });
  }
  void put(const std::string& key, std::span<const std::byte> bytes) override {
    call([&] { return objects_->put(key, bytes), 0; });
  }
  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    return call([&] { return objects_->list(prefix, most); });
  }
  void remove(const std::string& key) override {
    call([&] { return objects_->remove(key), 0; });
  }

 protected:
  // Whether this call fails, and whether it does so after its work.
  enum class Fate { works, fails, fails_after };
  virtual Fate fate() = 0;

 private:
  template <typename Call>
  auto call(const Call& body) -> decltype(body()) {
    const Fate chosen = fate();
    if (chosen == Fate::fails) throw Error(Errc::io, "the server is gone");
    auto result = body();
    if (chosen == Fate::fails_after) throw Error(Errc::io, "the server is gone");
    return result;
  }
  const std::shared_ptr<ObjectStore> objects_;
};

// Fails one call, before or after its work.
class FailingObjects final : public ObjectsInFront {
 public:
  FailingObjects(std::shared_ptr<ObjectStore> objects, std::uint64_t nth, bool after)
      : ObjectsInFront(std::move(objects)), nth_(nth), after_(after) {}

 private:
  Fate fate() override {
    if (++calls_ != nth_) return Fate::works;
    return after_ ? Fate::fails_after : Fate::fails;
  }
  std::atomic<std::uint64_t> calls_{0};
  const std::uint64_t nth_;
  const bool after_;
};

// Fails every call for some time.
class OutObjects final : public ObjectsInFront {
 public:
  using ObjectsInFront::ObjectsInFront;
  std::atomic<bool> is_out{false};

 private:
  Fate fate() override { return is_out ? Fate::fails : Fate::works; }
};

}  // namespace vellum::remote::test
