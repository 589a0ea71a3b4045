#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <vector>

#include <vellum/atomic_file.hpp>

#include "base/bytes/checksum.hpp"
#include "base/files/file.hpp"
#include "power/workload_lib.hpp"

namespace vellum::power {

namespace {

struct FileState {
  std::uint64_t size_bytes = 0, digest = 0;
  bool operator==(const FileState&) const = default;
};

// Commits of all sizes, growth, truncation, full journals, and reopening.
class AtomicFileWorkload : public Workload {
 public:
  AtomicFileWorkload(std::uint64_t seed, std::uint64_t commits)
      : random_(seed), commits_(commits) {}
  const char* name() const override { return "AtomicFile"; }

  void run(const Site& site) override {
    options_.journal_bytes = 64 << 10;
    auto file = AtomicFile::open_or_create(path(site.directory), kStartBytes, options_);
    states_.assign(1, state_of(file));
    for (std::uint64_t i = 0; i < commits_; ++i) {
      if (below(16) == 0) resize(site, file);
      store_some(file);
      commit(site, file);
      if (below(24) == 0) {
        file.close();
        file = AtomicFile::open(path(site.directory), options_);
      }
    }
    file.close();
  }

  void check(const std::string& directory, const Allowed& allowed) override {
    if (!std::filesystem::exists(path(directory))) {
      if (allowed.returned == 0) return;
      throw std::runtime_error("the file is not there");
    }
    AtomicFile::recover(path(directory));
    constexpr std::uint64_t kLimit = 64 << 20;
    const auto bytes = base::read_whole(base::posix_fs(), path(directory), kLimit);
    // Its first commit makes the file's size durable.
    if (allowed.returned == 0 &&
        std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; })) {
      return;
    }
    const FileState found{bytes.size(), base::checksum64(bytes)};
    for (std::uint64_t i = allowed.returned; i <= allowed.begun; ++i) {
      if (states_[i] == found) return;
    }
    throw std::runtime_error(fmt::format("{} bytes of no commit that is allowed", bytes.size()));
  }

 private:
  static constexpr std::uint64_t kStartBytes = 96 << 10;

  static std::string path(const std::string& directory) { return directory + "/file"; }
  static FileState state_of(const AtomicFile& file) {
    return {file.size_bytes(), base::checksum64({static_cast<const std::byte*>(file.data()),
                                                 static_cast<std::size_t>(file.size_bytes())})};
  }

  // From now on a power cut may leave it.
  void begin(const Site& site, const AtomicFile& file) {
    states_.push_back(state_of(file));
    site.progress.begun = states_.size() - 1;
  }
  void commit(const Site& site, AtomicFile& file) {
    begin(site, file);
    file.commit();
    site.progress.returned = states_.size() - 1;
  }
  void resize(const Site& site, AtomicFile& file) {
    const std::uint64_t now = file.size_bytes(), then = kStartBytes / 2 + below(kStartBytes);
    const auto* const data = static_cast<const std::byte*>(file.data());
    std::vector<std::byte> content(data, data + now);
    content.resize(then);
    states_.push_back({then, base::checksum64(content)});
    site.progress.begun = states_.size() - 1;
    file.resize(then);
    // A file that grows has its zeros for certain with the next commit, and may have them earlier.
    if (then < now) site.progress.returned = states_.size() - 1;
  }
  void store_some(AtomicFile& file) {
    auto* data = static_cast<std::uint64_t*>(file.data());
    const std::uint64_t words = file.size_bytes() / sizeof *data;
    const std::uint64_t count = below(8) == 0 ? 2000 : 1 + below(20);
    for (std::uint64_t i = 0; i < count; ++i) data[below(words)] = random_();
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  std::mt19937_64 random_;
  std::uint64_t commits_;
  AtomicFileOptions options_;
  std::vector<FileState> states_;
};

}  // namespace

std::unique_ptr<Workload> atomic_file_workload(std::uint64_t seed, std::uint64_t commits) {
  return std::make_unique<AtomicFileWorkload>(seed, commits);
}

}  // namespace vellum::power
