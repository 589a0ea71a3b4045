// group/ranks.hpp: the interface to the processes of a job.
//
// Every call is collective: all ranks make the same calls in the same order. group/mpi implements
// them with a communicator of MPI; a job of one process uses OneRank.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace vellum::group {

using Bytes = std::vector<std::byte>;

class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // On rank 0: the bytes of each rank, in the order of ranks. On other ranks: empty.
  virtual std::vector<Bytes> gather(std::span<const std::byte> mine) = 0;
  // The bytes of rank `from`. Those of other ranks are ignored.
  virtual Bytes broadcast(Bytes bytes, int from) = 0;
};

class OneRank final : public Ranks {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<Bytes> gather(std::span<const std::byte> mine) override {
    return {Bytes(mine.begin(), mine.end())};
  }
  Bytes broadcast(Bytes bytes, int) override { return bytes; }
};

// The default partitions of a rank: an even share, the first partitions for the first ranks.
// REQUIRES: 0 <= rank < ranks.
inline std::vector<std::uint32_t> share_of(std::uint32_t partitions, int rank, int ranks) {
  const auto first = [&](int r) {
    return static_cast<std::uint32_t>(std::uint64_t{partitions} * static_cast<std::uint64_t>(r) /
                                      static_cast<std::uint64_t>(ranks));
  };
  assert(0 <= rank && rank < ranks);
  std::vector<std::uint32_t> share;
  for (std::uint32_t p = first(rank); p < first(rank + 1); ++p) share.push_back(p);
  return share;
}

}  // namespace vellum::group
