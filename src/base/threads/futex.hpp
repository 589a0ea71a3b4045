// base/threads/futex.hpp: threads that wait for a word in memory to change.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace vellum::base {

// The threads that wait for a word: those of this process, or also those of other processes that
// share the word's page by MAP_SHARED.
enum class Waiters { of_this_process, of_all_processes };

// Any context; errno is preserved. A waiter must read the word again after any wake-up.

// Sleeps if the word is `value`, until a wake or for `most`.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::optional<std::chrono::milliseconds> most = std::nullopt,
                Waiters waiters = Waiters::of_this_process) noexcept;
void futex_wake(std::atomic<std::uint32_t>& word, int threads,
                Waiters waiters = Waiters::of_this_process) noexcept;

}  // namespace vellum::base
