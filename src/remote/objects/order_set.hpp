// remote/objects/order_set.hpp: a set of orders of snapshots, stored as ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "format/wire/wire.hpp"

namespace vellum::remote {

class OrderSet {
 public:
  bool contains(std::uint64_t order) const noexcept;
  void add(std::uint64_t order);
  bool operator==(const OrderSet&) const = default;

  void write(format::ByteWriter& w) const;
  // False: malformed.
  bool read(format::ByteReader& in);

 private:
  struct OrderRange {
    std::uint64_t first = 0, last = 0;
    bool operator==(const OrderRange&) const = default;
  };
  std::vector<OrderRange> ranges_;  // ascending, with gaps between them
};

}  // namespace vellum::remote
