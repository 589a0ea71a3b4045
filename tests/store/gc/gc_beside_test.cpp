// gc concurrent with writers and readers in other processes and threads; gc that is killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/support.hpp"
#include "support/child.hpp"
#include "support/disk/forwarding_fs.hpp"
#include "support/disk/sim_fs_lib.hpp"
#include "support/sanitizers.hpp"
#include "support/shared.hpp"

namespace vellum::store::test {
namespace {

using vellum::test::Child;
using vellum::test::Shared;
using vellum::test::start_child;

using Clock = std::chrono::steady_clock;
// The timeout of a test that waits for an event.
constexpr std::chrono::seconds kPatience{60};
constexpr std::size_t kGcBesidePages = 64;
constexpr std::uint64_t kStride = 4;  // commit n fills the pages p with p % 4 == n % 4
constexpr std::uint64_t kNamedEvery = 3, kNamesKept = 4;

// It is compressible but stored uncompressed: recompression finds something to do.
std::uint64_t word_of(std::uint64_t filled, PageNumber page, std::size_t i) {
  return i == 0 ? filled : (base::mix64(filled * 1000003 + page * 512 + i) & 0xffffff) | 1;
}

// The commit that filled this page, as of commit n; 0: none.
std::uint64_t filled_at(std::uint64_t n, PageNumber page) {
  const std::uint64_t back = (n + kStride - page % kStride) % kStride;
  return n >= back ? n - back : 0;
}

PageWrites numbered(std::uint64_t n) {
  PageWrites out;
  for (PageNumber page = n % kStride; page < kGcBesidePages; page += 4 * kStride) {
    PageBlock block;
    for (PageNumber p = page; p < page + 4 * kStride && p < kGcBesidePages; p += kStride) {
      block.pages.push_back(p);
      for (std::size_t i = 0; i < kPageBytes / 8; ++i) {
        const std::uint64_t word = word_of(n, p, i);
        const auto* bytes = reinterpret_cast<const std::byte*>(&word);
        block.stored.insert(block.stored.end(), bytes, bytes + 8);
      }
    }
    out.blocks.push_back(std::move(block));
  }
  return out;
}

void commit_number(BranchWriter& writer, std::uint64_t n, bool checkpoint) {
  auto commit = writer.begin();
  commit->add(numbered(n));
  commit->finish({1, kGcBesidePages * kPageBytes, 0, ""}, checkpoint);
}

// Throws when the version mixes several commits.
std::uint64_t number_of(const PageSource& source) {
  std::vector<std::byte> bytes(kGcBesidePages * kPageBytes);
  source.read(0, kGcBesidePages, bytes.data());
  const auto word = [&](PageNumber p, std::size_t i) {
    std::uint64_t out = 0;
    std::memcpy(&out, bytes.data() + p * kPageBytes + 8 * i, 8);
    return out;
  };
  std::uint64_t n = 0;
  for (PageNumber p = 0; p < kStride; ++p) n = std::max(n, word(p, 0));
  for (PageNumber p = 0; p < kGcBesidePages; ++p) {
    const std::uint64_t filled = filled_at(n, p);
    for (std::size_t i = 0; i < kPageBytes / 8; ++i) {
      if (word(p, i) != (filled == 0 ? 0 : word_of(filled, p, i))) {
        throw std::runtime_error("a mix of versions");
      }
    }
  }
  return n;
}

std::string name_of(std::uint64_t n) { return "n" + std::to_string(n); }

// Commits, creates snapshots, and removes old ones.
void write(StoreDirectory& store, std::uint64_t commits) {
  auto writer = BranchWriter::open(store, "main");
  for (std::uint64_t i = 0; i < commits; ++i) {
    const std::uint64_t n = writer->head().sequence + 1;
    const bool named = n % kNamedEvery == 0;
    commit_number(*writer, n, named);
    if (named) writer->publish_snapshot(name_of(n), "");
    const std::uint64_t old = n - kNamedEvery * kNamesKept;
    if (named && n > kNamedEvery * kNamesKept) store.remove_snapshot(name_of(old));
    if (n % 50 == 0) {
      writer.reset();
      writer = BranchWriter::open(store, "main");
    }
  }
}

// Opens a version, waits, and reads it. A removed name is no error.
void read_some(StoreDirectory& store, std::mt19937_64& random) {
  const auto names = snapshot_names(store);
  const bool head = names.empty() || random() % 2 == 0;
  const std::string name = head ? "main" : names[random() % names.size()];
  try {
    auto kept = resolve_kept(store, name);
    const auto source = PageSource::open(store, kept.version.version,
                                         std::move(kept.version.commits), kept.version.label);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
    const std::uint64_t n = number_of(*source);
    if (!head && name_of(n) != name) throw std::runtime_error(name + " holds another version");
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
}

// Creates a branch of a snapshot that may be removed at any time, like Store::create_branch.
void branch_off(StoreDirectory& store, std::mt19937_64& random) {
  const auto names = snapshot_names(store);
  if (names.empty()) return;
  const std::string name = names[random() % names.size()];
  try {
    const NamesShared held(store);
    const auto from = resolve_version(store, name);
    store.create_branch_at("trial", from.version, name);
  } catch (const Error& e) {
    if (e.code() == Errc::not_found) return;
    throw;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
  {
    auto writer = BranchWriter::open(store, "trial");
    if (name_of(number_of(*writer->source_at_open())) != name) {
      throw std::runtime_error("the branch holds another version");
    }
    commit_number(*writer, number_of(*writer->source_at_open()) + 1, true);
  }
  store.remove_branch("trial");
}

class GcBeside : public testing::Test {
 protected:
  GcBeside() {
    format::Superblock options = small_options();
    options.pack_bytes = 256u << 10;
    StoreDirectory::create(fs, path, options)
        ->create_branch("main", kGcBesidePages * kPageBytes, 0);
  }
  std::shared_ptr<StoreDirectory> open() { return StoreDirectory::open(fs, path); }
  void expect_sound() {
    const auto store = open();
    for (const auto& damage : verify_store(*store, true, nullptr).damages) {
      ADD_FAILURE() << damage.object << ": " << damage.reason;
    }
    for (const auto& name : snapshot_names(*store)) {
      EXPECT_EQ(name_of(number_of(*open_version(*store, name))), name);
    }
    EXPECT_EQ(number_of(*open_version(*store, "main")),
              BranchWriter::open(*store, "main")->head().sequence);
  }
  std::uint64_t allocated() { return collect_garbage(*open(), true, nullptr).pack_bytes; }

  TempDirectory dir;
  base::Fs& fs = base::posix_fs();
  std::string path = dir.path("s");
};

TEST_F(GcBeside, WritersAndReadersInOtherProcesses) {
  const auto least = Clock::now() + std::chrono::milliseconds(vellum::test::rounds(4000, 2500));
  const Shared<std::atomic<bool>> stop;
  std::vector<Child> children;
  children.push_back(start_child([&] {
    const auto store = open();
    while (!*stop) write(*store, 10);
  }));
  for (unsigned seed = 1; seed <= 2; ++seed) {
    children.push_back(start_child([&] {
      const auto store = open();
      std::mt19937_64 random(seed);
      while (!*stop) read_some(*store, random);
    }));
  }
  children.push_back(start_child([&] {
    const auto store = open();
    std::mt19937_64 random(9);
    while (!*stop) branch_off(*store, random);
  }));
  std::uint64_t runs = 0, freed = 0, recompressed = 0;
  const auto enough = [&] { return runs > 10 && freed > 1u << 20 && recompressed > 5; };
  while (Clock::now() < least || (!enough() && Clock::now() < least + kPatience)) {
    const int level = runs++ % 3 == 0 ? 1 : 0;
    const GcReport report = collect_garbage(*open(), false, nullptr, level);
    freed += report.freed_bytes;
    recompressed += report.recompressed.packs;
  }
  *stop = true;
  for (Child& child : children) EXPECT_CHILD_EXIT(child.wait(), 0);
  expect_sound();
  EXPECT_TRUE(enough()) << runs << " runs, " << freed << " bytes, " << recompressed << " packs";
  collect_garbage(*open(), false, nullptr);
  EXPECT_LT(allocated(), (kNamesKept + 4) * kGcBesidePages * kPageBytes);
  expect_sound();
}

// The same handle in all threads.
TEST_F(GcBeside, ThreadsOfOneProcess) {
  const auto store = open();
  write(*store, 30);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  const auto start = [&](auto body) {
    threads.emplace_back([&, body]() mutable {
      try {
        while (!stop) body();
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    });
  };
  start([&] { write(*store, 20); });
  start([&, random = std::mt19937_64(3)]() mutable { read_some(*store, random); });
  std::atomic<std::uint64_t> recompressed{0};
  start([&, level = 0]() mutable {
    level = 1 - level;
    recompressed += collect_garbage(*store, false, nullptr, level).recompressed.packs;
  });
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  while (recompressed == 0 && Clock::now() < begin + kPatience) std::this_thread::yield();
  stop = true;
  for (auto& t : threads) t.join();
  EXPECT_GT(recompressed, 0u);
  expect_sound();
}

// The records of an unfinished commit belong to no version yet.
TEST_F(GcBeside, ACommitInTheMaking) {
  const auto store = open();
  auto writer = BranchWriter::open(*store, "main");
  for (std::uint64_t n = 1; n < 40; ++n) {
    auto commit = writer->begin();
    auto writes = numbered(n);
    for (auto& block : writes.blocks) {
      PageWrites piece;
      piece.blocks.push_back(std::move(block));
      commit->add(std::move(piece));  // past a quarter of the journal half: to the pack
      if (n % 5 == 0) collect_garbage(*open(), false, nullptr);
    }
    collect_garbage(*open(), false, nullptr);
    if (n % 7 == 6) {
      commit.reset();  // abandoned
      collect_garbage(*open(), false, nullptr);
      commit_number(*writer, n, true);
    } else {
      commit->finish({1, kGcBesidePages * kPageBytes, 0, ""}, true);
    }
    EXPECT_EQ(number_of(*open_version(*open(), "main")), n);
  }
  writer.reset();
  expect_sound();
}

// Runs a function once, before the nth call.
class InterruptedFs final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<base::File> open(const std::string& file, base::OpenMode mode) override {
    step();
    return std::make_unique<InterruptedFile>(ForwardingFs::open(file, mode), *this);
  }
  void rename(const std::string& from, const std::string& to) override {
    step();
    ForwardingFs::rename(from, to);
  }
  void unlink(const std::string& file) override {
    step();
    ForwardingFs::unlink(file);
  }
  void sync_directory(const std::string& directory) override {
    step();
    ForwardingFs::sync_directory(directory);
  }
  std::vector<base::DirEntry> list(const std::string& directory) const override {
    step();
    return ForwardingFs::list(directory);
  }
  void interrupt(std::uint64_t at, std::function<void()> body) {
    calls_ = 0;
    at_ = at;
    body_ = std::move(body);
  }
  bool was_interrupted() const { return calls_ >= at_; }

 private:
  class InterruptedFile final : public vellum::test::ForwardingFile {
   public:
    InterruptedFile(std::unique_ptr<base::File> below, const InterruptedFs& fs)
        : ForwardingFile(std::move(below)), fs_(fs) {}
    void pread(std::span<std::byte> out, std::uint64_t at) const override {
      fs_.step();
      ForwardingFile::pread(out, at);
    }
    void punch(std::uint64_t at, std::uint64_t length) override {
      fs_.step();
      ForwardingFile::punch(at, length);
    }
    void truncate(std::uint64_t size) override {
      fs_.step();
      ForwardingFile::truncate(size);
    }

   private:
    const InterruptedFs& fs_;
  };
  void step() const {
    if (++calls_ == at_) body_();
  }
  mutable std::uint64_t calls_ = 0;
  std::uint64_t at_ = 0;
  std::function<void()> body_;
};

// Commits do not wait for a gc, wherever it is: at each of its first calls, then at some.
TEST(GcBesideCommits, AtAnyCallOfTheGc) {
  sim::SimFs memory;  // which has no power cut
  InterruptedFs interrupted(memory);
  format::Superblock options = small_options();
  options.pack_bytes = 256u << 10;
  const auto store = StoreDirectory::create(memory, "/s", options);
  store->create_branch("main", kGcBesidePages * kPageBytes, 0);
  const auto collected = StoreDirectory::open(interrupted, "/s");
  auto writer = BranchWriter::open(*store, "main");
  std::uint64_t n = 0, freed = 0, calls = 0;
  for (std::uint64_t call = 1;; call += 1 + call / 16) {
    for (int i = 0; i < 3; ++i) commit_number(*writer, ++n, true);
    interrupted.interrupt(call, [&] {
      for (int i = 0; i < 2; ++i) commit_number(*writer, ++n, true);
    });
    freed += collect_garbage(*collected, false, nullptr).freed_bytes;
    ASSERT_EQ(number_of(*open_version(*StoreDirectory::open(memory, "/s"), "main")), n)
        << "call " << call;
    if (!interrupted.was_interrupted() || call > 5000) break;
    ++calls;
  }
  EXPECT_GT(calls, 20u);
  EXPECT_GT(freed, n * 2 * kPageBytes);
  for (const auto& damage : verify_store(*store, true, nullptr).damages) {
    ADD_FAILURE() << damage.object << ": " << damage.reason;
  }
}

TEST_F(GcBeside, KilledAtAnyMoment) {
  std::mt19937_64 random(11);
  int killed = 0;
  for (int round = 0; round < vellum::test::rounds(60, 15) || killed == 0; ++round) {
    write(*open(), 12);
    const int level = round % 2;
    Child child = start_child([&] { collect_garbage(*open(), false, nullptr, level); });
    ::usleep(static_cast<useconds_t>(random() % 4000));
    child.kill(SIGKILL);
    const auto end = child.wait();
    EXPECT_TRUE(end.died_by(SIGKILL) || end.exited_with(0)) << testing::PrintToString(end);
    killed += end.died_by(SIGKILL) ? 1 : 0;
    expect_sound();
  }
  collect_garbage(*open(), false, nullptr);
  expect_sound();
  EXPECT_LT(allocated(), (kNamesKept + 4) * kGcBesidePages * kPageBytes);
}

// The pin of a reader ends with its process, however that ends.
TEST_F(GcBeside, PinsOfTheDeadGo) {
  write(*open(), 3);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  Child child = start_child([&] {
    const auto store = open();
    const auto kept = resolve_kept(*store, "n3");
    vellum::test::require(::write(ready[1], "x", 1) == 1, "the parent can be told");
    ::pause();
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(collect_garbage(*open(), false, nullptr).open_versions, 1u);
  child.kill(SIGKILL);
  EXPECT_CHILD_SIGNAL(child.wait(), SIGKILL);
  EXPECT_EQ(collect_garbage(*open(), false, nullptr).open_versions, 0u);
}

}  // namespace
}  // namespace vellum::store::test
