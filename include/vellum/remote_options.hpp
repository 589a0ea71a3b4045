// vellum/remote_options.hpp: how packs are read from a remote (Store::open() with a URL, or of a
// lazy clone).
#ifndef VELLUM_REMOTE_OPTIONS_HPP
#define VELLUM_REMOTE_OPTIONS_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace vellum {

// A value that is not set is taken from the environment, or else is the default.
struct RemoteOptions {
  // A directory for copies of fetched data, shared by all processes of this user. It may be removed
  // at any time; each copy is verified before it is used. Not set: VELLUM_CACHE_DIR, or else
  // `vellum` in XDG_CACHE_HOME, or else ~/.cache/vellum. Empty: no copies.
  std::optional<std::string> cache_directory;
  // Above this, the oldest copies are removed. A process may exceed it by a sixteenth, and by the
  // pieces that it is fetching. Not set: VELLUM_CACHE_BYTES, or else 10 GiB.
  std::optional<std::uint64_t> cache_bytes;
  // The timeout of a page for an unresponsive remote, at least a millisecond. After it pin(),
  // prefetch() and read() throw Errc::io, and a thread that touches the page gets SIGBUS, after one
  // line on standard error. Failed requests are repeated for at most this time. Not set:
  // VELLUM_REMOTE_WAIT_S, in seconds, such as 0.5, or else 60 seconds.
  std::optional<std::chrono::milliseconds> longest_wait;
};

}  // namespace vellum

#endif  // VELLUM_REMOTE_OPTIONS_HPP
