// bench/mpi/peer.hpp: other methods to store a version of the memory of a job's ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace bench {

// Collective: each rank has one, and all ranks do the same calls.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void* data() = 0;
  // Stores a version of all ranks. True: all ranks have theirs.
  virtual bool keep(std::uint64_t round) = 0;
  // Removes it, outside of the measured time.
  virtual void remove(std::uint64_t round) = 0;
};

// Null: this build does not have it. REQUIRES: `directory` exists.
std::unique_ptr<Peer> make_metall(const std::string& directory, std::uint64_t bytes);
std::unique_ptr<Peer> make_metall_on_vellum(const std::string& directory, std::uint64_t bytes);
std::unique_ptr<Peer> make_veloc(const std::string& directory, std::uint64_t bytes);

}  // namespace bench
