#include "remote/s3/kept_multi.hpp"

#include <time.h>

#include <atomic>

#include "base/fail.hpp"
#include "base/threads/fork_count.hpp"

namespace vellum::remote {
namespace {

constexpr std::int64_t kFreshSeconds = 20;

// Never destroyed at the end of the process: objects with static lifetime may own clients.
std::atomic<Multi*> kept_multi{nullptr};

std::int64_t boot_time_s() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

}  // namespace

Multi::Multi(const HttpOptions& options)
    : options_(options), forks_(base::fork_count()), multi_(libcurl().multi_init()) {
  if (multi_ == nullptr) fail(Errc::out_of_memory, "libcurl: out of memory");
  const long most = static_cast<long>(options.connections);
  libcurl().multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, most);
  libcurl().multi_setopt(multi_, CURLMOPT_MAXCONNECTS, most);
  libcurl().multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

Multi::~Multi() {
  if (is_of_this_process()) libcurl().multi_cleanup(multi_);
}

bool Multi::is_of_this_process() const noexcept { return forks_ == base::fork_count(); }

bool Multi::is_fresh() const noexcept {
  return is_of_this_process() && boot_time_s() - ended_s_ <= kFreshSeconds;
}

void Multi::note_end() noexcept { ended_s_ = boot_time_s(); }

std::unique_ptr<Multi> take_multi(const HttpOptions& options) {
  std::unique_ptr<Multi> kept(kept_multi.exchange(nullptr));
  if (kept != nullptr && kept->is_fresh() && kept->options() == options) return kept;
  return std::make_unique<Multi>(options);
}

void keep_multi(std::unique_ptr<Multi> multi, std::size_t connections) noexcept {
  if (connections > kMaxKeptConnections) return;
  multi->note_end();
  const std::unique_ptr<Multi> before(kept_multi.exchange(multi.release()));
}

}  // namespace vellum::remote
