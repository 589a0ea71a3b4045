// interfaces/privateer/settings.hpp: Privateer's settings from paths and the environment.
#pragma once

#include <cstdint>
#include <string>

namespace vellum::privateer {

inline constexpr std::uint64_t kDefaultBlockBytes = 2u << 20;

// Splits "STASH<stash>BASE", or just BASE.
struct StashAndBase {
  std::string stash, base;
};
StashAndBase split_stash(const std::string& path);

// Errors of the following are Errc::invalid_argument, and name the variable.

// PRIVATEER_BLOCK_SIZE, or the default. For use before a capacity is known.
std::uint64_t block_bytes_at_start();
// The same; without PRIVATEER_BLOCK_SIZE, PRIVATEER_NUM_BLOCKS applies.
std::uint64_t block_bytes_for(std::uint64_t capacity_bytes);
// Rounds up to whole blocks. Errc::invalid_argument: 0 bytes, or more than a region can have.
std::uint64_t whole_blocks(std::uint64_t bytes, std::uint64_t block_bytes);
// The size of PRIVATEER_MAX_MEM_BLOCKS blocks; 0: Vellum's default.
std::uint64_t memory_limit_bytes(std::uint64_t block_bytes);

}  // namespace vellum::privateer
