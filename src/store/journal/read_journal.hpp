// store/journal/read_journal.hpp: reading a journal, possibly while its writer is at work.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/files/file.hpp"
#include "store/journal/journal_state.hpp"

namespace vellum::store {

// Reads the state while a writer may be committing. If the epoch changes during the read, it reads
// again, so the result was the head at some moment between call and return. Throws Errc::corrupted,
// naming the file, when
// - the file is shorter than its header says,
// - neither half holds a valid base frame, or
// - a durable commit is missing, as a later frame or a marker shows (docs/durability.md says which
//   losses nothing shows).
JournalState read_journal(const base::File& file, const format::Uuid& store_id);

// The readable content of a journal that read_journal() calls corrupted.
struct JournalRemains {
  JournalState state;  // up to the damage
  // How many commits behind it were durable at least. Empty: the file was cut, and nothing tells.
  std::optional<std::uint64_t> lost_commits;
};

// For repair. REQUIRES: nobody writes meanwhile. Errc::corrupted: not even a base frame is whole.
JournalRemains read_corrupted_journal(const base::File& file, const format::Uuid& store_id);

// Every whole base frame in the file: that of the head and, until its half is needed again, the one
// before it. After a power cut the head may follow from either.
std::vector<format::Version> read_base_versions(const base::File& file,
                                                const format::Uuid& store_id);

}  // namespace vellum::store
