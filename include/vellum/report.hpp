// vellum/report.hpp: what the long calls of a store tell, on the way and at their end.
//
// Plain structs, which vellum/store.hpp includes. The vellum program prints them, with `--json`
// field by field.
#ifndef VELLUM_REPORT_HPP
#define VELLUM_REPORT_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vellum {

// The library calls it in the thread of the call, now and then. An exception from it ends the call.
struct Progress {
  std::uint64_t done = 0, total = 0;  // total is 0 when nobody knows it
  const char* unit = "";
};
using ProgressFn = std::function<void(const Progress&)>;

// Store::diff().
struct DiffTotals {
  std::uint64_t pages_compared = 0;  // byte by byte, as their page maps tell them apart
  std::uint64_t pages_different = 0;
  std::uint64_t bytes_different = 0;
  std::uint64_t ranges = 0;
};

// A version's bytes in the packs: its pages and deltas, and its page map.
struct VersionSpace {
  std::string name;
  bool is_branch = false;
  std::uint64_t region_bytes = 0;
  std::uint64_t nonzero_bytes = 0;  // of them, in pages that are not all zero
  std::uint64_t unique_bytes = 0;  // needed by no other version: freed if this one alone is removed
  std::uint64_t shared_bytes = 0;  // others need them, too
};

// Store::stat().
struct StoreStat {
  std::uint64_t stored_bytes = 0;  // on the medium: st_blocks of every file
  std::uint64_t pack_bytes = 0, journal_bytes = 0, ref_bytes = 0;  // by file size
  std::uint64_t pack_needed_bytes = 0;    // of packs: bytes that a version needs, or has open
  std::uint64_t pack_freeable_bytes = 0;  // of packs: bytes that collect_garbage() would free
  std::uint64_t packs = 0, snapshots = 0, branches = 0;
  std::uint64_t archive_packs = 0, archive_bytes = 0;  // of packs and pack_bytes: in archives
  std::uint64_t cache_copies = 0, cache_bytes = 0;     // of packs, in caches; counted nowhere else
  std::uint64_t full_copy_bytes = 0;   // size of sparse full copies of every snapshot and head
  std::vector<VersionSpace> versions;  // snapshots, then branches, by name
};

// The part of a collection that writes packs again: GcOptions::recompress_level.
struct RecompressReport {
  std::uint64_t packs = 0;         // written again; in a dry run: that would be
  std::uint64_t bytes_before = 0;  // their size before
  std::uint64_t bytes_after = 0;   // their size now; in a dry run: about, from samples
  std::uint64_t packs_in_use = 0;  // left as they are: a process has a version open
};

// Store::collect_garbage().
struct GcReport {
  std::uint64_t snapshots = 0, branches = 0;  // whose data stays
  std::uint64_t open_versions = 0;            // open anywhere now: their data stays, named or not
  std::uint64_t packs = 0, packs_removed = 0, packs_punched = 0;
  std::uint64_t copies_removed = 0;  // from caches, of packs that have gone or changed
  std::uint64_t pack_bytes = 0;      // that packs took on the medium before
  std::uint64_t needed_bytes = 0;    // of them, record by record
  std::uint64_t freeable_bytes = 0;  // of them, in whole blocks that nothing needs
  std::uint64_t freed_bytes = 0;     // 0 in a dry run
  bool holes_supported = true;    // false: this file system has no holes, only whole packs could go
  RecompressReport recompressed;  // counted apart from the rest
};

// Store::move_packs() and Store::apply_tiers(). In a dry run: the planned work.
struct TierReport {
  std::uint64_t packs_moved = 0, moved_bytes = 0;
  std::uint64_t packs_in_use = 0;  // left in place: a process has a version open
  std::uint64_t copies_made = 0, copied_bytes = 0, copies_removed = 0;  // in caches
  std::uint64_t home_bytes = 0;  // that packs take at home afterwards
};

// One object that fails its checks.
struct Damage {
  std::string object;  // the file, with the offset where a record is meant
  std::string reason;
  std::vector<std::string> versions;  // the versions that need it; empty: none does
};

// Store::verify().
struct VerifyReport {
  std::uint64_t versions = 0, packs = 0, records = 0, bytes_read = 0;
  std::vector<Damage> damages;  // empty: all is well
};

struct SavedVersion {
  std::string name;  // in the new store
  bool is_branch = false;
  std::uint64_t sequence = 0;
  std::uint64_t region_bytes = 0;
  std::string origin;  // "snapshot 'a'", "branch 'main'", or the source of a recovery
  bool exact = true;   // false: an older state than the one asked for, or a version without a name
                       // of its own
};

struct LostVersion {
  std::string name;    // "snapshot 'a'", "branch 'main'"
  std::string reason;  // names file and offset
};

// Store::repair(). In a dry run: what can be saved, and what cannot.
struct RepairReport {
  std::vector<SavedVersion> saved;
  std::vector<LostVersion> lost;
  std::string destination;          // the new store; empty: a dry run
  std::uint64_t pages_written = 0;  // to it
};

}  // namespace vellum

#endif  // VELLUM_REPORT_HPP
