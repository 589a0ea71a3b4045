// remote/needed.hpp: the objects that the versions of a remote need, and its lazy clones.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "remote/session/remote.hpp"

namespace vellum::remote {

// Keys of objects, with their sizes; 0: nobody has named the size.
using NeededKeys = std::map<std::string, std::uint64_t>;

// The keys of all objects that a head's versions or a lazy clone needs; nullopt: begin again with
// the newest head. Of lazy clones, the result is complete only if the boundary of the gc was
// durable before: see docs/remote-format.md. Lists and pieces that are parts of heads are named,
// too.
std::optional<NeededKeys> needed_keys(const Remote& remote, const Head& head);

struct NeededByHead {
  Head head;
  NeededKeys keys;
};
// The newest head, and what it needs.
NeededByHead needed_by_newest(const Remote& remote);

}  // namespace vellum::remote
