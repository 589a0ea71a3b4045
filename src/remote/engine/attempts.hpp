// remote/engine/attempts.hpp: how often a reader begins again because others have changed the
// remote meanwhile. Each time they got further; but a wait ends.
#pragma once

#include "base/fail.hpp"
#include "remote/engine/object_store.hpp"

namespace vellum::remote {

class Attempts {
 public:
  // REQUIRES: `objects` outlives this object.
  explicit Attempts(const ObjectStore& objects) : objects_(objects) {}

  // Errc::busy: too many, with the name of the remote.
  void begin() {
    if (++count_ <= kMax) return;
    fail(Errc::busy, "{}: others have changed the remote {} times while it was read; try again",
         objects_.url(), kMax);
  }

 private:
  static constexpr int kMax = 1000;
  const ObjectStore& objects_;
  int count_ = 0;
};

}  // namespace vellum::remote
