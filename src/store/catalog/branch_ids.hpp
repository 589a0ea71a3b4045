// store/catalog/branch_ids.hpp: the ids that a new branch must not have.
//
// An id is a random number. The ids in use come from the journals' headers. A process reads each
// header once, so making a branch costs the list of names, not a look into each journal. Another
// process may remove a branch and make one of its name with another id, unnoticed here. The new id
// then collides with a probability of 2^-32, as it does with the id of a branch that another
// process makes at the same moment.
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
  // Forgets an id: the branch of this name is gone, and another one may get the name.
  void forget(const std::string& name);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t> known_;  // by name
};

}  // namespace vellum::store
