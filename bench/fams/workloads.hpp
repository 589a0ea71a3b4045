// bench/fams/workloads.hpp: the operations on a structure, decided before the clock runs, and its
// expected content afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store.hpp"

namespace fams {

enum class Kind : std::uint8_t { insert, update, read, modify, scan, remove };

struct Operation {
  std::uint32_t index;   // of the key
  std::uint32_t length;  // of a scan
  Kind kind;
};

struct Workload {
  std::uint64_t filled = 0;  // keys of index 0 up to this exist before
  std::vector<Operation> operations;
  std::uint64_t keys = 0;       // that ever exist
  bool counts_visited = false;  // a scan counts as the keys that it visits
  bool in_order = false;        // keys are their indexes: lists and arrays
  Key key(std::uint64_t index) const;
};

// insert: `keys` keys, none before. Otherwise `keys` exist, and there are `operations` of: update
// and read (uniformly random), remove and traverse (lists), scattered (arrays; `keys` is the number
// of words), A to F of YCSB (Cooper et al., SoCC 2010): zipfian with constant 0.99, scrambled; A is
// half updates, B 5 % of them, C only reads, D reads of the latest and 5 % inserts, E scans of 1 to
// 100 keys and 5 % inserts, F half reads and half reads followed by an update.
Workload make_workload(const std::string& name, Shape shape, std::uint64_t keys,
                       std::uint64_t operations);

// The n-th inserted value, of any key.
const Value& value_of(std::uint64_t ordinal);

void fill(Store& store, const Workload& workload);

struct Progress {
  std::uint64_t operations = 0;  // of the workload
  std::uint64_t counted = 0;
  double seconds = 0;
};
// Commits after every `every` operations, and at the end, when one of them was not a read; stops
// soon after `seconds_limit`.
Progress run(Store& store, const Workload& workload, std::uint64_t every, double seconds_limit);

// Compares the structure with its expected content after that many operations: the number of keys,
// and the value of each `step`-th key. Throws an error that names the difference.
void verify(Structure& structure, const Workload& workload, std::uint64_t operations,
            std::uint64_t step);

}  // namespace fams
