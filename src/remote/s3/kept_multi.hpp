// remote/s3/kept_multi.hpp: a handle of libcurl's multi interface, which owns connections, and the
// one that the last HTTP client of this process has left.
//
// A new client with the same options continues with its connections, at most
// HttpOptions::connections. libcurl closes a connection that the server has closed, or that was
// idle for two minutes, when it looks for one. A connection carries no credentials: each request
// has its own signature.
//
// Threads: take_multi() and keep_multi() from any thread.
#pragma once

#include <sys/types.h>

#include <memory>

#include "remote/s3/http_client.hpp"
#include "remote/s3/libcurl.hpp"

namespace vellum::remote {

class Multi {
 public:
  // Errc::out_of_memory.
  explicit Multi(const HttpOptions& options);
  ~Multi();
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;

  CURLM* get() const noexcept { return multi_; }
  const HttpOptions& options() const noexcept { return options_; }
  // A forked child shares its parent's connections. It neither uses them nor closes them, which
  // would end the parent's TLS sessions.
  bool is_of_this_process() const noexcept;

 private:
  const HttpOptions options_;
  const pid_t process_;
  CURLM* const multi_;
};

std::unique_ptr<Multi> take_multi(const HttpOptions& options);
// REQUIRES: it has no transfers.
void keep_multi(std::unique_ptr<Multi> multi) noexcept;

}  // namespace vellum::remote
