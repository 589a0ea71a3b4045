// remote/pieces/uploads.hpp: the objects that a push makes: small ones together at its end, all at once;
// large ones as soon as they are made.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/threads/thread_pool.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {

class SeenObjects {
 public:
  // Lists what is there, unless that is known already, beside `task`. What is there is durable
  // then.
  void load(const Remote& remote, base::ThreadPool& pool, const std::function<void()>& task);
  // The parts of that, for a caller that has a pool at work. After the last one, finish_loading().
  std::vector<std::function<void()>> load_tasks(const Remote& remote);
  void finish_loading();
  bool is_known() const;
  // What is there may be other than it was.
  void forget();

  bool has(const std::string& key, std::uint64_t size_bytes) const;
  bool has(const ListName& list) const;
  bool has(const PieceName& piece) const;
  // Whether there is something else in the object's place.
  bool has_damaged(const std::string& key, std::uint64_t size_bytes) const;
  void add(const std::string& key, std::uint64_t size_bytes);

 private:
  void add_listed(const Remote& remote, const char* prefix);

  mutable std::mutex mutex_;  // guards what follows
  bool is_known_ = false;
  std::map<std::string, std::uint64_t> sizes_;
};

class Uploads {
 public:
  // `before_large` is called once, before the first object leaves ahead of finish(); it may be null,
  // and what it throws ends the upload. The pool is the caller's.
  // What is put counts as seen in `there`; what is damaged there is replaced.
  Uploads(const Remote& remote, SeenObjects& seen_objects, base::ThreadPool& pool,
          std::function<void()> before_large);

  // Puts the object if it is absent, now or in finish(). From any thread.
  void add(const std::string& key, std::vector<std::byte> bytes);
  // Puts what is left, beside the other tasks.
  void finish(const std::vector<std::function<void()>>& tasks);

  // Whether something else was in the place of an object, and a look has come too late to replace
  // it.
  // After finish().
  bool has_found_damage() const;

  // Objects that were there already do not count.
  std::uint64_t objects() const noexcept { return objects_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void put(const std::string& key, std::span<const std::byte> bytes);
  bool keep(const std::string& key, std::vector<std::byte>& bytes);

  const Remote& remote_;
  SeenObjects& seen_objects_;
  base::ThreadPool& pool_;
  const std::function<void()> before_large_;
  std::once_flag asked_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::vector<std::byte>> kept_;
  std::uint64_t kept_bytes_ = 0;
  std::map<std::string, std::uint64_t> found_;  // objects that were there, with the sizes of ours
  std::uint64_t objects_ = 0, bytes_ = 0;
};

}  // namespace vellum::remote
