#include "region/api/import.hpp"

#include <cassert>
#include <chrono>
#include <optional>

#include "base/clock.hpp"
#include "base/round_up.hpp"
#include "memory/address_range.hpp"
#include "region/api/store_impl.hpp"
#include "region/background_gc.hpp"
#include "region/commit_report.hpp"
#include "store/branch/staging_branch.hpp"
#include "store/stream/image_file.hpp"
#include "store/stream/import.hpp"

namespace vellum::api {
namespace {

using Clock = std::chrono::steady_clock;

class Importer {
 public:
  Importer(std::shared_ptr<store::StoreDirectory> core, const std::string& branch,
           store::Content& content, const std::string& message, const ProgressFn& progress,
           const std::string* snapshot)
      : core_(std::move(core)),
        branch_(branch),
        content_(content),
        message_(message),
        progress_(progress),
        snapshot_(snapshot) {}

  CommitReport run() {
    if (!has_branch(*core_, branch_)) {
      bool made = false;
      try {
        CommitReport report = into_new_branch();
        made = true;
        if (snapshot_ != nullptr) name_new_branch();
        return report;
      } catch (const Error& e) {
        // Another process may have created it meanwhile.
        if (made || e.code() != Errc::already_exists || !has_branch(*core_, branch_)) throw;
        if (!content_.restart()) throw;
      }
    }
    return into_branch();
  }

 private:
  CommitReport into_branch() {
    std::optional<store::NameLock> claim;
    if (snapshot_ != nullptr) claim = store::claim_name(*core_, *snapshot_);
    const auto writer = store::BranchWriter::open(*core_, branch_);
    store::ImageFile::note_other_writer(*core_, branch_, writer->head());
    region::BackgroundGc space(core_, writer->head());
    const CommitReport report = with_room(space, *writer, {.snapshot = claim ? &*claim : nullptr});
    space.finish();
    return report;
  }

  CommitReport into_new_branch() {
    const store::NameLock claim = store::claim_name(*core_, branch_);
    format::Version empty;
    empty.time_ns = base::wall_clock_ns();
    empty.region_bytes = format::kPageBytes;
    store::StagingBranch staging(*core_, empty, std::nullopt);
    region::BackgroundGc space(core_, staging.writer().head());
    const CommitReport report = with_room(space, staging.writer(), {.checkpoint = true});
    staging.publish(claim);
    space.finish();
    return report;
  }

  // Removes the new branch if its snapshot cannot be created. REQUIRES: run() created the branch.
  void name_new_branch() {
    assert(snapshot_ != nullptr);
    try {
      const store::NameLock claim = store::claim_name(*core_, *snapshot_);
      store::BranchWriter::open(*core_, branch_)->publish_snapshot(claim, message_);
    } catch (...) {
      try {
        core_->remove_branch(branch_);
      } catch (const Error&) {  // another process has it open already, or the disk fails
      }
      throw;
    }
  }

  CommitReport with_room(region::BackgroundGc& space, store::BranchWriter& writer,
                         const store::ImportOptions& options) {
    try {
      return import(space, writer, options);
    } catch (const Error& e) {
      if (e.code() != Errc::no_space || !space.make_room() || !content_.restart()) throw;
    }
    return import(space, writer, options);
  }

  CommitReport import(region::BackgroundGc& space, store::BranchWriter& writer,
                      store::ImportOptions options) {
    const auto start = Clock::now();
    options.message = message_;
    const format::Version& head = writer.head();
    options.base_address =
        head.base_address != 0 ? head.base_address : region::far_address(head.branch_id);
    store::ImportReport imported;
    {
      const region::GcPacing::Commit turn(space.pacing());
      imported = store::import_content(writer, content_, options, progress_);
    }
    space.note_written(imported.cost.bytes_written);
    return report_of(imported, writer.head().sequence, start);
  }

  static CommitReport report_of(const store::ImportReport& imported, std::uint64_t sequence,
                                Clock::time_point start) {
    CommitReport report;
    report.sequence = sequence;
    report.pages_dirty = report.pages_changed = imported.pages_changed;
    region::set_cost(report, imported.cost);
    report.total_time = Clock::now() - start;
    return report;
  }

  const std::shared_ptr<store::StoreDirectory> core_;
  const std::string& branch_;
  store::Content& content_;
  const std::string& message_;
  const ProgressFn& progress_;
  const std::string* const snapshot_;  // null: no snapshot
};

}  // namespace

CommitReport import_content(Store& store, const std::string& branch, store::Content& content,
                            const std::string& message, const ProgressFn& progress,
                            const std::string* snapshot) {
  return Importer(StoreAccess::core_of(store), branch, content, message, progress, snapshot).run();
}

}  // namespace vellum::api
