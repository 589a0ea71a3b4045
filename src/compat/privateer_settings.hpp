// compat/privateer_settings.hpp: what the Privateer door takes from paths and the environment.
#pragma once

#include <cstdint>
#include <string>

namespace vellum::compat {

inline constexpr std::uint64_t kDefaultBlockBytes = 2u << 20;

// "STASH<stash>BASE", or just BASE.
struct StashAndBase {
  std::string stash, base;
};
StashAndBase split_stash(const std::string& path);

// Errc::invalid_argument names the variable.

// PRIVATEER_BLOCK_SIZE, or the default: what is known before a capacity is.
std::uint64_t block_bytes_at_start();
// The same; PRIVATEER_NUM_BLOCKS counts where PRIVATEER_BLOCK_SIZE is not set.
std::uint64_t block_bytes_for(std::uint64_t capacity_bytes);
// Up to whole blocks. Errc::invalid_argument: no bytes, or more than a region can have.
std::uint64_t whole_blocks(std::uint64_t bytes, std::uint64_t block_bytes);
// PRIVATEER_MAX_MEM_BLOCKS of them; 0: as Vellum has it.
std::uint64_t memory_limit_bytes(std::uint64_t block_bytes);

}  // namespace vellum::compat
