// Random histories against plain memory: after any operation, every version reads back exactly.
#include "store/branch/checkpoint/checkpoint.hpp"
#include "store/check/check.hpp"
#include "store/page_map/diff.hpp"
#include "store/page_map/run_builder.hpp"
#include "store/support.hpp"

namespace vellum::store::test {
namespace {

struct Branch {
  Model model{0};
  std::unique_ptr<BranchWriter> writer;
};

class History {
 public:
  History(std::uint64_t seed, format::Superblock options)
      : random_(seed), block_pages_(options.block_bytes / kPageBytes) {
    store_ = StoreDirectory::create(base::posix_fs(), directory_.path("s"), options);
    store_->create_branch("b0", 96 * kPageBytes, 0);
    branches_["b0"].model = Model(96);
  }

  void step() {
    Branch& b = any_branch();
    switch (random_() % 12) {
      case 0:
        snapshot(b);
        break;
      case 1:
        b.writer.reset();
        break;
      case 2:
        crash();
        break;
      case 3:
        if (branches_.size() < 4 && !snapshots_.empty()) branch_off();
        break;
      case 4:
        if (b.model.pages() < 400) b.model.grow(b.model.pages() + random_() % 50);
        break;
      default:
        change(b);
        commit(writer(b), b.model, random_() % 6 == 0, block_pages_);
    }
  }

  void check() {
    for (const auto& [name, bytes] : snapshots_) {
      expect_same(*open_version(*store_, name), bytes, 1 + random_() % 40);
    }
    for (auto& [name, b] : branches_) {
      if (b.model.touched.empty()) {
        auto source = open_version(*store_, name);
        // Growth is not committed by itself.
        auto bytes = b.model.bytes;
        bytes.resize(source->region_bytes());
        expect_same(*source, bytes);
        EXPECT_LE(resolve_version(*store_, name).version.runs.size(), kMaxRuns);
      }
    }
    const VerifyReport report = verify_store(*store_, true, {});
    for (const Damage& d : report.damages) ADD_FAILURE() << d.object << ": " << d.reason;
    check_diff();
  }

  void close() { branches_.clear(); }

 private:
  Branch& any_branch() {
    auto at = branches_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_() % branches_.size()));
    return at->second;
  }
  std::string name_of(const Branch& b) {
    for (auto& [name, other] : branches_) {
      if (&other == &b) return name;
    }
    return "";
  }
  BranchWriter& writer(Branch& b) {
    if (b.writer == nullptr) b.writer = BranchWriter::open(*store_, name_of(b));
    return *b.writer;
  }
  void change(Branch& b) {
    const std::size_t n = 1 + random_() % 30;
    const std::size_t around = random_() % b.model.pages();
    for (std::size_t i = 0; i < n; ++i) {
      const PageNumber p =
          random_() % 3 == 0 ? random_() % b.model.pages() : (around + i / 2) % b.model.pages();
      switch (random_() % 10) {
        case 0:
          b.model.fill(p, random_);
          break;
        case 1:
          b.model.zero(p);
          break;
        default:
          for (std::size_t k = random_() % 5 + 1; k > 0; --k) {
            b.model.store64(p, 8 * (random_() % 512), random_() % 4);
          }
      }
    }
  }
  void snapshot(Branch& b) {
    commit(writer(b), b.model, true, block_pages_);
    const std::string name = "s" + std::to_string(snapshots_.size());
    b.writer->publish_snapshot(name, "");
    snapshots_[name] = b.model.bytes;
  }
  void branch_off() {
    const std::string from = "s" + std::to_string(random_() % snapshots_.size());
    const std::string name = "b" + std::to_string(branches_.size());
    store_->create_branch_at(name, read_snapshot(*store_, from).version, from);
    Branch b;
    b.model = Model(snapshots_[from].size() / kPageBytes);
    b.model.bytes = snapshots_[from];
    for (PageNumber p = 0; p < b.model.pages(); ++p) b.model.touched.insert(p);
    base::Compressor compressor;
    b.model.take(4, compressor);  // all versions are old
    branches_[name] = std::move(b);
  }
  // The next process sees only the current content of the disk.
  void crash() {
    copy_directory(directory_.path("s"), directory_.path("copy"));
    for (auto& [name, b] : branches_) b.writer.reset();
    store_.reset();
    std::filesystem::remove_all(directory_.path("s"));
    std::filesystem::rename(directory_.path("copy"), directory_.path("s"));
    store_ = StoreDirectory::open(base::posix_fs(), directory_.path("s"));
  }
  void check_diff() {
    if (snapshots_.size() < 2) return;
    const std::string a = "s" + std::to_string(random_() % snapshots_.size());
    const std::string b = "s" + std::to_string(random_() % snapshots_.size());
    auto x = snapshots_[a], y = snapshots_[b];
    x.resize(std::max(x.size(), y.size()));
    y.resize(x.size());
    std::vector<ByteRange> expected, got;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == y[i]) continue;
      if (!expected.empty() && expected.back().offset_bytes + expected.back().length_bytes == i) {
        ++expected.back().length_bytes;
      } else {
        expected.push_back({i, 1});
      }
    }
    const DiffTotals totals =
        diff_versions(*store_, resolve_version(*store_, a), resolve_version(*store_, b),
                      [&](const ByteRange& r) { got.push_back(r); });
    ASSERT_EQ(got.size(), expected.size()) << a << " " << b;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].offset_bytes, expected[i].offset_bytes);
      ASSERT_EQ(got[i].length_bytes, expected[i].length_bytes);
    }
    EXPECT_EQ(totals.ranges, got.size());
    EXPECT_LE(totals.pages_different, totals.pages_compared);
  }

  std::mt19937_64 random_;
  std::size_t block_pages_;
  TempDirectory directory_;
  std::shared_ptr<StoreDirectory> store_;
  std::map<std::string, Branch> branches_;
  std::map<std::string, std::vector<std::byte>> snapshots_;
};

class ModelTest : public ::testing::TestWithParam<int> {};

TEST_P(ModelTest, EveryVersionReadsBack) {
  const int seed = GetParam();
  format::Superblock options = small_options();
  if (seed % 2 == 1) options.pack_bytes = 16u << 10;          // new packs all the time
  if (seed % 3 == 1) options.journal_half_bytes = 16u << 10;  // the journal wraps all the time
  if (seed % 4 == 1) options.compression = base::Compression::lz4;
  if (seed % 5 == 1) options.compression = base::Compression::none;
  if (seed % 7 == 1) options.block_bytes = 4u << 10;
  History history(static_cast<std::uint64_t>(seed), options);
  for (int i = 0; i < 160; ++i) {
    history.step();
    if (i % 40 == 39) history.check();
    if (::testing::Test::HasFatalFailure()) return;
  }
  history.close();
  history.check();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, ::testing::Range(1, 25));

TEST(ManySnapshots, RunsAndDepthStayBounded) {
  TempDirectory directory;
  auto store = StoreDirectory::create(base::posix_fs(), directory.path("s"), small_options());
  store->create_branch("main", 512 * kPageBytes, 0);
  std::mt19937_64 random(3);
  Model model(512);
  auto writer = BranchWriter::open(*store, "main");
  for (PageNumber p = 0; p < 512; ++p) model.fill(p, random);
  std::vector<std::vector<std::byte>> expected;
  for (int i = 0; i < 220; ++i) {
    commit(*writer, model, true);
    writer->publish_snapshot("s" + std::to_string(i), "");
    expected.push_back(model.bytes);
    ASSERT_LE(writer->head().runs.size(), kMaxRuns);
    // One page changes every time, the others now and then.
    model.store64(17, 8 * (random() % 512), random());
    for (int k = 0; k < 12; ++k) model.store64(random() % 512, 8 * (random() % 512), random());
  }
  for (std::size_t i = 0; i < expected.size(); i += 7) {
    auto source = open_version(*store, "s" + std::to_string(i));
    expect_same(*source, expected[i]);
    for (PageNumber p = 0; p < 512; ++p) ASSERT_LE(source->chain(p).size(), kMaxDeltaDepth + 1u);
  }
  const auto report = verify_store(*store, true, {});
  EXPECT_TRUE(report.damages.empty());
  EXPECT_EQ(report.versions, 221u);
  const StoreStat stat = stat_store(*store);
  EXPECT_EQ(stat.versions.size(), 221u);
  EXPECT_EQ(stat.versions[0].nonzero_bytes, 512 * kPageBytes);
  EXPECT_EQ(stat.full_copy_bytes, 221 * 512 * kPageBytes);
  EXPECT_GT(stat.stored_bytes, stat.pack_bytes);
  EXPECT_LT(stat.pack_bytes, 512 * kPageBytes * 2);
}

}  // namespace
}  // namespace vellum::store::test
