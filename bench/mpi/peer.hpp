// bench/mpi/peer.hpp: other ways in which the ranks of a job keep a version of their memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace bench {

// Collective: each rank has one, and all make the same calls.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void* data() = 0;
  // Keeps a version of all ranks. True: all of them have theirs.
  virtual bool keep(std::uint64_t round) = 0;
  // Removes it again, outside of the measured time.
  virtual void remove(std::uint64_t round) = 0;
};

// Null: this build does not have it. `directory` exists.
std::unique_ptr<Peer> make_metall(const std::string& directory, std::uint64_t bytes);
std::unique_ptr<Peer> make_metall_on_vellum(const std::string& directory, std::uint64_t bytes);
std::unique_ptr<Peer> make_veloc(const std::string& directory, std::uint64_t bytes);

}  // namespace bench
