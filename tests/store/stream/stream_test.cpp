// Imports of streams and exports to files: the exported content equals the
// imported one, in bounded memory, and an import that ended early changes nothing.
#include "store/stream/import.hpp"

#include <atomic>

#include "base/expect_error.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/branch/staging_branch.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/stream/export.hpp"
#include "store/stream/ordered_work.hpp"
#include "store/support.hpp"
#include "support/disk/memory_fs.hpp"

namespace vellum::store::test {
namespace {

using Bytes = std::vector<std::byte>;

TEST(OrderedWork, ResultsAreTakenInOrder) {
  for (const std::size_t threads : {0u, 1u, 3u}) {
    std::vector<std::uint64_t> filled(4), taken;
    OrderedWork work(threads, filled.size(),
                     {[&](std::size_t slot, std::size_t worker) {
                        EXPECT_LT(worker, std::max<std::size_t>(threads, 1));
                        filled[slot] *= 2;
                      },
                      [&](std::size_t slot) { taken.push_back(filled[slot]); }});
    for (std::uint64_t i = 0; i < 200; ++i) {
      filled[work.free_slot()] = i;
      work.submit();
    }
    work.finish();
    ASSERT_EQ(taken.size(), 200u);
    for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(taken[i], 2 * i);
  }
}

TEST(OrderedWork, TheFirstErrorComesOut) {
  for (const std::size_t threads : {0u, 2u}) {
    for (const bool in_take : {false, true}) {
      std::atomic<int> steps{0};
      const auto fail_late = [&] {
        if (++steps == 20) throw std::runtime_error("planned");
      };
      OrderedWork work(threads, 3,
                       {[&](std::size_t, std::size_t) {
                          if (!in_take) fail_late();
                        },
                        [&](std::size_t) {
                          if (in_take) fail_late();
                        }});
      const auto run = [&] {
        for (int i = 0; i < 100; ++i) {
          work.free_slot();
          work.submit();
        }
        work.finish();
      };
      EXPECT_THROW(run(), std::runtime_error);
      EXPECT_LT(steps, 30) << "nothing begins after an error";
    }
  }
}

// Small ranges, so that a few hundred pages are many of them.
StreamOptions small_pieces(std::size_t threads) {
  StreamOptions options;
  options.threads = threads;
  options.piece_bytes = 8 * kPageBytes;
  return options;
}

// A file with holes, and its content.
class SourceFile {
 public:
  SourceFile(const std::string& path, std::uint64_t size)
      : file_(base::posix_fs().open(path, base::OpenMode::create_new)), bytes_(size) {
    file_->truncate(size);
  }
  void write(std::uint64_t at, const Bytes& bytes) {
    file_->pwrite(bytes, at);
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void resize(std::uint64_t size) {
    file_->truncate(size);
    bytes_.resize(size);
  }
  void punch(std::uint64_t at, std::uint64_t length) {
    file_->punch(at, length);
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), length, std::byte{0});
  }
  base::File& file() { return *file_; }
  const Bytes& bytes() const { return bytes_; }

 private:
  std::unique_ptr<base::File> file_;
  Bytes bytes_;
};

Bytes random_bytes(std::mt19937_64& random, std::size_t count) {
  Bytes out(count);
  const bool compresses = random() % 2 == 0;
  for (auto& b : out) b = static_cast<std::byte>(compresses ? random() % 3 : random() % 256);
  return out;
}

class Streams : public ::testing::Test {
 protected:
  Streams()
      : store_(StoreDirectory::create(base::posix_fs(), directory_.path("s"), small_options())) {
    store_->create_branch("main", kPageBytes, 0);
  }

  ImportReport import(const base::File& file, std::size_t threads) {
    const auto writer = BranchWriter::open(*store_, "main");
    FileContent content(file);
    return import_content(*writer, content, {"", 0, false, nullptr, small_pieces(threads)},
                          nullptr);
  }
  void expect_content(const Bytes& bytes, std::size_t threads) {
    const auto source = open_version(*store_, "main");
    EXPECT_EQ(source->file_bytes(), bytes.size());
    Bytes region = bytes;
    region.resize(source->region_bytes());
    expect_same(*source, region);
    const std::string path = directory_.path("out");
    {
      const auto out = base::posix_fs().open(path, base::OpenMode::create_new);
      export_content(*source, *out, small_pieces(threads), nullptr);
      ASSERT_EQ(out->size_bytes(), bytes.size());
      Bytes back(bytes.size());
      out->pread(back, 0);
      EXPECT_TRUE(back == bytes);
      for (std::uint64_t at = 0; (at = out->next_data(at)) < bytes.size(); at += kPageBytes) {
        const auto page = std::span(bytes).subspan(at, std::min(kPageBytes, bytes.size() - at));
        EXPECT_TRUE(
            std::any_of(page.begin(), page.end(), [](std::byte b) { return b != std::byte{}; }))
            << "a page of zeros is a hole, at " << at;
      }
    }
    base::posix_fs().unlink(path);
  }

  TempDirectory directory_;
  std::shared_ptr<StoreDirectory> store_;
  std::mt19937_64 random_{5};
};

TEST_F(Streams, FilesComeBackAsTheyWere) {
  const std::uint64_t block = small_options().block_bytes, piece = small_pieces(0).piece_bytes;
  SourceFile source(directory_.path("in"), 0);
  std::size_t threads = 0;
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, kPageBytes - 1, kPageBytes, kPageBytes + 1, block - 1,
        block, block + 1, piece - 1, piece, piece + 1, 5 * piece + 77, std::uint64_t{1}, 3 * piece,
        std::uint64_t{0}}) {
    SCOPED_TRACE(size);
    source.resize(size);
    if (size > 0) source.write(0, random_bytes(random_, size));
    threads = (threads + 1) % 4;
    import(source.file(), threads);
    expect_content(source.bytes(), threads);
    const ImportReport again = import(source.file(), threads);
    EXPECT_FALSE(again.committed);
    EXPECT_EQ(again.pages_changed, 0u);
  }
}

TEST_F(Streams, ChangesAndHolesComeBack) {
  SourceFile source(directory_.path("in"), 0);
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t size = 1 + random_() % (100 * kPageBytes);
    if (random_() % 3 == 0) source.resize(size);
    for (std::uint64_t n = random_() % 6; n > 0 && !source.bytes().empty(); --n) {
      const std::uint64_t at = random_() % source.bytes().size();
      const std::uint64_t most = source.bytes().size() - at;
      switch (random_() % 4) {
        case 0:
          source.punch(at, std::min(most, 1 + random_() % (20 * kPageBytes)));
          break;
        case 1:
          source.write(at, random_bytes(random_, std::min(most, 1 + random_() % 200)));
          break;
        default:
          source.write(at,
                       random_bytes(random_, std::min(most, 1 + random_() % (20 * kPageBytes))));
      }
    }
    import(source.file(), random_() % 4);
    expect_content(source.bytes(), random_() % 4);
  }
  EXPECT_TRUE(verify_store(*store_, true, {}).damages.empty());
}

// The stored bytes depend on the content, not on the order of threads.
TEST_F(Streams, ThreadsStoreTheSame) {
  SourceFile source(directory_.path("in"), 300 * kPageBytes);
  source.write(0, random_bytes(random_, 250 * kPageBytes));
  std::set<std::vector<std::uint64_t>> places;  // of each page, in its pack
  for (const std::size_t threads : {0u, 1u, 4u}) {
    const std::string branch = "of" + std::to_string(threads);
    store_->create_branch(branch, kPageBytes, 0);
    format::Encoding alone = small_options();
    alone.dedup = false;
    {
      const auto writer = BranchWriter::open(*store_, branch, alone);
      FileContent content(source.file());
      import_content(*writer, content, {"", 0, false, nullptr, small_pieces(threads)}, nullptr);
    }
    const auto version = open_version(*store_, branch);
    std::vector<std::uint64_t> offsets;
    for (PageNumber p = 0; p < 250; ++p) {
      offsets.push_back(version->chain(p).front().record.offset_bytes);
    }
    places.insert(offsets);
  }
  EXPECT_EQ(places.size(), 1u);
}

TEST_F(Streams, MemoryDoesNotGrowWithTheFile) {
  SourceFile source(directory_.path("in"), 2000 * kPageBytes);
  source.write(0, random_bytes(random_, 2000 * kPageBytes));
  for (const std::size_t threads : {0u, 3u}) {
    const StreamOptions options = small_pieces(threads);
    const std::uint64_t slots = StreamOptions::slots_for(threads);
    source.write(random_() % 100, random_bytes(random_, 1900 * kPageBytes));
    const ImportReport report = import(source.file(), threads);
    EXPECT_GT(report.pages_changed, 1000u);
    EXPECT_LE(report.peak_bytes, 2 * slots * options.piece_bytes + slots * kPageBytes) << threads;
  }
  const StreamOptions usual;
  EXPECT_LE(2 * StreamOptions::slots_for(StreamOptions::kMaxThreads) * usual.piece_bytes,
            std::uint64_t{96} << 20);
}

// Deltas of a commit do not stay in memory until its end.
TEST_F(Streams, ManyDeltasGoToThePackBeforeTheCommit) {
  constexpr PageNumber kPages = 8000;
  SourceFile source(directory_.path("in"), kPages * kPageBytes);
  Bytes page(kPageBytes);
  for (PageNumber p = 0; p < kPages; ++p) {
    std::memset(page.data(), static_cast<int>(p % 7 + 1), page.size());
    source.write(p * kPageBytes, page);
  }
  import(source.file(), 2);
  const auto change = [&](std::size_t at) {
    for (PageNumber p = 0; p < kPages; ++p) {
      Bytes bytes(1200);
      for (auto& b : bytes) b = static_cast<std::byte>(random_());
      source.write(p * kPageBytes + at, bytes);
    }
  };
  const auto packs_bytes = [&] {
    std::uint64_t bytes = 0;
    for (const auto& e : std::filesystem::directory_iterator(directory_.path("s/packs"))) {
      bytes += e.file_size();
    }
    return bytes;
  };
  change(100);
  const std::uint64_t before = packs_bytes();
  std::uint64_t at_the_end = 0;
  {
    const auto writer = BranchWriter::open(*store_, "main");
    FileContent content(source.file());
    const auto report = import_content(*writer, content, {"", 0, false, nullptr, small_pieces(2)},
                                       [&](const Progress& p) {
                                         if (p.done < p.total) at_the_end = packs_bytes();
                                       });
    EXPECT_EQ(report.pages_changed, kPages);
  }
  EXPECT_GT(at_the_end, before + (std::uint64_t{6} << 20));
  expect_content(source.bytes(), 2);
  // Chains of these, and a commit in the journal below them.
  {
    const auto writer = BranchWriter::open(*store_, "main");
    const auto commit = writer->begin();
    PageWrites writes;
    const Bytes now(kPageBytes, std::byte{9});
    writes.deltas.add_difference(3, source.bytes().data() + 3 * kPageBytes, now.data());
    commit->add(std::move(writes));
    commit->finish({1, kPages * kPageBytes, 0, "", kPages * kPageBytes}, false);
  }
  change(2000);
  import(source.file(), 0);
  expect_content(source.bytes(), 2);
  EXPECT_TRUE(verify_store(*store_, true, {}).damages.empty());
}

// A few scattered pages do not become a block of their own.
TEST_F(Streams, ScatteredPagesShareBlocks) {
  SourceFile source(directory_.path("in"), 400 * kPageBytes);
  source.write(0, random_bytes(random_, 400 * kPageBytes));
  import(source.file(), 2);
  for (PageNumber p = 3; p < 400; p += 16) {
    Bytes page(kPageBytes);
    for (auto& b : page) b = static_cast<std::byte>(random_());
    source.write(p * kPageBytes, page);
  }
  import(source.file(), 2);
  std::set<std::uint64_t> records;
  const auto version = open_version(*store_, "main");
  for (PageNumber p = 3; p < 400; p += 16) {
    records.insert(version->chain(p).front().record.offset_bytes);
  }
  EXPECT_LE(records.size(), 25 / (small_options().block_bytes / kPageBytes) + 1);
  expect_content(source.bytes(), 2);
}

// A file whose bytes cannot be read from some offset on.
class Unreadable final : public vellum::test::ForwardingFile {
 public:
  Unreadable(std::unique_ptr<base::File> below, std::uint64_t from)
      : ForwardingFile(std::move(below)), from_(from) {}
  void pread(std::span<std::byte> out, std::uint64_t at) const override {
    if (at + out.size() > from_) throw Error(Errc::io, path() + ": the medium does not answer");
    ForwardingFile::pread(out, at);
  }

 private:
  const std::uint64_t from_;
};

TEST_F(Streams, ASourceThatFailsLeavesTheBranchAsItWas) {
  SourceFile source(directory_.path("in"), 200 * kPageBytes);
  source.write(0, random_bytes(random_, 200 * kPageBytes));
  import(source.file(), 2);
  const Bytes before = source.bytes();
  source.write(0, random_bytes(random_, 200 * kPageBytes));
  for (const std::size_t threads : {0u, 2u}) {
    const Unreadable file(base::posix_fs().open(directory_.path("in"), base::OpenMode::read_only),
                          150 * kPageBytes);
    const std::string text = error_text(Errc::io, [&] { import(file, threads); });
    EXPECT_TRUE(contains(text, directory_.path("in"))) << text;
    expect_content(before, threads);
  }
  import(source.file(), 2);
  expect_content(source.bytes(), 2);
}

// In data, and in a hole, which is not read.
TEST_F(Streams, ASourceThatBecomesShorterLeavesTheBranchAsItWas) {
  for (const bool in_a_hole : {false, true}) {
    for (const std::size_t threads : {0u, 2u}) {
      const std::string path = directory_.path("in");
      SourceFile source(path, 200 * kPageBytes);
      source.write(0, random_bytes(random_, (in_a_hole ? 80 : 200) * kPageBytes));
      const auto writer = BranchWriter::open(*store_, "main");
      const std::uint64_t sequence = writer->head().sequence;
      FileContent content(source.file());
      const std::string text = error_text(Errc::busy, [&] {
        import_content(
            *writer, content, {"", 0, false, nullptr, small_pieces(threads)},
            [&](const Progress&) { source.file().truncate((in_a_hole ? 90 : 30) * kPageBytes); });
      });
      EXPECT_TRUE(contains(text, path) && contains(text, "truncated")) << text;
      EXPECT_EQ(writer->head().sequence, sequence);
      base::posix_fs().unlink(path);
    }
  }
}

// Each call of an import, into an existing branch and into a new one.
class StreamFaults : public ::testing::Test {
 protected:
  StreamFaults() : source_(directory_.path("in"), 60 * kPageBytes) {
    format::Superblock tiny = small_options();
    tiny.pack_bytes = 4096;
    store_ = StoreDirectory::create(fs_, "/s", tiny);
    source_.write(0, random_bytes(random_, 60 * kPageBytes));
    import("main");
  }

  void import(const std::string& branch) {
    FileContent content(source_.file());
    const ImportOptions options{"", 0, true, nullptr, small_pieces(0)};
    if (has_branch(*store_, branch)) {
      import_content(*BranchWriter::open(*store_, branch), content, options, nullptr);
      return;
    }
    const NameLock claim = claim_name(*store_, branch);
    format::Version empty;
    empty.region_bytes = kPageBytes;
    StagingBranch staging(*store_, empty, std::nullopt);
    import_content(staging.writer(), content, options, nullptr);
    staging.publish(claim);
  }
  Bytes content_of(const std::string& branch) {
    const auto store = StoreDirectory::open(memory_, "/s");
    const auto source = open_version(*store, branch);
    Bytes out(source->region_bytes());
    source->read(0, out.size() / kPageBytes, out.data());
    EXPECT_TRUE(verify_store(*store, true, {}).damages.empty());
    return out;
  }
  // Fails the calls one after the other, until an import has no failure.
  std::uint64_t fail_each(Call call, const std::string& branch) {
    for (std::uint64_t nth = 1;; ++nth) {
      const Bytes before = has_branch(*store_, branch) ? content_of(branch) : Bytes();
      source_.write(random_() % 1000, random_bytes(random_, 59 * kPageBytes));
      fs_.fail_nth(call, nth, Errc::io);
      fs_.reset_counts();
      bool failed = false;
      try {
        import(branch);
      } catch (const Error&) {
        failed = true;
      }
      const bool met = fs_.seen(call) >= nth;
      fs_.heal();
      if (has_branch(*store_, branch)) {
        const Bytes now = content_of(branch);
        EXPECT_TRUE(now == source_.bytes() || (failed && now == before))
            << nth << " of " << static_cast<int>(call);
      } else {
        EXPECT_TRUE(failed);
      }
      collect_garbage(*store_, false, nullptr, 0);
      EXPECT_EQ(store_->branch_names(), expected_names(branch)) << "gc takes what is left";
      if (branch != "main" && has_branch(*store_, branch)) store_->remove_branch(branch);
      if (!met) return nth - 1;
    }
  }
  std::vector<std::string> expected_names(const std::string& branch) {
    std::vector<std::string> names{"main"};
    if (branch != "main" && has_branch(*store_, branch)) names.push_back(branch);
    return names;
  }

  TempDirectory directory_;
  std::mt19937_64 random_{8};
  SourceFile source_;
  vellum::test::MemoryFs memory_;
  FaultFs fs_{memory_};
  std::shared_ptr<StoreDirectory> store_;
};

TEST_F(StreamFaults, EachCallMayFail) {
  std::uint64_t calls = 0;
  for (const Call call : {Call::create, Call::write, Call::sync, Call::sync_dir, Call::rename,
                          Call::unlink, Call::truncate, Call::mkdir}) {
    calls += fail_each(call, "main");
    calls += fail_each(call, "new");
    if (HasFailure()) return;
  }
  EXPECT_GT(calls, 30u);
}

// Journals that are opened to be written are locked by another process, as beside a process that is
// stopped.
class TakenJournals final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    auto file = ForwardingFs::open(path, mode);
    const bool taken = is_on && mode == base::OpenMode::read_write && path.ends_with("/journal");
    return taken ? std::make_unique<Taken>(std::move(file)) : std::move(file);
  }
  bool is_on = false;

 private:
  struct Taken final : vellum::test::ForwardingFile {
    using ForwardingFile::ForwardingFile;
    bool try_lock_exclusive() override { return false; }
  };
};

TEST(StagingBranches, TheSearchForAFreeOneEnds) {
  vellum::test::MemoryFs memory;
  TakenJournals fs(memory);
  const auto store = StoreDirectory::create(fs, "/s", small_options());
  format::Version empty;
  empty.region_bytes = kPageBytes;
  fs.is_on = true;
  EXPECT_ERRC(StagingBranch(*store, empty, std::nullopt), Errc::busy);
  fs.is_on = false;
  collect_garbage(*store, false, nullptr, 0);
  EXPECT_EQ(store->branch_names(), std::vector<std::string>());
}

}  // namespace
}  // namespace vellum::store::test
