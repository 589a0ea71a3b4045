// remote/objects/lock_note.hpp: the duration for which the objects of a remote are locked, as an
// object of the remote: for gc, which has no store, and for other stores that push.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/seal.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxLockNoteBytes = 1024;
inline constexpr std::chrono::seconds kMaxLock = std::chrono::hours(24) * 36'500;

// REQUIRES: 0 < duration <= kMaxLock.
std::vector<std::byte> encode_lock_note(std::chrono::seconds duration,
                                        const format::FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_lock_note(std::span<const std::byte> bytes, const format::FileSeal& seal,
                             std::chrono::seconds& out);

}  // namespace vellum::remote
