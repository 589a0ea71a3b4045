// group/ranks.hpp: the processes of a job, as the protocol of a group sees them.
//
// Every call is collective: all ranks make the same calls in the same order. vellum/mpi.hpp has them
// over a communicator of MPI; a job of one process needs none.
#pragma once

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
  // At rank 0: what each rank gave, in the order of ranks. Elsewhere: nothing.
  virtual std::vector<Bytes> gather(std::span<const std::byte> mine) = 0;
  // What rank `from` gave. The bytes of other ranks do not matter.
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

// An even share: the first partitions to the first ranks.
inline std::vector<std::uint32_t> share_of(std::uint32_t partitions, int rank, int ranks) {
  const auto first = [&](int r) {
    return static_cast<std::uint32_t>(std::uint64_t{partitions} * static_cast<std::uint64_t>(r) /
                                      static_cast<std::uint64_t>(ranks));
  };
  std::vector<std::uint32_t> share;
  for (std::uint32_t p = first(rank); p < first(rank + 1); ++p) share.push_back(p);
  return share;
}

}  // namespace vellum::group
