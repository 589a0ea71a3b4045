// vellum/report.hpp: the progress and the results of a store's long calls.
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

// The library calls it periodically in the thread of the call. An exception from it ends the call.
struct Progress {
  std::uint64_t done = 0, total = 0;  // total is 0 when it is unknown
  const char* unit = "";
};
using ProgressFn = std::function<void(const Progress&)>;

// Store::diff().
struct DiffTotals {
  std::uint64_t pages_compared = 0;  // byte by byte, because their page maps differ
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
  std::uint64_t unique_bytes = 0;   // needed by no other version: freed if only this one is removed
  std::uint64_t shared_bytes = 0;   // others need them, too
};

// Store::stat().
struct StoreStat {
  std::uint64_t stored_bytes = 0;  // on the medium: st_blocks of every file
  std::uint64_t pack_bytes = 0, journal_bytes = 0, ref_bytes = 0;  // by file size
  std::uint64_t pack_needed_bytes = 0;    // of packs: bytes that a version needs, or has open
  std::uint64_t pack_freeable_bytes = 0;  // of packs: bytes that collect_garbage() would free
  std::uint64_t packs = 0, snapshots = 0, branches = 0;
  std::uint64_t archive_packs = 0, archive_bytes = 0;  // of packs and pack_bytes: in archives
  std::uint64_t cache_copies = 0, cache_bytes = 0;     // of packs, in caches; only counted here
  std::uint64_t full_copy_bytes = 0;   // size of sparse full copies of every snapshot and head
  std::vector<VersionSpace> versions;  // snapshots, then branches, by name
};

// The part of a collection that rewrites packs: GcOptions::recompress_level.
struct RecompressReport {
  std::uint64_t packs = 0;         // rewritten; in a dry run: that would be
  std::uint64_t bytes_before = 0;  // their size before
  std::uint64_t bytes_after = 0;   // their size now; in a dry run: about, from samples
  std::uint64_t packs_in_use = 0;  // not rewritten: a process has a version open
};

// Store::collect_garbage().
struct GcReport {
  std::uint64_t snapshots = 0, branches = 0;  // whose data stays
  std::uint64_t open_versions = 0;            // open in any process: their data stays, named or not
  std::uint64_t packs = 0, packs_removed = 0, packs_punched = 0;
  std::uint64_t copies_removed = 0;  // from caches, of packs that were removed or changed
  std::uint64_t pack_bytes = 0;      // that packs occupied on the medium before
  std::uint64_t needed_bytes = 0;    // of them, record by record
  std::uint64_t freeable_bytes = 0;  // of them, in whole blocks that nothing needs
  std::uint64_t freed_bytes = 0;     // 0 in a dry run
  bool holes_supported = true;       // false: without holes, only whole packs could be freed
  RecompressReport recompressed;     // not included in the counts above
};

// Store::move_packs() and Store::apply_tiers(). In a dry run: the planned work.
struct TierReport {
  std::uint64_t packs_moved = 0, moved_bytes = 0;
  std::uint64_t packs_in_use = 0;  // not moved: a process has a version open
  std::uint64_t copies_made = 0, copied_bytes = 0, copies_removed = 0;  // in caches
  std::uint64_t home_bytes = 0;  // that packs occupy at home afterwards
};

// One object that fails its checks.
struct Damage {
  std::string object;  // the file, with the offset of the record if it is one
  std::string reason;
  std::vector<std::string> versions;  // the versions that need it; empty: none does
};

// Store::verify().
struct VerifyReport {
  std::uint64_t versions = 0, packs = 0, records = 0, bytes_read = 0;
  std::vector<Damage> damages;  // empty: no damage
};

struct SavedVersion {
  std::string name;  // in the new store
  bool is_branch = false;
  std::uint64_t sequence = 0;
  std::uint64_t region_bytes = 0;
  std::string origin;  // "snapshot 'a'", "branch 'main'", or the source of a recovery
  bool exact = true;   // false: an older state than the requested one, or a version without a name
                       // of its own
};

struct LostVersion {
  std::string name;    // "snapshot 'a'", "branch 'main'"
  std::string reason;  // names file and offset
};

// Store::repair(). In a dry run: the versions that can be saved, and those that cannot.
struct RepairReport {
  std::vector<SavedVersion> saved;
  std::vector<LostVersion> lost;
  std::string destination;          // the new store; empty: a dry run
  std::uint64_t pages_written = 0;  // to it
};

}  // namespace vellum

#endif  // VELLUM_REPORT_HPP
