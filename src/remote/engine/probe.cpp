#include "remote/engine/probe.hpp"

#include <fmt/format.h>

#include <barrier>
#include <cassert>
#include <mutex>
#include <random>
#include <thread>
#include <vellum/error.hpp>

#include "base/threads/start_thread.hpp"

namespace vellum::remote {
namespace {

std::vector<std::byte> content_of(std::size_t creator) {
  return std::vector<std::byte>(256, static_cast<std::byte>(creator + 1));
}

// One race for each key, with the same threads: they start closer together than new threads would.
class Race {
 public:
  Race(ObjectStore& objects, std::vector<std::string> keys, std::size_t creators)
      : objects_(objects), keys_(std::move(keys)), creators_(creators), winners_(keys_.size()) {}

  std::vector<std::vector<std::size_t>> run() {
    std::barrier start(static_cast<std::ptrdiff_t>(creators_));
    std::vector<std::thread> threads;
    threads.reserve(creators_);
    try {
      while (threads.size() < creators_) {
        threads.push_back(base::start_thread("races for names",
                                             [&, c = threads.size()] { create_all(c, start); }));
      }
    } catch (const Error&) {  // the started threads must not wait for the missing ones
      failure_ = std::current_exception();
      for (std::size_t c = threads.size(); c < creators_; ++c) start.arrive_and_drop();
    }
    for (std::thread& thread : threads) thread.join();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    return winners_;
  }

 private:
  void create_all(std::size_t creator, std::barrier<>& start) {
    for (std::size_t round = 0; round < keys_.size(); ++round) {
      start.arrive_and_wait();
      try {
        const bool won = objects_.put_if_absent(keys_[round], content_of(creator));
        const std::lock_guard lock(mutex_);
        if (won) winners_[round].push_back(creator);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (failure_ == nullptr) failure_ = std::current_exception();
      }
    }
  }

  ObjectStore& objects_;
  const std::vector<std::string> keys_;
  const std::size_t creators_;
  std::mutex mutex_;  // guards the members below
  std::vector<std::vector<std::size_t>> winners_;
  std::exception_ptr failure_;
};

// False: the caller may not remove the objects of the races.
bool judge(ObjectStore& objects, const std::vector<std::string>& keys,
           const std::vector<std::vector<std::size_t>>& winners, ProbeResult& result) {
  bool is_removed = true;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ++result.rounds;
    if (winners[i].size() > 1) ++result.several_won;
    if (winners[i].empty()) ++result.none_won;
    if (winners[i].size() == 1 && objects.get(keys[i], 4096) != content_of(winners[i].front())) {
      ++result.other_content;
    }
    try {
      objects.remove(keys[i]);
    } catch (const RefusedRequest&) {
      is_removed = false;
    }
  }
  return is_removed;
}

}  // namespace

ProbeResult probe_conditional_writes(ObjectStore& objects, const ProbeOptions& options) {
  assert(options.rounds > 0 && options.creators > 0);
  std::random_device device;
  const std::string directory = fmt::format("{}{:08x}{:08x}", kProbePrefix, device(), device());
  const auto race_for = [&](std::size_t first, std::size_t count, ProbeResult& result) {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < count; ++i)
      keys.push_back(fmt::format("{}-{}", directory, first + i));
    return judge(objects, keys, Race(objects, keys, options.creators).run(), result);
  };
  ProbeResult result;
  if (race_for(0, 1, result)) race_for(1, options.rounds - 1, result);
  return result;
}

}  // namespace vellum::remote
