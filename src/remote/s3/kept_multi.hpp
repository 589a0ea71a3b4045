// remote/s3/kept_multi.hpp: a handle of libcurl's multi interface, which owns connections, and the
// one that the last HTTP client of this process has left.
//
// A new client with the same options continues with its connections, for a few seconds: an opening
// that follows another needs no new ones. A connection carries no credentials: each request has its
// own signature.
//
// Threads: take_multi() and keep_multi() from any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "remote/s3/http_options.hpp"
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
  // Whether a new client may continue with it. Connections that nobody uses may be dead without a
  // sign. A forked child shares those of its parent: it neither uses them nor closes them, which
  // would end the parent's TLS sessions.
  bool is_fresh() const noexcept;
  void note_end() noexcept;  // of its client

 private:
  bool is_of_this_process() const noexcept;

  const HttpOptions options_;
  const std::uint32_t forks_;
  CURLM* const multi_;
  std::int64_t ended_s_ = 0;  // by CLOCK_BOOTTIME, which includes the time of a suspended machine
};

std::unique_ptr<Multi> take_multi(const HttpOptions& options);
// Keeps a handle with few connections, at most kMaxKeptConnections; they stay open until a client
// takes them or replaces the handle. REQUIRES: it has no transfers.
inline constexpr std::size_t kMaxKeptConnections = 8;
void keep_multi(std::unique_ptr<Multi> multi, std::size_t connections) noexcept;

}  // namespace vellum::remote
