// remote/engine/remote_timeout.hpp: how long a remote that does not answer is waited for.
#pragma once

#include <chrono>
#include <optional>

namespace vellum::remote {

// `chosen`, or else VELLUM_REMOTE_WAIT_S, in seconds, or else a minute. Errc::invalid_argument: it is
// no number, or less than a millisecond.
std::chrono::milliseconds remote_timeout(
    const std::optional<std::chrono::milliseconds>& chosen = std::nullopt);

}  // namespace vellum::remote
