// base/futex.hpp: threads that wait for a word in memory to change.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace vellum::base {

// Any context; errno stays. A waiter reads the word again however it woke up.

// Sleeps if the word is `value`, until a wake or for `most`.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::optional<std::chrono::milliseconds> most = std::nullopt) noexcept;
void futex_wake(std::atomic<std::uint32_t>& word, int threads) noexcept;

}  // namespace vellum::base
