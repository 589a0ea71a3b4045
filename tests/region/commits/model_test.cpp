// A store against a plain model of it: random transactions, everything compared.
//
// VELLUM_MODEL_STEPS and VELLUM_MODEL_SEED configure long runs.
#include <cstdlib>
#include <future>
#include <map>
#include <random>

#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

using Bytes = std::vector<std::byte>;

struct Setting {
  const char* name;
  StoreOptions options;
  std::uint32_t fault_bytes = 0;
};

StoreOptions store_options(Encoding::Compression compression, std::uint32_t block_bytes,
                           std::uint64_t pack_bytes, std::uint32_t journal_half_bytes) {
  StoreOptions options;
  options.encoding.compression = compression;
  options.encoding.block_bytes = block_bytes;
  options.pack_bytes = pack_bytes;
  options.journal_half_bytes = journal_half_bytes;
  return options;
}

std::vector<Setting> settings() {
  using C = Encoding::Compression;
  return {{"defaults", StoreOptions()},
          {"page_blocks", store_options(C::none, 4096, 1u << 20, 64u << 10), 4096},
          {"small", store_options(C::zstd, 16u << 10, 1u << 20, 64u << 10)},
          {"large_blocks", store_options(C::lz4, 1u << 20, 2u << 20, 256u << 10), 256u << 10}};
}

using ModelParameter = std::tuple<Engine, std::size_t, std::uint64_t>;  // setting, seed

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

class Model : public EngineTestWith<ModelParameter> {
 protected:
  void SetUp() override {
    if (!engine_available(std::get<0>(GetParam()))) GTEST_SKIP() << kNoUffd;
    region_options_.engine = std::get<0>(GetParam());
    region_options_.capacity_bytes = 32 * kMiB;
    region_options_.fault_bytes = settings()[std::get<1>(GetParam())].fault_bytes;
    // Every third seed has next to no memory.
    if (std::get<2>(GetParam()) % 3 == 0) region_options_.memory_limit_bytes = 256u << 10;
    // Half of the seeds compare everything after every step; with the others memory stays cold.
    compare_all_ = std::get<2>(GetParam()) % 2 == 0;
    random_.seed(std::get<2>(GetParam()) + from_environment("VELLUM_MODEL_SEED", 0) * 1'000'003);
    store_.emplace(Store::create(path(), settings()[std::get<1>(GetParam())].options));
    create_first();
  }
  void TearDown() override { region_ = Region(); }

  std::string path() const { return directory_ / "store"; }
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  Bytes& committed() { return branches_.at(branch_); }

  void create_first() {
    branch_ = "main";
    branches_[branch_] = Bytes((1 + below(300)) * kPage);
    region_ = store_->create_region(branch_, committed().size(), region_options_);
    live_ = committed();
  }

  // Steps.

  void write_bytes(std::uint64_t offset, const Bytes& bytes) {
    std::memcpy(bytes_of(region_) + offset, bytes.data(), bytes.size());
    std::memcpy(live_.data() + offset, bytes.data(), bytes.size());
  }

  void write_something() {
    static constexpr std::uint64_t kLengths[] = {1, 8, 8, 8, 64, 200, 4096, 20'000, 300'000};
    const std::uint64_t longest = kLengths[below(std::size(kLengths))];
    const std::uint64_t length = std::min<std::uint64_t>(1 + below(longest), live_.size());
    std::uint64_t offset = below(live_.size() - length + 1);
    if (below(3) == 0) offset = offset / kPage * kPage;
    Bytes bytes(length);
    switch (below(4)) {
      case 0:
        break;  // zeros
      case 1:
        std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(random_()));
        break;
      case 2:
        for (auto& b : bytes) b = static_cast<std::byte>(random_());
        break;
      default:  // hardly a change
        std::copy_n(live_.begin() + static_cast<std::ptrdiff_t>(offset), length, bytes.begin());
        bytes[below(length)] ^= std::byte{1};
    }
    write_bytes(offset, bytes);
  }

  void commit() {
    settle();
    const std::uint64_t before = region_.sequence();
    const bool first = before == 0;
    const auto report = region_.commit("step " + std::to_string(step_));
    if (live_ == committed() && !first) {
      ASSERT_EQ(report.sequence, before);
    } else {
      ASSERT_EQ(report.sequence, before + 1);
    }
    committed() = live_;
  }

  // Stores after the call are not included.
  void commit_async() {
    settle();
    const bool named = below(3) == 0;
    const std::string name = "a" + std::to_string(++names_);
    const std::uint64_t before = region_.sequence();
    sequence_ = before + (named || before == 0 || live_ != committed() ? 1 : 0);
    pending_ = named ? region_.snapshot_async(name) : region_.commit_async();
    committed() = live_;
    if (named) snapshots_[name] = live_;
    for (std::uint64_t i = below(20); i > 0; --i) write_something();
  }

  // Most steps wait by themselves; steps that read the store must wait.
  void settle() {
    if (!pending_.valid()) return;
    ASSERT_EQ(pending_.get().sequence, sequence_);
  }

  void snapshot() {
    const std::string name = "s" + std::to_string(++names_);
    region_.snapshot(name);
    committed() = live_;
    snapshots_[name] = live_;
  }

  void rollback() {
    region_.rollback();
    live_ = committed();
  }

  void grow() {
    if (live_.size() > 12 * kMiB) return;
    const std::uint64_t size = live_.size() + below(40) * kPage + below(3) * 100 * kPage;
    region_.grow(size);
    live_.resize(size);
  }

  void reopen() {
    region_ = Region();
    if (below(2) == 0) store_.emplace(Store::open(path()));
    region_ = store_->open_region(branch_, region_options_);
    live_ = committed();
  }

  void other_branch() {
    region_ = Region();
    if (below(2) == 0 && !snapshots_.empty() && branches_.size() < 6) {
      branch_ = "b" + std::to_string(++names_);
      const auto& [from, content] = any_snapshot();
      store_->create_branch(branch_, from);
      branches_[branch_] = content;
    } else {
      auto at = branches_.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(below(branches_.size())));
      branch_ = at->first;
    }
    region_ = store_->open_region(branch_, region_options_);
    live_ = committed();
  }

  void snapshot_from_outside() {
    const std::string name = "o" + std::to_string(++names_);
    region_ = Region();
    store_->create_snapshot(name, branch_);
    snapshots_[name] = committed();
    region_ = store_->open_region(branch_, region_options_);
    live_ = committed();
  }

  void forget_a_snapshot() {
    if (snapshots_.size() < 8) return;
    const std::string name = any_snapshot().first;
    store_->remove_snapshot(name);
    snapshots_.erase(name);
  }

  void bring_in() {
    const std::uint64_t offset = below(live_.size());
    const std::uint64_t length = below(std::min<std::uint64_t>(live_.size() - offset, kMiB));
    if (below(2) == 0) {
      region_.prefetch({offset, length});
    } else {
      pins_.push_back(region_.pin({offset, length}));
    }
    if (pins_.size() > 3) pins_.erase(pins_.begin());
  }

  void look_at_a_snapshot() {
    if (snapshots_.empty()) return;
    const auto& [name, content] = any_snapshot();
    Region version = store_->open_version(name, region_options_);
    ASSERT_EQ(version.size_bytes(), content.size());
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t offset = below(content.size());
      const std::uint64_t length = below(std::min<std::uint64_t>(content.size() - offset, 100'000));
      ASSERT_EQ(std::memcmp(bytes_of(version) + offset, content.data() + offset, length), 0)
          << name;
      Bytes read(length);
      store_->read(name, offset, read.data(), length);
      ASSERT_TRUE(std::equal(read.begin(), read.end(),
                             content.begin() + static_cast<std::ptrdiff_t>(offset)))
          << name;
    }
  }

  void look_at_the_head() {
    ASSERT_EQ(content_of(*store_, branch_), committed());
    ASSERT_EQ(store_->version(branch_).sequence, region_.sequence());
  }

  void random_step() {
    const std::uint64_t what = below(100);
    if (what >= 85 || below(3) == 0) settle();
    if (what < 40) {
      for (std::uint64_t i = below(20) + 1; i > 0; --i) write_something();
    } else if (what < 54) {
      commit();
    } else if (what < 60) {
      commit_async();
    } else if (what < 68) {
      snapshot();
    } else if (what < 74) {
      rollback();
    } else if (what < 78) {
      grow();
    } else if (what < 84) {
      pins_.clear();
      reopen();
    } else if (what < 87) {
      pins_.clear();
      other_branch();
    } else if (what < 88) {
      pins_.clear();
      snapshot_from_outside();
    } else if (what < 90) {
      forget_a_snapshot();
    } else if (what < 94) {
      bring_in();
    } else if (what < 98) {
      look_at_a_snapshot();
    } else {
      look_at_the_head();
    }
  }

  std::pair<const std::string, Bytes>& any_snapshot() {
    auto at = snapshots_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(snapshots_.size())));
    return *at;
  }

  void compare_memory() {
    ASSERT_EQ(region_.size_bytes(), live_.size());
    if (compare_all_ || below(20) == 0) {
      ASSERT_EQ(std::memcmp(region_.data(), live_.data(), live_.size()), 0) << first_difference();
      return;
    }
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t offset = below(live_.size());
      const std::uint64_t length = std::min<std::uint64_t>(live_.size() - offset, 10'000);
      ASSERT_EQ(std::memcmp(bytes_of(region_) + offset, live_.data() + offset, length), 0)
          << first_difference();
    }
  }

  std::string first_difference() const {
    for (std::uint64_t i = 0; i < live_.size(); ++i) {
      if (bytes_of(region_)[i] != live_[i]) return "page " + std::to_string(i / kPage);
    }
    return "none";
  }

  void compare_everything() {
    pins_.clear();
    region_ = Region();
    store_.emplace(Store::open(path()));
    for (const auto& [name, content] : snapshots_) {
      Region version = store_->open_version(name, region_options_);
      ASSERT_EQ(content_of(version), content) << name;
      ASSERT_EQ(content_of(*store_, name), content) << name;
    }
    for (const auto& [name, content] : branches_) {
      ASSERT_EQ(content_of(*store_, name), content) << name;
      ASSERT_EQ(content_of(store_->open_region(name, region_options_)), content) << name;
    }
    const auto report = store_->verify({.read_data = true});
    for (const auto& damage : report.damages)
      ADD_FAILURE() << damage.object << ": " << damage.reason;
    ASSERT_EQ(report.versions, snapshots_.size() + branches_.size());
  }

  TempDirectory directory_;
  RegionOptions region_options_;
  bool compare_all_ = false;
  std::mt19937_64 random_;
  std::optional<Store> store_;
  Region region_;
  std::vector<Pin> pins_;
  std::string branch_;
  Bytes live_;                             // the expected memory
  std::map<std::string, Bytes> branches_;  // the last commit of each
  std::map<std::string, Bytes> snapshots_;
  std::future<CommitReport> pending_;
  std::uint64_t sequence_ = 0;  // that it will have
  std::uint64_t names_ = 0;
  std::uint64_t step_ = 0;
};

TEST_P(Model, TheStoreAgreesWithTheModel) {
  const auto steps = from_environment("VELLUM_MODEL_STEPS", kSanitizer ? 80 : 200);
  for (step_ = 0; step_ < steps; ++step_) {
    SCOPED_TRACE("step " + std::to_string(step_));
    random_step();
    if (HasFatalFailure()) return;
    compare_memory();
    if (HasFatalFailure()) return;
  }
  compare_everything();
}

std::string model_name(const testing::TestParamInfo<ModelParameter>& info) {
  const auto& [engine, setting, seed] = info.param;
  return std::string(engine_name(engine)) + "_" + settings()[setting].name + "_" +
         std::to_string(seed);
}

INSTANTIATE_TEST_SUITE_P(, Model,
                         testing::Combine(testing::ValuesIn(kEngines), testing::Values(0, 1, 2, 3),
                                          testing::Values(1, 2)),
                         model_name);

}  // namespace
}  // namespace vellum::test
