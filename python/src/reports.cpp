// The reports of long calls: the structs of vellum/report.hpp and similar ones, field by field.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <string>
#include <vellum/store.hpp>

#include "bindings.hpp"
#include "report.hpp"

namespace vellum::python {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

void bind_commit(nb::module_& module) {
  using Commit = CommitReport;
  Report<Commit>(module, "CommitReport", "The result of a commit.")
      .field("sequence", &Commit::sequence, "The number of the version that is now the head.")
      .field("pages_dirty", &Commit::pages_dirty, "Dirty pages.")
      .field("pages_changed", &Commit::pages_changed,
             "Of these, pages whose bytes differ from the last commit.")
      .field("bytes_written", &Commit::bytes_written, "To journal and packs.")
      .field("checkpointed", &Commit::checkpointed,
             "Whether it went to packs, with the journal's earlier commits.")
      .field(
          "seconds", [](const Commit& r) { return seconds(r.total_time); }, "The total time.")
      .field(
          "flush_seconds", [](const Commit& r) { return seconds(r.flush_time); },
          "Of this, waiting for the medium.");
}

void bind_version(nb::module_& module) {
  using Version = VersionInfo;
  Report<Version>(module, "VersionInfo", "A snapshot, or a branch's head.")
      .field("name", &Version::name, "Its name.")
      .field("is_branch", &Version::is_branch, "A branch's head; otherwise a snapshot.")
      .field("branch", &Version::branch, "The branch of its commit.")
      .field("sequence", &Version::sequence, "The number of commits in its history.")
      .field("order", &Version::order,
             "Of a snapshot: larger than that of every earlier one; 0: a branch.")
      .field("message", &Version::message, "The message of its commit or snapshot.")
      .field("parent", &Version::parent, "The previous snapshot in its history; empty: none.")
      .field("region_bytes", &Version::region_bytes, "The size of its region.")
      .field("pages_changed", &Version::pages_changed, "Since the parent.")
      .field("bytes_added", &Version::bytes_added, "To packs, since the parent.")
      .field(
          "committed_at", [](const Version& v) { return since_1970(v.committed_at); },
          "Seconds since 1970.")
      .field(
          "created_at", [](const Version& v) { return since_1970(v.created_at); },
          "Seconds since 1970. A snapshot of an old commit is younger than that commit.");
}

void bind_space(nb::module_& module) {
  using Space = VersionSpace;
  Report<Space>(module, "VersionSpace", "A version's bytes in the packs.")
      .field("name", &Space::name, "The version's name.")
      .field("is_branch", &Space::is_branch, "A branch's head; otherwise a snapshot.")
      .field("region_bytes", &Space::region_bytes, "The size of its region.")
      .field("nonzero_bytes", &Space::nonzero_bytes, "Of these, in pages that are not all zero.")
      .field("unique_bytes", &Space::unique_bytes,
             "Needed by no other version: freed if only this one is removed.")
      .field("shared_bytes", &Space::shared_bytes, "Needed by other versions, too.");
}

void bind_stat(nb::module_& module) {
  using Stat = StoreStat;
  Report<Stat>(module, "StoreStat", "The space of a store.")
      .field("stored_bytes", &Stat::stored_bytes, "On the medium: the blocks of every file.")
      .field("pack_bytes", &Stat::pack_bytes, "The size of the packs' files.")
      .field("journal_bytes", &Stat::journal_bytes, "The size of the journals' files.")
      .field("ref_bytes", &Stat::ref_bytes, "The size of the ref files.")
      .field("pack_needed_bytes", &Stat::pack_needed_bytes, "Of packs: needed by a version.")
      .field("pack_freeable_bytes", &Stat::pack_freeable_bytes, "Of packs: `gc()` would free them.")
      .field("packs", &Stat::packs, "The number of packs.")
      .field("snapshots", &Stat::snapshots, "The number of snapshots.")
      .field("branches", &Stat::branches, "The number of branches.")
      .field("full_copy_bytes", &Stat::full_copy_bytes,
             "The size of sparse copies of every snapshot and head.")
      .field("versions", &Stat::versions, "A `VersionSpace` for each of them.");
}

void bind_gc(nb::module_& module) {
  using Gc = GcReport;
  Report<Gc>(module, "GcReport", "The result of a garbage collection.")
      .field("snapshots", &Gc::snapshots, "Snapshots whose data stays.")
      .field("branches", &Gc::branches, "Branches whose data stays.")
      .field("open_versions", &Gc::open_versions,
             "Versions that a process has open: their data stays, named or not.")
      .field("packs", &Gc::packs, "Packs that were checked.")
      .field("packs_removed", &Gc::packs_removed, "Packs that were removed.")
      .field("packs_punched", &Gc::packs_punched, "Packs in which holes were punched.")
      .field("pack_bytes", &Gc::pack_bytes, "The space of the packs on the medium before.")
      .field("needed_bytes", &Gc::needed_bytes, "Of these, needed by versions.")
      .field("freeable_bytes", &Gc::freeable_bytes, "Of these, in whole blocks that nothing needs.")
      .field("freed_bytes", &Gc::freed_bytes, "The freed bytes; 0 in a dry run.")
      .field(
          "recompressed_before", [](const Gc& r) { return r.recompressed.bytes_before; },
          "The size of the recompressed packs, before.")
      .field(
          "recompressed_after", [](const Gc& r) { return r.recompressed.bytes_after; },
          "Their size afterwards.");
}

void bind_verify(nb::module_& module) {
  Report<Damage>(module, "Damage", "One object that fails its checks.")
      .field("object", &Damage::object, "The file, with the offset of a record.")
      .field("reason", &Damage::reason, "The error.")
      .field("versions", &Damage::versions, "The versions that need it; empty: none.");
  using Verify = VerifyReport;
  Report<Verify>(module, "VerifyReport", "The extent of a check, and the damage that it found.")
      .field("versions", &Verify::versions, "Versions that were checked.")
      .field("packs", &Verify::packs, "Packs that were checked.")
      .field("records", &Verify::records, "Records that were checked.")
      .field("bytes_read", &Verify::bytes_read, "Bytes that were read.")
      .field("damages", &Verify::damages, "A `Damage` for each; empty: no errors.");
}

}  // namespace

void bind_reports(nb::module_& module) {
  bind_commit(module);
  bind_version(module);
  bind_space(module);
  bind_stat(module);
  bind_gc(module);
  bind_verify(module);
}

}  // namespace vellum::python
