// remote/pieces/seen_objects.hpp: which lists and pieces a remote has, as a listing showed. A head
// may name objects that were lost since: nothing is built on these.
//
// Threads: all calls from any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/threads/thread_pool.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {

class SeenObjects {
 public:
  // Lists what is there, unless that is known already, beside `task`. What is there is durable
  // then.
  void look(const Remote& remote, base::ThreadPool& pool, const std::function<void()>& task);
  // The parts of that, for a caller that has a pool at work. After the last one, finish_look().
  std::vector<std::function<void()>> parts_of_look(const Remote& remote);
  void finish_look();
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

}  // namespace vellum::remote
