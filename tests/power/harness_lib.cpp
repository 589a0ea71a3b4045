#include "power/harness_lib.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>

#include "base/temp_directory.hpp"
#include "power/cuts_lib.hpp"
#include "power/image_lib.hpp"
#include "power/mount_lib.hpp"
#include "power/recorder_lib.hpp"

namespace vellum::power {

namespace {

BlockLog record(const FileSystem& system, const Descriptor& disk, Workload& workload,
                const std::string& scratch, const std::string& directory) {
  const std::string medium = scratch + "/medium";
  std::filesystem::create_directory(medium);
  Recorder recorder(disk, medium);
  {
    const LoopDevice device(recorder.file());
    Mount mounted(device.path(), directory, system.mount_as);
    workload.run({directory, recorder.progress(), recorder.progress_file()});
    mounted.unmount();
  }
  return recorder.stop();
}

class Replay {
 public:
  Replay(const FileSystem& system, Workload& workload, const BlockLog& log, Image& image,
         std::string directory)
      : system_(system),
        workload_(workload),
        log_(log),
        entries_(log.entries()),
        image_(image),
        device_(path_of(image.file())),
        directory_(std::move(directory)) {
    for (const LogEntry& entry : entries_) ++(entry.is_flush() ? out_.flushes : out_.writes);
  }

  Outcome run(const std::vector<Cut>& cuts, const Effort& effort) {
    for (const Cut& cut : cuts) {
      settle_before(cut.at);
      for (const PartialWrite& piece : cut.pieces) {
        const LogEntry& write = entries_[piece.entry];
        piece.sectors.empty() ? image_.add(write) : image_.add(write, piece.sectors);
      }
      look_at(cut, effort.seed + out_.images);
      ++out_.images;
      image_.restore();
      if (effort.talks) talk(cuts.size());
      if (effort.until_violation && out_.violations != 0) break;
    }
    return out_;
  }

 private:
  // The writes before the last flush before `at` are on the medium.
  void settle_before(std::size_t at) {
    std::size_t end = at;
    while (end > settled_ && !entries_[end - 1].is_flush()) --end;
    for (; settled_ < end; ++settled_) {
      if (!entries_[settled_].is_flush()) image_.settle(entries_[settled_]);
    }
  }

  void look_at(const Cut& cut, std::uint64_t choice) {
    const LogHeader& header = log_.before(cut.at);
    const Allowed allowed{header.returned, header.begun, choice};
    std::optional<Mount> mounted;
    try {
      device_.forget_pages();
      mounted.emplace(device_.path(), directory_, system_.mount_as);
      workload_.check(directory_, allowed);
      mounted->unmount();
    } catch (const std::exception& e) {
      ++(mounted ? out_.violations : out_.unmounted);
      note_problem(cut, allowed, e.what());
    }
  }

  void note_problem(const Cut& cut, const Allowed& allowed, const char* what) {
    constexpr std::size_t kTold = 5;
    if (out_.first_problems.size() == kTold) return;
    out_.first_problems.push_back(
        fmt::format("{} on {}, image {}: {}, {} writes, before entry {} of {}; states {} to {} are "
                    "allowed: {}",
                    workload_.name(), system_.name, out_.images, cut.kind, cut.pieces.size(),
                    cut.at, entries_.size(), allowed.returned, allowed.begun, what));
  }

  void talk(std::size_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (out_.images != all &&
        now - talked_ < std::chrono::seconds(isatty(STDERR_FILENO) ? 1 : 20)) {
      return;
    }
    talked_ = now;
    fmt::print(stderr, "  {} on {}: {} of {} images, {} violations\n", workload_.name(),
               system_.name, out_.images, all, out_.violations);
  }

  const FileSystem& system_;
  Workload& workload_;
  const BlockLog& log_;
  const std::vector<LogEntry>& entries_;
  Image& image_;
  LoopDevice device_;
  std::string directory_;
  std::size_t settled_ = 0;  // entries before this one
  Outcome out_;
  std::chrono::steady_clock::time_point talked_ = std::chrono::steady_clock::now();
};

}  // namespace

Outcome cut_power(const FileSystem& system, Workload& workload, const Effort& effort) {
  const test::TempDirectory scratch(test::memory_directory());
  const Descriptor disk = make_disk(system);
  Image image(disk);
  // Images are mounted at the path of the recorded one: a store stores the paths of its tiers.
  const std::string directory = scratch / "mounted";
  std::filesystem::create_directory(directory);
  const BlockLog log = record(system, disk, workload, scratch.path(), directory);
  return Replay(system, workload, log, image, directory)
      .run(plan_cuts(log, system, effort.images, effort.seed), effort);
}

}  // namespace vellum::power
