// store/journal/read_journal.hpp: reading a journal, also while its writer commits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/files/file.hpp"
#include "store/journal/journal_state.hpp"

namespace vellum::store {

// Reads the state. A writer may commit concurrently: if the epoch changes during the read, it reads
// again, so the result was the head at some time between call and return. Throws Errc::busy after too
// many tries, and Errc::corrupted, naming the file, when
// - the file is shorter than its header states,
// - neither half holds a valid base frame, or
// - a durable commit is missing, as a later frame or a marker shows (docs/durability.md lists the
//   losses that cannot be detected).
JournalState read_journal(const base::File& file, const format::FileSeal& seal);

// The readable content of a journal for which read_journal() throws Errc::corrupted.
struct JournalRemains {
  JournalState state;  // up to the damage
  // The least number of durable commits after it. Empty: unknown, since the file was cut.
  std::optional<std::uint64_t> lost_commits;
};

// For repair. Errc::corrupted: no base frame is whole. REQUIRES: no process writes the journal during
// the call.
JournalRemains read_corrupted_journal(const base::File& file, const format::FileSeal& seal);

// Every whole base frame in the file, newest first: that of the current epoch and, until its half is
// reused, that of the epoch before. After a power cut, the head may follow either.
std::vector<format::Version> read_base_versions(const base::File& file,
                                                const format::FileSeal& seal);

}  // namespace vellum::store
