// store/catalog/branch_ids.hpp: the ids that a new branch must not have.
//
// An id is a random number. The ids in use are in the journals' headers. A process reads each
// header once, so creating a branch lists the names but does not read each journal. Another process
// may remove a branch and create one with the same name and another id, unnoticed here. A new id
// then collides with a probability of 2^-32, as with the id of a branch that another process
// creates at the same time.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace vellum::store {

class PackStore;

// Threads: any.
class BranchIds {
 public:
  // The ids of all branches, and of removed ones whose packs still exist. `packs`: all packs.
  std::unordered_set<std::uint64_t> taken(const PackStore& store,
                                          const std::vector<std::uint64_t>& packs);
  // Drops an id: the branch of this name is removed, and another one may get the name.
  void forget(const std::string& name);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t> known_;  // by name
};

}  // namespace vellum::store
