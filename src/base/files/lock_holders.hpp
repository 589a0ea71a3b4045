// base/files/lock_holders.hpp: the processes that hold a lock, for messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vellum::base {

// " (held by process 123 (vellum), process 456 (python3))": the processes that hold a lock of this
// file, on the byte or, without one, by flock(2). Empty if none is found: /proc shows users only
// their own processes. Searches all of /proc, so it is for errors only.
std::string lock_holders(const std::string& path, std::optional<std::uint64_t> byte = std::nullopt);

// The same for the locks of any bytes of files in a directory.
std::string lock_holders_in(const std::string& directory);

}  // namespace vellum::base
