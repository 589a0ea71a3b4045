// What long calls report: the structs of vellum/report.hpp and their like, field by field.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <string>
#include <vellum/store.hpp>

#include "bindings.hpp"

namespace vellum::python {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

void bind_commit(nb::module_& module) {
  nb::class_<CommitReport>(module, "CommitReport", "What a commit did.")
      .def_ro("sequence", &CommitReport::sequence)
      .def_ro("pages_dirty", &CommitReport::pages_dirty)
      .def_ro("pages_changed", &CommitReport::pages_changed)
      .def_ro("bytes_written", &CommitReport::bytes_written)
      .def_ro("checkpointed", &CommitReport::checkpointed)
      .def("__repr__",
           [](const CommitReport& r) {
             return "<CommitReport " + std::to_string(r.sequence) + ": " +
                    std::to_string(r.pages_changed) + " pages changed, " +
                    std::to_string(r.bytes_written) + " bytes written>";
           })
      .def_prop_ro("seconds", [](const CommitReport& r) { return seconds(r.total_time); })
      .def_prop_ro("flush_seconds", [](const CommitReport& r) { return seconds(r.flush_time); });
}

void bind_version(nb::module_& module) {
  nb::class_<VersionInfo>(module, "VersionInfo", "A snapshot, or a branch's head.")
      .def_ro("name", &VersionInfo::name)
      .def_ro("is_branch", &VersionInfo::is_branch)
      .def_ro("branch", &VersionInfo::branch)
      .def_ro("sequence", &VersionInfo::sequence)
      .def_ro("order", &VersionInfo::order)
      .def_ro("message", &VersionInfo::message)
      .def_ro("parent", &VersionInfo::parent)
      .def_ro("region_bytes", &VersionInfo::region_bytes)
      .def_ro("pages_changed", &VersionInfo::pages_changed)
      .def_ro("bytes_added", &VersionInfo::bytes_added)
      .def("__repr__",
           [](const VersionInfo& v) {
             return std::string(v.is_branch ? "<branch '" : "<snapshot '") + v.name + "'" +
                    (v.message.empty() ? "" : ": " + v.message) + ">";
           })
      .def_prop_ro(
          "committed_at", [](const VersionInfo& v) { return since_1970(v.committed_at); },
          "Seconds since 1970.")
      .def_prop_ro(
          "created_at", [](const VersionInfo& v) { return since_1970(v.created_at); },
          "Seconds since 1970. A snapshot of an old commit is younger than that commit.");
}

void bind_stat(nb::module_& module) {
  nb::class_<VersionSpace>(module, "VersionSpace", "A version's bytes in the packs.")
      .def_ro("name", &VersionSpace::name)
      .def_ro("is_branch", &VersionSpace::is_branch)
      .def_ro("region_bytes", &VersionSpace::region_bytes)
      .def_ro("nonzero_bytes", &VersionSpace::nonzero_bytes)
      .def_ro("unique_bytes", &VersionSpace::unique_bytes)
      .def_ro("shared_bytes", &VersionSpace::shared_bytes);
  nb::class_<StoreStat>(module, "StoreStat", "The space that a store takes.")
      .def_ro("stored_bytes", &StoreStat::stored_bytes)
      .def_ro("pack_bytes", &StoreStat::pack_bytes)
      .def_ro("journal_bytes", &StoreStat::journal_bytes)
      .def_ro("ref_bytes", &StoreStat::ref_bytes)
      .def_ro("pack_needed_bytes", &StoreStat::pack_needed_bytes)
      .def_ro("pack_freeable_bytes", &StoreStat::pack_freeable_bytes)
      .def_ro("packs", &StoreStat::packs)
      .def_ro("snapshots", &StoreStat::snapshots)
      .def_ro("branches", &StoreStat::branches)
      .def_ro("full_copy_bytes", &StoreStat::full_copy_bytes)
      .def_ro("versions", &StoreStat::versions);
}

void bind_upkeep(nb::module_& module) {
  nb::class_<GcReport>(module, "GcReport", "What a collection found and freed.")
      .def_ro("snapshots", &GcReport::snapshots)
      .def_ro("branches", &GcReport::branches)
      .def_ro("open_versions", &GcReport::open_versions)
      .def_ro("packs", &GcReport::packs)
      .def_ro("packs_removed", &GcReport::packs_removed)
      .def_ro("packs_punched", &GcReport::packs_punched)
      .def_ro("pack_bytes", &GcReport::pack_bytes)
      .def_ro("needed_bytes", &GcReport::needed_bytes)
      .def_ro("freeable_bytes", &GcReport::freeable_bytes)
      .def_ro("freed_bytes", &GcReport::freed_bytes)
      .def_prop_ro("recompressed_before",
                   [](const GcReport& r) { return r.recompressed.bytes_before; })
      .def_prop_ro("recompressed_after",
                   [](const GcReport& r) { return r.recompressed.bytes_after; });
  nb::class_<Damage>(module, "Damage", "One object that fails its checks.")
      .def_ro("object", &Damage::object)
      .def_ro("reason", &Damage::reason)
      .def_ro("versions", &Damage::versions);
  nb::class_<VerifyReport>(module, "VerifyReport",
                           "What a check has read, and the damage it found.")
      .def_ro("versions", &VerifyReport::versions)
      .def_ro("packs", &VerifyReport::packs)
      .def_ro("records", &VerifyReport::records)
      .def_ro("bytes_read", &VerifyReport::bytes_read)
      .def_ro("damages", &VerifyReport::damages);
}

}  // namespace

void bind_reports(nb::module_& module) {
  bind_commit(module);
  bind_version(module);
  bind_stat(module);
  bind_upkeep(module);
}

}  // namespace vellum::python
