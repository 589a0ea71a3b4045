// bench/fams/structures.cpp: compiled once for each way to report stores: it defines FAMS_FACTORY,
// and reports stores to FAMS_REPORTER.
#include "structures.hpp"

#include "arena.hpp"
#include "btree.hpp"
#include "hash.hpp"
#include "list.hpp"
#include "scattered.hpp"
#include "store_reports.hpp"

namespace fams {
namespace {

struct Reporter : FAMS_REPORTER {};
using Memory = Arena<Reporter>;

template <typename Shaped>
std::unique_ptr<Structure> make(Memory memory, const Size& size) {
  auto shaped = std::make_unique<Shaped>(memory);
  if (memory.is_fresh()) {
    memory.format();
    shaped->create(size);
  }
  shaped->attach();
  return shaped;
}

}  // namespace

std::unique_ptr<Structure> FAMS_FACTORY(void* base, std::uint64_t size_bytes, const Size& size) {
  const Memory memory(base, size_bytes);
  switch (size.shape) {
    case Shape::list:
      return make<List<Memory>>(memory, size);
    case Shape::btree:
      return make<Btree<Memory>>(memory, size);
    case Shape::hash:
      return make<Hash<Memory>>(memory, size);
    case Shape::scattered:
      return make<Scattered<Memory>>(memory, size);
  }
  return nullptr;
}

}  // namespace fams
