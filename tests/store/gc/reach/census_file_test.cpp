// The file gc.census: gc uses it, frees the same as without it, and tolerates
// a file that is corrupted, foreign, old or forged.
#include "store/gc/reach/census_file.hpp"
#include "store/page_map/run_reader.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "store/catalog/store_directory.hpp"
#include "store/check/check.hpp"
#include "store/gc/reach/pack_use.hpp"
#include "store/gc/reach/roots.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kLiveSetFilePages = 400;

// Records the offsets of reads in packs.
class ReadsFs final : public vellum::test::ForwardingFs {
 public:
  struct Read {
    std::string path;
    std::uint64_t from = 0, to = 0;
  };
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<NotingFile>(*this, ForwardingFs::open(path, mode));
  }
  std::vector<Read> reads;

 private:
  class NotingFile final : public vellum::test::ForwardingFile {
   public:
    NotingFile(ReadsFs& fs, std::unique_ptr<base::File> below)
        : ForwardingFile(std::move(below)), fs_(fs) {}
    void pread(std::span<std::byte> out, std::uint64_t at) const override {
      fs_.reads.push_back({path(), at, at + out.size()});
      ForwardingFile::pread(out, at);
    }
    int try_pread(std::span<std::byte> out, std::uint64_t at) const noexcept override {
      fs_.reads.push_back({path(), at, at + out.size()});
      return ForwardingFile::try_pread(out, at);
    }

   private:
    ReadsFs& fs_;
  };
};

// As of the last commit.
Model model_of(const std::vector<std::byte>& bytes) {
  Model model(bytes.size() / kPageBytes);
  model.bytes = bytes;
  for (PageNumber p = 0; p < model.pages(); ++p) model.touched.insert(p);
  base::Compressor compressor;
  model.take(4, compressor);
  return model;
}

// All bytes are new. The page is therefore stored as a whole.
void renew(Model& model, PageNumber page, std::mt19937_64& words) {
  for (std::size_t at = 0; at < kPageBytes; at += 8) model.store64(page, at, words());
}

using RootList = std::vector<format::RecordRef>;

RootList roots_of(const format::Version& version) {
  RootList out;
  for (const auto& run : version.runs) out.push_back(run.root);
  return out;
}

// Of each version: the roots above the longest suffix that is the whole list of an earlier version.
std::set<RootList> stretches(const Roots& roots) {
  std::set<RootList> whole, out;
  for (const bool stale : {false, true}) {
    for (const Root& root : roots.versions) {
      if (root.may_be_stale != stale) continue;
      RootList list = roots_of(root.version), above;
      RootList rest = list;
      while (!rest.empty() && !whole.contains(rest)) {
        above.push_back(rest.front());
        rest.erase(rest.begin());
      }
      if (!above.empty()) out.insert(above);
      whole.insert(list);
    }
  }
  return out;
}

using Blocks = std::map<std::string, std::set<std::uint64_t>>;  // offsets by path

std::size_t count(const Blocks& blocks) {
  std::size_t n = 0;
  for (const auto& [path, offsets] : blocks) n += offsets.size();
  return n;
}

class LiveSetFileTest : public SnapshotsTest {
 protected:
  // Snapshots s0, s1, ...: each changes a word in `changed` random pages, and rewrites some pages.
  void make(std::size_t snapshots, std::size_t changed, std::uint64_t pack_bytes = 64u << 10) {
    format::Superblock options = small_options();
    options.pack_bytes = pack_bytes;
    const auto writer = create(options, kLiveSetFilePages, "s");
    Model model(kLiveSetFilePages);
    for (PageNumber p = 0; p < kLiveSetFilePages; ++p) model.fill(p, random);
    for (std::size_t i = 0; i < snapshots; ++i) {
      for (std::size_t n = 0; i != 0 && n < changed; ++n) scribble(model);
      commit(*writer, model, true);
      name_head(*writer, model, "s" + std::to_string(i));
    }
  }
  void scribble(Model& model) {
    const PageNumber page = random() % model.pages();
    switch (random() % 8) {
      case 0:
        return model.fill(page, random);
      case 1:
        return model.zero(page);
      default:
        return model.store64(page, random() % 512 * 8, random());
    }
  }
  std::string file() const { return census_path(*store); }
  std::vector<std::byte> file_bytes() { return base::read_whole(fs, file(), UINT64_MAX); }
  void put(const std::vector<std::byte>& bytes) {
    if (fs.exists(file())) fs.unlink(file());
    fs.open(file(), base::OpenMode::create_new)->pwrite(bytes, 0);
  }
  format::GcCensus saved() {
    format::GcCensus out;
    EXPECT_EQ(format::decode_gc_census(file_bytes(), store->superblock().store_id, out), nullptr);
    return out;
  }
  std::set<RootList> saved_stretches() {
    const auto live_set = saved();
    std::set<RootList> out;
    for (const auto& part : live_set.parts) {
      RootList roots;
      for (const auto id : part.roots) roots.push_back(live_set.records[id]);
      out.insert(roots);
    }
    return out;
  }
  // All inputs of gc, with an earlier census or none.
  std::vector<PackUse> use(format::GcCensus earlier) {
    const auto fresh = StoreDirectory::open(fs, store->path());
    const Roots roots = read_roots(*fresh);
    LiveSet live_set(*fresh);
    live_set.load_earlier(std::move(earlier), roots.packs);
    reach_roots(*fresh, roots, live_set);
    const Needs needs = needs_of_packs(*fresh, roots, live_set);
    return use_of_packs(*fresh, roots, live_set, needs);
  }
  // Compares hole by hole.
  void expect_same_use() {
    const auto with = use(read_census_file(*store)), without = use({});
    ASSERT_EQ(with.size(), without.size());
    for (std::size_t i = 0; i < with.size(); ++i) {
      EXPECT_EQ(with[i].pack, without[i].pack);
      EXPECT_EQ(with[i].needed_bytes, without[i].needed_bytes) << i;
      EXPECT_EQ(with[i].freeable_bytes, without[i].freeable_bytes) << i;
      EXPECT_EQ(with[i].removable, without[i].removable) << i;
      EXPECT_EQ(with[i].holes, without[i].holes) << i;
    }
  }
  // Map blocks of the runs with these roots; empty: of all runs of all versions.
  Blocks map_blocks(const std::set<RootList>& of) {
    std::set<format::RecordRef> wanted;
    for (const auto& list : of) wanted.insert(list.begin(), list.end());
    Blocks out;
    const auto fresh = StoreDirectory::open(fs, store->path());
    for (const Root& root : read_roots(*fresh).versions) {
      for (const auto& ref : root.version.runs) {
        if (!of.empty() && !wanted.contains(ref.root)) continue;
        const auto run = load_run(*fresh, ref);
        for (const auto& block : run->root.blocks) {
          out[fresh->packs().path_of(ref.root.pack)].insert(block.offset_bytes);
        }
      }
    }
    return out;
  }
  // Of these blocks, those whose payload is read.
  std::size_t blocks_read(const Blocks& blocks, const std::vector<ReadsFs::Read>& reads) {
    std::size_t n = 0;
    for (const auto& [path, offsets] : blocks) {
      for (const std::uint64_t at : offsets) {
        n += std::any_of(reads.begin(), reads.end(), [&](const ReadsFs::Read& r) {
          const std::uint64_t payload = at + format::kRecordHeaderBytes;
          return r.path == path && r.from <= payload && payload < r.to;
        });
      }
    }
    return n;
  }
  std::vector<ReadsFs::Read> reads_of_gc(bool dry_run = false) {
    ReadsFs noting(base::posix_fs());
    collect_garbage(*StoreDirectory::open(noting, store->path()), dry_run, nullptr);
    return std::move(noting.reads);
  }

  std::mt19937_64 random{17};
};

TEST_F(LiveSetFileTest, ASecondGcReadsNoMap) {
  make(30, 40);
  const auto blocks = map_blocks({});
  ASSERT_GE(count(blocks), 30u);
  EXPECT_EQ(blocks_read(blocks, reads_of_gc()), count(blocks));  // so the counter counts
  EXPECT_EQ(blocks_read(blocks, reads_of_gc()), 0u);
  EXPECT_EQ(blocks_read(blocks, reads_of_gc(true)), 0u);
  EXPECT_EQ(saved_stretches(), stretches(read_roots(*store)));
  expect_all();
}

// Nor after a recompression, which has read everything itself.
TEST_F(LiveSetFileTest, RecompressionLeavesItToo) {
  make(12, 40);
  const auto blocks = map_blocks({});
  for (int i = 1; i < 12; i += 2) remove("s" + std::to_string(i));
  gc(3);
  EXPECT_EQ(blocks_read(blocks, reads_of_gc()), 0u);
  expect_same_use();
  remove("s4");
  gc();
  expect_same_use();
  expect_all();
}

TEST_F(LiveSetFileTest, ARemovalReadsTheMapsNextToIt) {
  make(40, 40);
  gc();
  for (const int i : {20, 3, 38, 21}) {
    const auto before = saved_stretches();
    remove("s" + std::to_string(i));
    std::set<RootList> fresh;
    for (const auto& list : stretches(read_roots(*store))) {
      if (!before.contains(list)) fresh.insert(list);
    }
    const auto all = map_blocks({}), expected = map_blocks(fresh);
    const std::size_t next_to_it = fresh.empty() ? 0 : count(expected), everywhere = count(all);
    const auto reads = reads_of_gc();
    EXPECT_EQ(blocks_read(all, reads), next_to_it) << i;
    EXPECT_LT(next_to_it, everywhere / 2) << i;
    // It has the versions of this gc, and nothing else.
    EXPECT_EQ(saved_stretches(), stretches(read_roots(*store)));
  }
  expect_all();
}

TEST_F(LiveSetFileTest, ItShrinksWithTheStore) {
  make(30, 40);
  gc();
  const std::size_t full = file_bytes().size();
  for (int i = 0; i < 29; ++i) remove("s" + std::to_string(i));
  gc();
  EXPECT_LT(file_bytes().size(), full * 2 / 3);
  const auto bytes = file_bytes();
  const auto inode = fs.open(file(), base::OpenMode::read_only);
  gc();
  EXPECT_EQ(file_bytes(), bytes);
  EXPECT_FALSE(inode->replaced()) << "nothing was new, and it was written again";
  remove("s29");
  store->remove_branch("main");
  contents.clear();
  gc();
  EXPECT_EQ(saved(), format::GcCensus{});
}

// The result of gc is the same with the file and without, after any history.
TEST_F(LiveSetFileTest, RandomHistoriesAreCollectedAsWithoutIt) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random.seed(seed);
    format::Superblock options = small_options();
    options.pack_bytes = 48u << 10;
    create(options, kLiveSetFilePages, "r" + std::to_string(seed)).reset();
    std::map<std::string, std::vector<std::byte>> branches{
        {"main", std::vector<std::byte>(kLiveSetFilePages * kPageBytes)}};
    for (int step = 0, made = 0; step < 60; ++step) {
      const auto pick = [&](const auto& from) {
        return std::next(from.begin(), static_cast<std::ptrdiff_t>(random() % from.size()));
      };
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
          const auto branch = branches.find(pick(branches)->first);
          auto writer = BranchWriter::open(*store, branch->first);
          Model model = model_of(branch->second);
          bool checkpoint = false;
          for (std::uint64_t commits = 1 + random() % 3; commits != 0; --commits) {
            for (std::uint64_t n = 1 + random() % 60; n != 0; --n) scribble(model);
            commit(*writer, model, checkpoint = random() % 4 != 0);
          }
          if (checkpoint && random() % 3 != 0) {
            const std::string name = "v" + std::to_string(made++);
            writer->publish_snapshot(name, "");
            contents[name] = model.bytes;
          }
          contents[branch->first] = branch->second = model.bytes;
          break;
        }
        case 3: {
          const auto names = snapshot_names(*store);
          if (names.empty()) break;
          const std::string from = *pick(names), name = "b" + std::to_string(made++);
          store->create_branch_at(name, read_snapshot(*store, from).version, from);
          contents[name] = branches[name] = contents.at(from);
          break;
        }
        case 4:
        case 5: {
          const auto names = snapshot_names(*store);
          if (!names.empty()) remove(*pick(names));
          break;
        }
        case 6:
          if (branches.size() > 1 && random() % 2 == 0) {
            const auto branch = branches.find(pick(branches)->first);
            store->remove_branch(branch->first);
            contents.erase(branch->first);
            branches.erase(branch);
          }
          break;
        default: {
          expect_same_use();
          gc(random() % 6 == 0 ? 3 : 0);
          expect_same_use();
          const auto expected = stretches(read_roots(*store));
          // A gc that has found nothing writes nothing.
          if (!expected.empty() || fs.exists(file())) {
            EXPECT_EQ(saved_stretches(), expected);
          }
        }
      }
      if (HasFatalFailure()) return;
    }
    expect_same_use();
    expect_all();
  }
}

// An open version without a name is a version like others.
TEST_F(LiveSetFileTest, WhatIsOpenIsInItAsLongAsItIs) {
  make(10, 40);
  auto kept = resolve_kept(*store, "s4");
  for (const int i : {3, 4, 5}) remove("s" + std::to_string(i));
  gc();
  expect_same_use();
  EXPECT_EQ(saved_stretches(), stretches(read_roots(*store)));
  kept.version_pin.reset();
  gc();
  expect_same_use();
  EXPECT_EQ(saved_stretches(), stretches(read_roots(*store)));
  expect_all();
}

TEST_F(LiveSetFileTest, WhatDoesNotDecodeIsAsIfItWereNotThere) {
  make(10, 40);
  gc();
  const auto good = file_bytes();
  const auto blocks = map_blocks({});
  const auto expect_ignored = [&](const std::vector<std::byte>& bytes, const std::string& what) {
    SCOPED_TRACE(what);
    put(bytes);
    EXPECT_EQ(blocks_read(blocks, reads_of_gc()), count(blocks));
    EXPECT_EQ(saved().parts.size(), saved_stretches().size());
    EXPECT_EQ(blocks_read(blocks, reads_of_gc()), 0u) << "it was not written again";
  };
  for (int i = 0; i < 20; ++i) {
    auto bytes = good;
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
    expect_ignored(bytes, "a flipped bit");
  }
  expect_ignored({}, "empty");
  expect_ignored({good.begin(), good.end() - 1}, "cut");
  expect_ignored({good.begin(), good.begin() + 7}, "cut short");
  const auto other = StoreDirectory::create(fs, dir.path("other"), small_options());
  expect_ignored(format::encode_gc_census(saved(), other->superblock().store_id), "foreign");
  fs.unlink(file());
  EXPECT_EQ(blocks_read(blocks, reads_of_gc()), count(blocks));
  expect_all();
}

// A restored older file: it has versions that were removed, and lacks others.
TEST_F(LiveSetFileTest, AnOldFileSaysWhatItStillKnows) {
  make(20, 40);
  gc();
  const auto old = file_bytes();
  for (const int i : {2, 3, 9, 14, 19}) remove("s" + std::to_string(i));
  {
    auto writer = BranchWriter::open(*store, "main");
    Model model = model_of(contents.at("main"));
    for (PageNumber p = 0; p < kLiveSetFilePages; ++p) model.fill(p, random);
    commit(*writer, model, true);
    name_head(*writer, model, "new");
  }
  gc(3);
  put(old);
  expect_same_use();
  gc();
  EXPECT_EQ(saved_stretches(), stretches(read_roots(*store)));
  expect_all();
}

// A store that continues from a copy of an earlier state, with a file of another later state.
// In that state, the second checkpoint hides all of the first. Here it hides none, and its records
// have the same offsets.
TEST_F(LiveSetFileTest, AFileFromAnotherFutureIsNotBelieved) {
  make(1, 0, 64u << 20);
  const auto go_on = [&](std::uint64_t seed, PageNumber second) {
    std::mt19937_64 words(seed);
    auto writer = BranchWriter::open(*store, "main");
    Model model = model_of(contents.at("main"));
    std::vector<format::RecordRef> roots;
    for (const PageNumber first : {PageNumber{0}, second}) {
      for (PageNumber p = first; p < kLiveSetFilePages; p += 2) {
        renew(model, p, words);
      }
      commit(*writer, model, true);
      name_head(*writer, model, "f" + std::to_string(roots.size()));
      roots.push_back(
          read_snapshot(*store, "f" + std::to_string(roots.size())).version.runs[0].root);
    }
    // The base frame before the last counts, too: two more commits, or it would be that of f0.
    for (int i = 0; i < 2; ++i) {
      model.store64(0, 0, words());
      commit(*writer, model, true);
    }
    contents["main"] = model.bytes;
    writer.reset();
    remove("f0");
    return roots;
  };
  const std::string here = store->path();
  const auto then = contents;
  copy_directory(here, dir.path("copy"));
  const auto go_back = [&] {
    store.reset();
    copy_directory(dir.path("copy"), here);
    store = StoreDirectory::open(fs, here);
    contents = then;
  };
  std::vector<format::RecordRef> roots, there;
  const auto same_places = [&] {
    for (std::size_t i = 0; i < roots.size(); ++i) {
      if (roots[i].offset_bytes != there[i].offset_bytes) return false;
    }
    return !roots.empty();
  };
  // Most states have records of the same sizes. A record of another size has few equal ones.
  std::vector<std::byte> bytes;
  std::uint64_t seed = 0;
  while (seed < 300 && !same_places()) {
    go_back();
    there = go_on(++seed, 0);
    gc();
    bytes = file_bytes();
    roots.clear();
    for (int i = 0; i < 10 && !same_places(); ++i) {
      go_back();
      roots = go_on(++seed, 1);
    }
  }
  ASSERT_TRUE(same_places());
  put(bytes);
  expect_same_use();
  gc();
  expect_all();
}

// Runs name packs of which no record is needed any more; opening a version opens them.
TEST_F(LiveSetFileTest, PacksThatAreNamedStay) {
  make(1, 0);
  {
    auto writer = BranchWriter::open(*store, "main");
    Model model = model_of(contents.at("main"));
    for (PageNumber p = 0; p < kLiveSetFilePages; ++p) renew(model, p, random);
    commit(*writer, model, true);
    name_head(*writer, model, "s1");
  }
  remove("s0");
  gc();
  // The base frame before the last is overwritten, too.
  {
    auto writer = BranchWriter::open(*store, "main");
    Model model = model_of(contents.at("main"));
    for (int i = 0; i < 2; ++i) {
      scribble(model);
      commit(*writer, model, true);
    }
    name_head(*writer, model, "s2");
  }
  gc();
  const auto packs = use(read_census_file(*store));
  EXPECT_TRUE(std::any_of(packs.begin(), packs.end(), [](const PackUse& u) {
    return !u.removable && u.needed_bytes < 4096 && u.allocated_bytes < u.file_bytes;
  }));
  expect_same_use();
  gc();
  expect_all();
}

// With a right checksum it may have any content: gc does not fail if the maps are intact.
TEST_F(LiveSetFileTest, AForgedFileThatLeadsNowhereIsNotAnError) {
  make(10, 40);
  gc();
  const auto live_set = saved();
  const auto forge = [&](const auto& change) {
    auto forged = live_set;
    change(forged);
    put(format::encode_gc_census(forged, store->superblock().store_id));
  };
  forge([&](auto& c) {
    // Records at offsets without records, listed by all parts.
    c.records.push_back({c.records.back().pack, format::kMaxPackOffsetBytes - 64, 1});
    c.size_lines.push_back(0);
    const auto last = static_cast<std::uint32_t>(c.records.size() - 1);
    for (auto& part : c.parts) {
      if (part.records.back().first + part.records.back().count == last) {
        ++part.records.back().count;
      } else {
        part.records.push_back({last, 1});
      }
    }
  });
  EXPECT_NO_THROW(gc());
  expect_same_use();
  // A pack that does not exist, as needed, and as named.
  forge([](auto& c) {
    for (auto& part : c.parts) part.packs.push_back(UINT64_MAX);
  });
  EXPECT_NO_THROW(gc());
  expect_same_use();
  EXPECT_EQ(saved_stretches(), stretches(read_roots(*store)));
  expect_all();
}

// A gc that reads a damaged map detects it, and stops before it frees anything.
TEST_F(LiveSetFileTest, DamageOfAMapThatItDoesNotKnowIsFound) {
  make(10, 40);
  gc();
  const auto blocks = map_blocks({});
  for (const auto& [path, offsets] : blocks) {
    const auto pack = fs.open(path, base::OpenMode::read_write);
    for (const std::uint64_t at : offsets) {
      pack->pwrite(std::vector<std::byte>(4, std::byte{0xff}), at + format::kRecordHeaderBytes);
    }
  }
  remove("s5");
  const std::uint64_t before = pack_allocated(*store);
  error_text(Errc::corrupted, [&] { gc(); });
  EXPECT_EQ(pack_allocated(*store), before);
}

TEST_F(LiveSetFileTest, WhatCannotBeReadOrWrittenIsNoError) {
  make(10, 40);
  gc();
  for (const Call call : {Call::create, Call::write, Call::sync, Call::rename}) {
    if (fs.exists(file())) fs.unlink(file());
    fs.reset_counts();
    fs.fail_nth(call, call == Call::create ? 2 : 1, Errc::no_space);  // the first: gc.lock
    EXPECT_NO_THROW(gc()) << static_cast<int>(call);
    EXPECT_GE(fs.seen(call), 1u);
    fs.heal();
    EXPECT_FALSE(fs.exists(file())) << static_cast<int>(call);
    EXPECT_TRUE(fs.list(store->tmp_directory()).empty());
  }
  gc();
  EXPECT_TRUE(fs.exists(file()));
  expect_all();
}

TEST_F(LiveSetFileTest, StatCountsIt) {
  make(4, 40);
  gc();
  const auto with = stat_store(*store).stored_bytes;
  const auto bytes = fs.open(file(), base::OpenMode::read_only)->allocated_bytes();
  fs.unlink(file());
  EXPECT_EQ(with - stat_store(*store).stored_bytes, bytes);
  EXPECT_GT(bytes, 0u);
}

TEST_F(LiveSetFileTest, WhatAKilledGcHasLeftGoes) {
  make(4, 40);
  const std::string left = store->tmp_directory() + "/gc.census.1.2.3";
  fs.open(left, base::OpenMode::create_new);
  collect_garbage(*store, true, nullptr);
  EXPECT_TRUE(fs.exists(left));
  gc();
  EXPECT_FALSE(fs.exists(left));
}

}  // namespace
}  // namespace vellum::store::test
