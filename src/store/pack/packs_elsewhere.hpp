// store/pack/packs_elsewhere.hpp: packs that are no files of the store, read record by record.
//
// A store that is opened from a remote has its packs there (remote/lazy/away_packs.hpp).
//
// Threads: all calls from any thread.
#pragma once

#include "format/version.hpp"
#include "store/pack/record_place.hpp"

namespace vellum::store {

class PacksElsewhere {
 public:
  virtual ~PacksElsewhere() = default;
  PacksElsewhere() = default;
  PacksElsewhere(const PacksElsewhere&) = delete;
  PacksElsewhere& operator=(const PacksElsewhere&) = delete;

  // Finds out where the records of a version lie, before any of them is read. Throws what that
  // costs.
  virtual void learn(const format::Version& version) = 0;
  // Stands for a pack in messages. It cannot be read as a whole.
  virtual const base::File* pack() const noexcept = 0;
  // May wait for the record to come here, and for what is set as the longest wait. Allocates nothing
  // and takes no lock, because the fault handler uses it. REQUIRES: the caller holds no lock that
  // another fault may need.
  virtual RecordPlace locate(const format::RecordRef& ref) const noexcept = 0;
};

}  // namespace vellum::store
