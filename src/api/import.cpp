#include "api/import.hpp"

#include <chrono>
#include <optional>

#include "api/store_impl.hpp"
#include "base/clock.hpp"
#include "base/round_up.hpp"
#include "region/commit_report.hpp"
#include "region/memory/address_range.hpp"
#include "region/space_keeper.hpp"
#include "store/branch/branch_aside.hpp"
#include "store/image/image_file.hpp"
#include "store/stream/import.hpp"

namespace vellum::api {
namespace {

using Clock = std::chrono::steady_clock;

class Importer {
 public:
  Importer(std::shared_ptr<store::StoreCore> core, const std::string& branch,
           store::Content& content, const std::string& message, const ProgressFn& progress)
      : core_(std::move(core)),
        branch_(branch),
        content_(content),
        message_(message),
        progress_(progress) {}

  CommitReport run() {
    if (!has_branch(*core_, branch_)) {
      try {
        return into_new_branch();
      } catch (const Error& e) {
        // Somebody else may have made it meanwhile.
        if (e.code() != Errc::already_exists || !has_branch(*core_, branch_)) throw;
        if (!content_.restart()) throw;
      }
    }
    return into_branch();
  }

 private:
  CommitReport into_branch() {
    const auto writer = store::BranchWriter::open(*core_, branch_);
    store::ImageFile::note_other_writer(*core_, branch_, writer->head().branch_id);
    region::SpaceKeeper space(core_, writer->head());
    const CommitReport report = with_room(space, *writer, false);
    space.finish();
    return report;
  }

  CommitReport into_new_branch() {
    const store::NameLock claim = store::claim_name(*core_, branch_);
    format::Version empty;
    empty.time_ns = base::wall_clock_ns();
    empty.region_bytes = format::kPageBytes;
    store::BranchAside aside(*core_, empty, std::nullopt);
    region::SpaceKeeper space(core_, aside.writer().head());
    const CommitReport report = with_room(space, aside.writer(), true);
    aside.publish(claim);
    space.finish();
    return report;
  }

  CommitReport with_room(region::SpaceKeeper& space, store::BranchWriter& writer, bool checkpoint) {
    try {
      return import(space, writer, checkpoint);
    } catch (const Error& e) {
      if (e.code() != Errc::no_space || !space.make_room() || !content_.restart()) throw;
    }
    return import(space, writer, checkpoint);
  }

  CommitReport import(region::SpaceKeeper& space, store::BranchWriter& writer, bool checkpoint) {
    const auto start = Clock::now();
    store::ImportOptions options;
    options.message = message_;
    options.checkpoint = checkpoint;
    const format::Version& head = writer.head();
    options.base_address =
        head.base_address != 0 ? head.base_address : region::far_address(head.branch_id);
    store::ImportReport imported;
    {
      const region::Turns::Commit turn(space.turns());
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

  const std::shared_ptr<store::StoreCore> core_;
  const std::string& branch_;
  store::Content& content_;
  const std::string& message_;
  const ProgressFn& progress_;
};

}  // namespace

CommitReport import_content(Store& store, const std::string& branch, store::Content& content,
                            const std::string& message, const ProgressFn& progress) {
  return Importer(StoreAccess::core_of(store), branch, content, message, progress).run();
}

}  // namespace vellum::api
