// Generated sequences of store operations. One seed, one sequence.
#pragma once

#include "crash/session_lib.hpp"

namespace vellum::crash {

// The predominant operations of a sequence.
enum class Flavour {
  mixed,
  chains,     // the same few pages repeatedly, many checkpoints: delta chains, run merges
  rolls,      // tiny packs, incompressible pages
  wraps,      // many small commits: the journal fills and changes halves
  names,      // branches and snapshots are created and removed
  reopening,  // writers close and open
  garbage,    // snapshots are removed, and gc frees their space
  huge,       // a commit of megabytes: several writes before one sync
  repeats     // large commits of content that the store already has: repeats_lib.hpp
};

const char* flavour_name(Flavour flavour);
Flavour flavour_of(std::uint64_t seed);
std::uint64_t seed_of_repeats(std::uint64_t n);  // the nth seed of flavour `repeats`
// From this seed on, stores are encrypted.
inline constexpr std::uint64_t kEncryptedSeeds = 1ULL << 40;
format::Superblock options_for(std::uint64_t seed);
// Runs `steps` operations on an empty store.
void run_script(Session& session, std::uint64_t seed, std::size_t steps);
// On a simulated disk with an empty store, created with options_for(seed); the creation is not
// logged.
SimSession session_on_new_store(std::uint64_t seed);
// Both.
std::unique_ptr<SimSession> simulate_script(std::uint64_t seed, std::size_t steps);

}  // namespace vellum::crash
