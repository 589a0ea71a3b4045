// remote/engine/remote_timeout.hpp: the timeout for an unresponsive remote.
#pragma once

#include <chrono>
#include <optional>

namespace vellum::remote {

// `chosen`, otherwise VELLUM_REMOTE_WAIT_S in seconds, otherwise a minute. Errc::invalid_argument:
// it is not a number, or is less than a millisecond.
std::chrono::milliseconds remote_timeout(
    const std::optional<std::chrono::milliseconds>& chosen = std::nullopt);

}  // namespace vellum::remote
