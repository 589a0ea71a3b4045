// store/catalog/branch_ids.hpp: which ids a new branch must not have.
//
// An id is a random number. That no branch has it is looked up in the journals' headers, each of
// which is read once by a process: to make a branch costs the list of names, not a look into each.
// Another process may remove a branch and make one of its name with another id, unnoticed here: the
// new id meets that one with a probability of 2^-32, as it does that of a branch which another
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
  // Those of all branches, and of those whose packs are still there. `packs`: all of them.
  std::unordered_set<std::uint64_t> taken(const PackStore& store,
                                          const std::vector<std::uint64_t>& packs);
  // The branch of this name is gone: another one may get the name.
  void forget(const std::string& name);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t> known_;  // by name
};

}  // namespace vellum::store
