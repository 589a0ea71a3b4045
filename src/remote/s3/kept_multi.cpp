#include "remote/s3/kept_multi.hpp"

#include <unistd.h>

#include <atomic>

#include "base/fail.hpp"

namespace vellum::remote {
namespace {

// Never destroyed at the end of the process: objects with static lifetime may own clients.
std::atomic<Multi*> kept_multi{nullptr};

}  // namespace

Multi::Multi(const HttpOptions& options)
    : options_(options), process_(::getpid()), multi_(libcurl().multi_init()) {
  if (multi_ == nullptr) fail(Errc::out_of_memory, "libcurl: out of memory");
  const long most = static_cast<long>(options.connections);
  libcurl().multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, most);
  libcurl().multi_setopt(multi_, CURLMOPT_MAXCONNECTS, most);
  libcurl().multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

Multi::~Multi() {
  if (is_of_this_process()) libcurl().multi_cleanup(multi_);
}

bool Multi::is_of_this_process() const noexcept { return process_ == ::getpid(); }

std::unique_ptr<Multi> take_multi(const HttpOptions& options) {
  std::unique_ptr<Multi> kept(kept_multi.exchange(nullptr));
  if (kept != nullptr && kept->is_of_this_process() && kept->options() == options) return kept;
  return std::make_unique<Multi>(options);
}

void keep_multi(std::unique_ptr<Multi> multi) noexcept {
  const std::unique_ptr<Multi> before(kept_multi.exchange(multi.release()));
}

}  // namespace vellum::remote
