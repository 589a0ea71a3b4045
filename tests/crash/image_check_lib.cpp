#include "crash/image_check_lib.hpp"

#include <fmt/format.h>

#include "crash/pages_lib.hpp"
#include "crash/repeats_lib.hpp"
#include "crash/session_lib.hpp"
#include "store/branch/branch_writer.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "vellum/error.hpp"

namespace vellum::crash {

using store::BranchWriter;
using store::StoreDirectory;

namespace {

[[noreturn]] void complain(const std::string& what) { throw std::runtime_error(what); }

std::shared_ptr<StoreDirectory> open_if_store(SimFs& fs) {
  try {
    return StoreDirectory::open(fs, kStorePath);
  } catch (const Error& e) {
    if (e.code() == Errc::not_found || e.code() == Errc::not_a_store) return nullptr;
    throw;
  }
}

void expect_no_damage(StoreDirectory& core) {
  const auto report = store::verify_store(core, true, nullptr);
  if (report.damages.empty()) return;
  const auto& first = report.damages.front();
  complain(fmt::format("verify: {}: {}", first.object, first.reason));
}

void expect_state(const Disk& disk, const StoreState& wanted, const char* when) {
  SimFs fs(disk);
  const StoreState found = read_state(fs, kStorePath);
  if (found == wanted) return;
  complain(fmt::format("{}: {}\n  instead of {}", when, found.text(), wanted.text()));
}

// One more commit on the image, in one of several ways; then every version is read again.
class NextCommit {
 public:
  NextCommit(SimFs& fs, std::uint64_t choice, const StoreState& state)
      : fs_(fs), choice_(choice), state_(state) {}

  // `core`: the store, when the image has one.
  void run(std::shared_ptr<StoreDirectory> core, const StoreState& names,
           const format::Superblock& options) {
    if (core == nullptr) core = create_store_on(fs_, kStorePath, options);
    state_.exists = true;
    make_missing_branches(*core, names);
    if (state_.branches.empty()) make_branch(*core, "fresh");
    // Leftovers of a crash must not mislead gc, and leftovers of gc must not mislead the opening
    // after the next crash.
    if (choice_ % 3 == 0) store::collect_garbage(*core, false, nullptr, choice_ % 2 == 0 ? 3 : 0);
    commit(*core);
    if (choice_ % 3 != 1) return;
    store::collect_garbage(*core, false, nullptr, choice_ % 2 == 0 ? 3 : 0);
    expect_state(fs_.disk(), state_, "after gc");
  }

 private:
  void make_branch(StoreDirectory& core, const std::string& name) {
    core.create_branch(name, 2 * format::kPageBytes, 0);
    state_.branches[name] = state_of(0, std::vector<std::byte>(2 * format::kPageBytes));
  }
  void make_missing_branches(StoreDirectory& core, const StoreState& names) {
    for (const auto& [name, version] : names.branches) {
      if (state_.branches.count(name) == 0) make_branch(core, name);
    }
  }

  void commit(StoreDirectory& core) {
    auto at = state_.branches.begin();
    std::advance(at, static_cast<std::ptrdiff_t>((choice_ >> 8) % state_.branches.size()));
    auto& [name, version] = *at;
    auto writer = BranchWriter::open(core, name);
    if (writer->head().sequence != version.sequence) complain("the writer opens another version");
    Pages pages(read_pages(*writer->source_at_open()));
    if (pages.count() == 0) pages.grow(1);
    if ((choice_ >> 40) % 2 == 0) repeat_a_version(pages, core, state_, choice_ >> 41);
    pages.store64((choice_ >> 16) % pages.count(), 8 * (choice_ >> 32) % 512, choice_);
    const bool checkpoint = choice_ % 4 == 1;
    auto commit = writer->begin(pages.touched());
    commit->add(pages.take(1, base::Compression::none, commit->dedup()));
    commit->finish({1, pages.bytes().size(), 0, ""}, checkpoint);
    commit.reset();
    version = state_of(version.sequence + 1, pages.bytes());
    if (choice_ % 4 < 2) return expect_state(fs_.disk(), state_, "killed after the next commit");
    if (choice_ % 4 == 2) publish(*writer, name);
    writer.reset();
    expect_state(fs_.disk(), state_, "closed after the next commit");
  }

  void publish(BranchWriter& writer, const std::string& branch) {
    auto commit = writer.begin();
    commit->finish({1, writer.head().region_bytes, 0, ""}, true);
    commit.reset();
    writer.publish_snapshot("after-the-crash", "");
    VersionState& version = state_.branches[branch];
    ++version.sequence;
    state_.snapshots["after-the-crash"] = version;
  }

  SimFs& fs_;
  std::uint64_t choice_;
  StoreState state_;
};

}  // namespace

Finding check_image(const Disk& image, std::uint64_t image_hash, const StoreState& names,
                    const format::Superblock& options) {
  Finding finding;
  try {
    SimFs fs(image);
    const auto core = open_if_store(fs);
    if (core != nullptr) {
      finding.state = read_state(*core);
      expect_no_damage(*core);
    }
    NextCommit(fs, image_hash, finding.state).run(core, names, options);
  } catch (const std::exception& e) {
    finding.problem = e.what();
  }
  return finding;
}

}  // namespace vellum::crash
