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
  Report<Commit>(module, "CommitReport", "What a commit did.")
      .field("sequence", &Commit::sequence, "The number of the version that is now the head.")
      .field("pages_dirty", &Commit::pages_dirty, "Pages that were written to.")
      .field("pages_changed", &Commit::pages_changed,
             "Of these, pages whose bytes differ from the last commit.")
      .field("bytes_written", &Commit::bytes_written, "To journal and packs.")
      .field("checkpointed", &Commit::checkpointed,
             "Whether it went to packs, with the journal's earlier commits.")
      .field(
          "seconds", [](const Commit& r) { return seconds(r.total_time); }, "All that it took.")
      .field(
          "flush_seconds", [](const Commit& r) { return seconds(r.flush_time); },
          "Of these, the medium's.");
}

void bind_version(nb::module_& module) {
  using Version = VersionInfo;
  Report<Version>(module, "VersionInfo", "A snapshot, or a branch's head.")
      .field("name", &Version::name, "Its name.")
      .field("is_branch", &Version::is_branch, "A branch's head; otherwise a snapshot.")
      .field("branch", &Version::branch, "The branch that it was made on.")
      .field("sequence", &Version::sequence, "Commits on its line.")
      .field("order", &Version::order,
             "Of a snapshot: larger than that of every earlier one; 0: a branch.")
      .field("message", &Version::message, "What its commit or snapshot was given.")
      .field("parent", &Version::parent, "The snapshot before it on its line; empty: none.")
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
             "Needed by no other version: freed if this one alone is removed.")
      .field("shared_bytes", &Space::shared_bytes, "Needed by other versions, too.");
}

void bind_stat(nb::module_& module) {
  using Stat = StoreStat;
  Report<Stat>(module, "StoreStat", "The space that a store takes.")
      .field("stored_bytes", &Stat::stored_bytes, "On the medium: the blocks of every file.")
      .field("pack_bytes", &Stat::pack_bytes, "The size of the packs' files.")
      .field("journal_bytes", &Stat::journal_bytes, "The size of the journals' files.")
      .field("ref_bytes", &Stat::ref_bytes, "The size of the files that name versions.")
      .field("pack_needed_bytes", &Stat::pack_needed_bytes, "Of packs: what a version needs.")
      .field("pack_freeable_bytes", &Stat::pack_freeable_bytes, "Of packs: what `gc()` would free.")
      .field("packs", &Stat::packs, "How many packs there are.")
      .field("snapshots", &Stat::snapshots, "How many snapshots there are.")
      .field("branches", &Stat::branches, "How many branches there are.")
      .field("full_copy_bytes", &Stat::full_copy_bytes,
             "What sparse copies of every snapshot and head would take.")
      .field("versions", &Stat::versions, "A `VersionSpace` for each of them.");
}

void bind_gc(nb::module_& module) {
  using Gc = GcReport;
  Report<Gc>(module, "GcReport", "What a collection found and freed.")
      .field("snapshots", &Gc::snapshots, "Snapshots whose data stays.")
      .field("branches", &Gc::branches, "Branches whose data stays.")
      .field("open_versions", &Gc::open_versions,
             "Versions that are open anywhere now: their data stays, named or not.")
      .field("packs", &Gc::packs, "Packs that were looked at.")
      .field("packs_removed", &Gc::packs_removed, "Packs that were removed.")
      .field("packs_punched", &Gc::packs_punched, "Packs that were given holes.")
      .field("pack_bytes", &Gc::pack_bytes, "What packs took on the medium before.")
      .field("needed_bytes", &Gc::needed_bytes, "Of these, what versions need.")
      .field("freeable_bytes", &Gc::freeable_bytes, "Of these, in whole blocks that nothing needs.")
      .field("freed_bytes", &Gc::freed_bytes, "What was given back; 0 in a dry run.")
      .field(
          "recompressed_before", [](const Gc& r) { return r.recompressed.bytes_before; },
          "The size of the packs that were compressed again, before.")
      .field(
          "recompressed_after", [](const Gc& r) { return r.recompressed.bytes_after; },
          "Their size afterwards.");
}

void bind_verify(nb::module_& module) {
  Report<Damage>(module, "Damage", "One object that fails its checks.")
      .field("object", &Damage::object, "The file, with the offset of a record.")
      .field("reason", &Damage::reason, "What is wrong.")
      .field("versions", &Damage::versions, "The versions that need it; empty: none does.");
  using Verify = VerifyReport;
  Report<Verify>(module, "VerifyReport", "What a check has read, and the damage it found.")
      .field("versions", &Verify::versions, "Versions that were checked.")
      .field("packs", &Verify::packs, "Packs that were checked.")
      .field("records", &Verify::records, "Records that were checked.")
      .field("bytes_read", &Verify::bytes_read, "What was read for that.")
      .field("damages", &Verify::damages, "A `Damage` for each; empty: all is well.");
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
