// A thief of the credentials of a machine that pushes: destroys objects at random, with all that
// the server lets them do.
#pragma once

#include <chrono>
#include <random>
#include <vector>

#include "remote/engine/object_versions.hpp"
#include "remote/objects/object_key.hpp"

namespace vellum::remote::test {

class Thief {
 public:
  // REQUIRES: `objects` outlives it, and has versions.
  Thief(ObjectStore& objects, std::uint64_t seed) : objects_(objects), random_(seed) {}

  void destroy(int times) {
    for (int i = 0; i < times; ++i) {
      if (i % 10 == 0) look();
      if (!all_.empty()) destroy_one();
    }
  }
  // What the server has refused.
  int refused() const { return refused_; }

 private:
  void look() {
    all_.clear();
    objects_.versions()->visit_versions({}, [&](const std::vector<ObjectVersion>& versions) {
      all_.push_back(versions);
      return true;
    });
  }
  template <typename Call>
  void try_to(const Call& call) {
    try {
      call();
    } catch (const Error&) {
      ++refused_;
    }
  }
  void remove(const std::vector<VersionName>& names) {
    refused_ += static_cast<int>(objects_.versions()->remove_versions(names).size());
  }

  void destroy_one() {
    const auto& versions = all_[random_() % all_.size()];
    const ObjectVersion& version = versions[random_() % versions.size()];
    const std::string& key = version.name.key;
    switch (random_() % 13) {
      case 7:  // a lock that outlives everybody
        return try_to([&] {
          auto& locks = *objects_.versions();
          locks.lock_until(version.name, locks.now() + std::chrono::days(36'400));
        });
      case 8:  // more versions than are read
        return try_to([&] {
          for (int i = 0; i < 12; ++i) objects_.put(key, garbage());
        });
      case 9:
        return try_to([&] { objects_.put(kLockNoteKey, garbage()); });
      case 10:
        return try_to([&] { objects_.put(kHoldPrefix + std::string(32, 'a'), garbage()); });
      case 0:
        return try_to([&] { objects_.remove(key); });
      case 1:
        return try_to([&] { objects_.put(key, garbage()); });
      case 2:
        return try_to([&] { remove({version.name}); });
      case 3:
        return try_to([&] {
          auto& locks = *objects_.versions();
          locks.lock_until(version.name, locks.now() + std::chrono::minutes(1));
        });
      case 4:  // another object's content
        return try_to([&] {
          const std::string& other = all_[random_() % all_.size()].front().name.key;
          objects_.put(key, objects_.get(other, 1u << 26));
        });
      case 5:  // a head of the future
        return try_to([&] { objects_.put(head_key(1'000 + random_() % 1'000), garbage()); });
      default:
        return try_to([&] {
          std::vector<VersionName> names;
          for (const ObjectVersion& one : versions) names.push_back(one.name);
          remove(names);
        });
    }
  }
  std::vector<std::byte> garbage() {
    std::vector<std::byte> out(1 + random_() % 4096);
    for (std::byte& b : out) b = static_cast<std::byte>(random_());
    return out;
  }

  ObjectStore& objects_;
  std::mt19937_64 random_;
  std::vector<std::vector<ObjectVersion>> all_;
  int refused_ = 0;
};

}  // namespace vellum::remote::test
