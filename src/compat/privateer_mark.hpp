// compat/privateer_mark.hpp: the small file in a version's directory that says what it stands for.
//
// A directory whose files went is not that version any more, and programs copy a version's files
// into another directory (Metall does: into that of a snapshot it has just made, and to copy a
// datastore). So the file says of which version it was made, and that version's last commit: where
// it lies in the directory of another, it can be told what the copy is of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vellum::compat {

struct Mark {
  std::string
      store;  // its path; relative to the version's directory when base and store go together
  std::string name;  // in the store
  std::uint64_t block_bytes = 0;
  // Of the commit that it had when this was written last. 0: none yet.
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;

  bool operator==(const Mark&) const = default;
};

// Without a value: there is none. Errc::damaged: not one of ours.
std::optional<Mark> read_mark(const std::string& directory);
// Durable on return.
void write_mark(const std::string& directory, const Mark& mark);
void remove_mark(const std::string& directory) noexcept;

}  // namespace vellum::compat
