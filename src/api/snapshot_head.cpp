#include "api/snapshot_head.hpp"

#include "api/store_impl.hpp"
#include "base/clock.hpp"
#include "region/commit_report.hpp"
#include "store/branch/branch_writer.hpp"

namespace vellum::api {

CommitReport snapshot_head(Store& store, const std::string& branch, const std::string& name,
                           const std::string& message) {
  auto& core = *StoreAccess::core_of(store);
  const store::NameLock claim = store::claim_name(core, name);
  const auto writer = store::BranchWriter::open(core, branch);
  const format::Version& head = writer->head();
  const auto cost = writer->begin()->finish(
      {base::wall_clock_ns(), head.region_bytes, head.base_address, message, head.file_bytes},
      true);
  writer->publish_snapshot(claim, message);
  CommitReport report;
  report.sequence = cost.sequence;
  region::set_cost(report, cost);
  return report;
}

}  // namespace vellum::api
