// The cost of listing, counting and checking large numbers of objects: calls of the file
// system, blocks of the disk. The result of stat must equal that of a separate pass per version.
#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <set>

#include "store/catalog/lock/version_pin.hpp"
#include "store/check/check.hpp"
#include "store/gc/reach/live_set.hpp"
#include "store/gc/reach/pack_heat.hpp"
#include "store/gc/reach/pack_use.hpp"
#include "store/gc/reach/roots.hpp"
#include "store/page_map/shown_pages.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::store::test {
namespace {

// Counts calls and reads.
class ScaleCountingFs final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    ++calls;
    return std::make_unique<CountedFile>(*this, ForwardingFs::open(path, mode));
  }
  std::vector<base::DirEntry> list(const std::string& path) const override {
    ++lists;
    return ForwardingFs::list(path);
  }
  bool exists(const std::string& path) const override {
    ++calls;
    return ForwardingFs::exists(path);
  }
  bool is_directory(const std::string& path) const override {
    ++calls;
    return ForwardingFs::is_directory(path);
  }
  mutable std::atomic<std::uint64_t> calls{0}, lists{0}, bytes_read{0};
  mutable std::map<std::pair<std::string, std::uint64_t>, int> reads;  // by file and offset

 private:
  class CountedFile final : public vellum::test::ForwardingFile {
   public:
    CountedFile(ScaleCountingFs& fs, std::unique_ptr<base::File> below)
        : ForwardingFile(std::move(below)), fs_(fs) {}
    std::uint64_t size_bytes() const override {
      ++fs_.calls;
      return ForwardingFile::size_bytes();
    }
    void pread(std::span<std::byte> out, std::uint64_t at) const override {
      ++fs_.calls;
      fs_.bytes_read += out.size();
      if (out.size() > format::kRecordHeaderBytes) {
        const std::lock_guard lock(fs_.reads_mutex_);
        ++fs_.reads[{path(), at}];
      }
      ForwardingFile::pread(out, at);
    }

   private:
    ScaleCountingFs& fs_;
  };
  std::mutex reads_mutex_;  // verify reads by several threads
};

class ScaleTest : public SnapshotsTest {
 protected:
  // Snapshots of a line. One in three has a branch with commits of its own.
  void make_store(std::size_t snapshots, std::size_t pages = 300,
                  std::uint64_t pack_bytes = 64u << 10) {
    format::Superblock options = small_options();
    options.pack_bytes = pack_bytes;
    const auto writer = create(options, pages, "s");
    std::mt19937_64 random(17);
    Model model(pages);
    for (PageNumber p = 0; p < model.pages(); ++p) model.fill(p, random);
    for (std::size_t i = 0; i < snapshots; ++i) {
      for (int n = 0; n < 5; ++n) {
        const PageNumber p = random() % model.pages();
        const auto what = random() % 8;
        if (what == 0) model.zero(p);
        if (what == 1) model.fill(p, random);
        if (what > 1) model.store64(p, random() % 512 * 8, random());
      }
      commit(*writer, model, true);
      const std::string name = fmt::format("s{:03}", i);
      name_head(*writer, model, name);
      if (i % 3 == 0)
        store->create_branch_at("b" + name, read_snapshot(*store, name).version, name);
    }
  }
};

// Calls `need` for every record that the version needs, possibly more than once, at the cost of all
// its entries.
template <typename Need>
void visit_needs(LiveSet& live_set, const format::Version& version, const Need& need) {
  ShownPages shown;
  for (const auto& ref : version.runs) {
    const LiveSet::Run& run = live_set.load(ref);
    for (const auto id : run.own) need(id);
    for (const LiveSet::Entry& e : run.entries) {
      if (shown.take(e.page, e.count, e.kind) && e.kind != format::PageKind::zero) need(e.record);
    }
  }
}

// By a separate pass per version.
std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> shares_one_by_one(
    StoreDirectory& store) {
  const NamesShared names(store);
  const Roots roots = read_roots(store);
  LiveSet live_set(store);
  reach_roots(store, roots, live_set);
  const auto bytes = record_bytes(store, live_set);
  std::map<std::string, std::set<LiveSet::RecordId>> needs;
  std::map<LiveSet::RecordId, int> needed_by;
  for (const Root& root : roots.versions) {
    if (root.name.empty()) continue;
    auto& ids = needs[root.name];
    visit_needs(live_set, root.version, [&](LiveSet::RecordId id) { ids.insert(id); });
    for (const auto id : ids) ++needed_by[id];
  }
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> out;
  for (const auto& [name, ids] : needs) {
    auto& [unique, shared] = out[name];
    for (const auto id : ids) (needed_by[id] == 1 ? unique : shared) += bytes[id];
  }
  return out;
}

TEST_F(ScaleTest, StatSaysWhatEachVersionAloneSays) {
  make_store(60);
  for (int i = 0; i < 60; i += 7) remove(fmt::format("s{:03}", i));
  const auto wanted = shares_one_by_one(*store);
  const StoreStat stat = stat_store(*store);
  ASSERT_EQ(stat.versions.size(), wanted.size());
  std::uint64_t nonzero = 0;
  for (const VersionSpace& v : stat.versions) {
    EXPECT_EQ(v.unique_bytes, wanted.at(v.name).first) << v.name;
    EXPECT_EQ(v.shared_bytes, wanted.at(v.name).second) << v.name;
    nonzero += v.nonzero_bytes;
  }
  EXPECT_EQ(stat.full_copy_bytes, nonzero);
  for (const auto& [name, bytes] : contents) {
    std::uint64_t filled = 0;
    for (std::size_t at = 0; at < bytes.size(); at += kPageBytes) {
      filled += std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                            bytes.begin() + static_cast<std::ptrdiff_t>(at + kPageBytes),
                            [](std::byte b) { return b != std::byte{}; });
    }
    const auto v = std::find_if(stat.versions.begin(), stat.versions.end(),
                                [&](const VersionSpace& s) { return s.name == name; });
    ASSERT_NE(v, stat.versions.end());
    EXPECT_EQ(v->nonzero_bytes, filled * kPageBytes) << name;
  }
}

// By a separate pass per version: pack, rank, records, rank of versions that name it.
using Heat = std::tuple<std::uint64_t, std::uint32_t, std::uint64_t, std::uint32_t>;
std::set<Heat> heats_one_by_one(StoreDirectory& store, const Roots& roots) {
  std::vector<const Root*> order;
  for (const Root& root : roots.versions) {
    if (!root.may_be_stale && !root.name.empty()) order.push_back(&root);
  }
  std::sort(order.begin(), order.end(), [](const Root* a, const Root* b) {
    return std::tuple(!a->is_branch, b->order, b->name) <
           std::tuple(!b->is_branch, a->order, a->name);
  });
  LiveSet live_set(store);
  std::map<std::uint64_t, PackHeat> heats;
  for (const std::uint64_t pack : roots.packs) heats[pack] = {};
  std::set<LiveSet::RecordId> seen;
  std::uint32_t rank = 0;
  for (const Root* root : order) {
    if (!root->is_branch) ++rank;
    visit_needs(live_set, root->version, [&](LiveSet::RecordId id) {
      if (!seen.insert(id).second) return;
      PackHeat& heat = heats.at(live_set.record(id).pack);
      heat.rank = std::min(heat.rank, rank);
      heat.records += heat.rank == rank;
    });
    for (const auto& ref : root->version.runs) {
      for (const std::uint64_t pack : live_set.load(ref).packs) {
        heats.at(pack).named_rank = std::min(heats.at(pack).named_rank, rank);
      }
    }
  }
  std::set<Heat> out;
  for (const auto& [pack, heat] : heats) {
    out.insert({pack, heat.rank, heat.records, heat.named_rank});
  }
  return out;
}

TEST_F(ScaleTest, HeatIsWhatEachVersionAloneSays) {
  make_store(60, 6, format::kMinPackBytes);
  for (int i = 0; i < 60; i += 7) remove(fmt::format("s{:03}", i));
  for (int i = 6; i < 60; i += 3) store->remove_branch(fmt::format("bs{:03}", i));
  store->remove_branch("main");
  const auto fresh = StoreDirectory::open(fs, store->path());
  const NamesShared names(*fresh);
  const Roots roots = read_roots(*fresh);
  std::set<Heat> found;
  std::set<std::uint32_t> ranks;
  for (const PackHeat& heat : heat_of_packs(*fresh, roots)) {
    found.insert({heat.pack, heat.rank, heat.records, heat.named_rank});
    ranks.insert(heat.rank);
  }
  EXPECT_EQ(found, heats_one_by_one(*fresh, roots));
  EXPECT_GT(ranks.size(), 2u);
}

// Not a step per entry and version, nor a read of each run for each version.
TEST_F(ScaleTest, HeatCostsWhatDiffersBetweenVersions) {
  make_store(90);
  ScaleCountingFs counting(base::posix_fs());
  const auto counted = StoreDirectory::open(counting, store->path());
  const NamesShared names(*counted);
  const Roots roots = read_roots(*counted);
  std::uint64_t steps = 0;
  heat_of_packs(*counted, roots, &steps);
  EXPECT_LT(steps, roots.versions.size() * 300 / 4);
  for (const auto& [place, times] : counting.reads) {
    if (!place.first.ends_with(".pack") || place.second == 0) continue;  // the header of a pack
    EXPECT_LE(times, 1) << place.first << " at byte " << place.second;
  }
}

// A thread may read a record of base pages again if it needs it at the same time.
TEST_F(ScaleTest, VerifyReadsEachRecordOnce) {
  make_store(60);
  ScaleCountingFs counting(base::posix_fs());
  const auto counted = StoreDirectory::open(counting, store->path());
  EXPECT_TRUE(verify_store(*counted, true, nullptr).damages.empty());
  for (const auto& [place, times] : counting.reads) {
    if (!place.first.ends_with(".pack") || place.second == 0) continue;  // the header of a pack
    EXPECT_LE(times, 2) << place.first << " at byte " << place.second;
  }
}

TEST_F(ScaleTest, ASnapshotIsResolvedInThreeCalls) {
  make_store(30);
  ScaleCountingFs counting(base::posix_fs());
  const auto counted = StoreDirectory::open(counting, store->path());
  const auto names = snapshot_names(*counted);
  const std::uint64_t before = counting.calls, listed = counting.lists;
  for (const auto& name : names) resolve_snapshot(*counted, name);
  EXPECT_LE(counting.calls - before, 3 * names.size());
  EXPECT_EQ(counting.lists, listed);
}

TEST_F(ScaleTest, BranchesAreResolvedWithoutListingAllOfThem) {
  make_store(30);
  ScaleCountingFs counting(base::posix_fs());
  const auto counted = StoreDirectory::open(counting, store->path());
  const auto names = counted->branch_names();
  ASSERT_GE(names.size(), 10u);
  const std::uint64_t listed = counting.lists, read = counting.bytes_read;
  for (const auto& name : names) resolve_version(*counted, name);
  EXPECT_EQ(counting.lists, listed);
  EXPECT_LE(counting.bytes_read - read, names.size() * (96u << 10));  // of halves of 64 KiB
}

TEST_F(ScaleTest, AnIdleBranchTakesLittleOfTheDisk) {
  store = StoreDirectory::create(fs, dir.path("idle"), format::Superblock{});
  store->create_branch("main", 100 * kPageBytes, 0);
  const auto journal =
      base::posix_fs().open(store->journal_path("main"), base::OpenMode::read_only);
  constexpr std::uint64_t kLittle = 64u << 10;
  const std::uint64_t size = journal->size_bytes();
  EXPECT_GT(size, 2u << 20);
  EXPECT_LE(journal->allocated_bytes(), kLittle) << "new";
  auto writer = BranchWriter::open(*store, "main");
  EXPECT_LE(journal->allocated_bytes(), kLittle) << "open";
  Model model(100);
  model.store64(3, 8, 1);
  commit(*writer, model, false);
  EXPECT_LE(journal->allocated_bytes(), kLittle) << "a commit";
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    for (int n = 0; n < 10; ++n) model.store64(random() % 100, random() % 512 * 8, random());
    commit(*writer, model, false);
  }
  EXPECT_EQ(journal->size_bytes(), size);
  writer.reset();
  EXPECT_LE(journal->allocated_bytes(), kLittle) << "closed";
  expect_same(*open_version(*store, "main"), model.bytes);
}

// The blocks already exist: the sync of a commit then writes no metadata of the file system.
TEST_F(ScaleTest, MostCommitsOverwriteWhatIsThere) {
  store = StoreDirectory::create(fs, dir.path("steps"), format::Superblock{});
  store->create_branch("main", 100 * kPageBytes, 0);
  const auto writer = BranchWriter::open(*store, "main");
  const auto journal =
      base::posix_fs().open(store->journal_path("main"), base::OpenMode::read_only);
  Model model(100);
  std::uint64_t there = journal->allocated_bytes();
  int grown = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    model.store64(i % 100, i % 512 * 8, i + 1);
    commit(*writer, model, false);
    grown += journal->allocated_bytes() != there;
    there = journal->allocated_bytes();
  }
  EXPECT_LE(grown, 8);
  EXPECT_GE(grown, 1);
}

// As on NFSv3: a writer overwrites with zeros what cannot be punched.
TEST_F(ScaleTest, WhatACrashLeftIsClearedWithoutHolesToo) {
  class NoHoles final : public vellum::test::ForwardingFs {
   public:
    using ForwardingFs::ForwardingFs;
    std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
      class File final : public vellum::test::ForwardingFile {
        using ForwardingFile::ForwardingFile;
        void punch(std::uint64_t, std::uint64_t) override {
          throw Error(Errc::unsupported, path() + ": punch hole");
        }
      };
      return std::make_unique<File>(ForwardingFs::open(path, mode));
    }
  };
  for (const bool holes : {true, false}) {
    NoHoles without(base::posix_fs());
    base::Fs& below = holes ? base::posix_fs() : without;
    const auto core = StoreDirectory::create(below, dir.path(holes ? "h" : "n"), small_options());
    core->create_branch("main", 10 * kPageBytes, 0);
    const std::vector<std::byte> rest(20'000, std::byte{7});
    constexpr std::uint64_t kAt = 30'000, kOtherAt = format::kJournalHeaderBytes + (64u << 10);
    {
      const auto file = below.open(core->journal_path("main"), base::OpenMode::read_write);
      file->pwrite(rest, kAt);
      file->pwrite(rest, kOtherAt);
    }
    const auto writer = BranchWriter::open(*core, "main");
    const auto file = below.open(core->journal_path("main"), base::OpenMode::read_only);
    for (const std::uint64_t at : {kAt, kOtherAt}) {
      std::vector<std::byte> found(rest.size());
      file->pread(found, at);
      EXPECT_EQ(found, std::vector<std::byte>(rest.size())) << "holes " << holes << " at " << at;
    }
  }
}

// A branch's id is searched among those of all others, without reading their files each time.
TEST(Scale, MakingABranchCostsTheSameBesideMany) {
  TempDirectory dir;
  ScaleCountingFs fs{base::posix_fs()};
  const auto store = StoreDirectory::create(fs, dir.path("store"), small_options());
  std::vector<std::uint64_t> calls;
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t before = fs.calls;
    ids.insert(store->create_branch("b" + std::to_string(i), kPageBytes, 0));
    calls.push_back(fs.calls - before);
  }
  EXPECT_EQ(ids.size(), 100u);
  EXPECT_EQ(calls[99], calls[9]);

  // A removed branch, and another one of its name.
  store->remove_branch("b5");
  EXPECT_TRUE(ids.insert(store->create_branch("b5", kPageBytes, 0)).second);
  // An unreadable branch does not prevent the creation of others.
  std::filesystem::resize_file(dir.path("store") + "/branches/b7/journal", 10);
  StoreDirectory::open(fs, dir.path("store"))->create_branch("new", kPageBytes, 0);
}

}  // namespace
}  // namespace vellum::store::test
