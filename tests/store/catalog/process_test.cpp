// Several processes on one store.
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "store/check/check.hpp"
#include "store/support.hpp"
#include "support/child.hpp"
#include "support/shared.hpp"

namespace vellum::store::test {
namespace {

using vellum::test::Child;
using vellum::test::require;
using vellum::test::start_child;

std::shared_ptr<StoreDirectory> open_store(const std::string& path) {
  return StoreDirectory::open(base::posix_fs(), path);
}

// Every version writes its number into every eighth page, which exposes a mix of two versions.
PageWrites numbered(std::uint64_t number, std::uint64_t before) {
  std::vector<std::byte> old_page(kPageBytes), page(kPageBytes);
  std::memcpy(old_page.data(), &before, 8);
  std::memcpy(page.data(), &number, 8);
  PageWrites w;
  for (PageNumber p = 0; p < 64; p += 8) w.deltas.add_difference(p, old_page.data(), page.data());
  return w;
}

void commit_number(BranchWriter& writer, std::uint64_t number) {
  auto c = writer.begin();
  c->add(numbered(number, number - 1));
  c->finish({1, 64 * kPageBytes, 0, ""}, number % 37 == 0);
}

std::uint64_t number_held_by(const PageSource& source) {
  std::vector<std::byte> bytes(64 * kPageBytes);
  source.read(0, 64, bytes.data());
  std::uint64_t first = 0;
  std::memcpy(&first, bytes.data(), 8);
  for (PageNumber p = 0; p < 64; p += 8) {
    std::uint64_t n = 0;
    std::memcpy(&n, bytes.data() + p * kPageBytes, 8);
    if (n != first) return UINT64_MAX;
  }
  return first;
}

TEST(Processes, AReaderSeesWholeVersionsWhileAWriterCommits) {
  TempDirectory directory;
  const std::string path = directory.path("s");
  format::Superblock options = small_options();
  options.journal_half_bytes = 16u << 10;
  options.pack_bytes = 16u << 10;
  StoreDirectory::create(base::posix_fs(), path, options)
      ->create_branch("main", 64 * kPageBytes, 0);
  const vellum::test::Shared<std::atomic<int>> looks;
  Child child = start_child([&] {
    auto store = open_store(path);
    auto writer = BranchWriter::open(*store, "main");
    for (std::uint64_t i = 1; i <= 3000; ++i) {
      while (i == 1500 && *looks <= 5) ::usleep(1000);
      commit_number(*writer, i);
    }
  });
  auto store = open_store(path);
  std::uint64_t last = 0;
  while (last < 3000) {
    ResolvedVersion v = resolve_version(*store, "main");
    const std::uint64_t sequence = v.head_sequence();
    const std::uint64_t n =
        number_held_by(*PageSource::open(*store, v.version, v.commits, v.label));
    ASSERT_EQ(n, sequence);
    ASSERT_GE(n, last);
    last = n;
    ++*looks;
  }
  EXPECT_CHILD_EXIT(child.wait(), 0);
  EXPECT_TRUE(verify_store(*store, true, {}).damages.empty());
}

TEST(Processes, ABranchHasOneWriterAndADeadWritersLockIsFree) {
  TempDirectory directory;
  const std::string path = directory.path("s");
  StoreDirectory::create(base::posix_fs(), path, small_options())
      ->create_branch("main", 64 * kPageBytes, 0);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  Child child = start_child([&] {
    auto store = open_store(path);
    auto writer = BranchWriter::open(*store, "main");
    for (std::uint64_t i = 1; i <= 5; ++i) commit_number(*writer, i);
    require(::write(ready[1], "x", 1) == 1, "the parent can be told");
    for (;;) ::pause();
  });
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  auto store = open_store(path);
  const std::string text = error_text(Errc::busy, [&] { BranchWriter::open(*store, "main"); });
  EXPECT_TRUE(text.starts_with("branch 'main' of " + path + " has a writer already")) << text;
  error_text(Errc::busy, [&] { store->remove_branch("main"); });
  EXPECT_EQ(number_held_by(*open_version(*store, "main")), 5u);
  child.kill(SIGKILL);
  EXPECT_CHILD_SIGNAL(child.wait(), SIGKILL);
  auto writer = BranchWriter::open(*store, "main");
  EXPECT_EQ(writer->head().sequence, 5u);
  EXPECT_EQ(number_held_by(*writer->source_at_open()), 5u);
  error_text(Errc::busy, [&] { BranchWriter::open(*store, "main"); });
  writer.reset();
  store->remove_branch("main");
  error_text(Errc::not_found, [&] { BranchWriter::open(*store, "main"); });
}

TEST(Processes, AKilledWriterLeavesTheLastReturnedCommit) {
  TempDirectory directory;
  const std::string path = directory.path("s");
  format::Superblock options = small_options();
  options.journal_half_bytes = 16u << 10;
  options.pack_bytes = 16u << 10;
  StoreDirectory::create(base::posix_fs(), path, options)
      ->create_branch("main", 64 * kPageBytes, 0);
  std::mt19937_64 random(5);
  std::uint64_t returned = 0;
  // On a slow machine, or with a sanitizer, one round may make no progress.
  for (int round = 0; round < 30 || returned <= 100; ++round) {
    int done[2];
    ASSERT_EQ(::pipe(done), 0);
    Child child = start_child([&] {
      ::close(done[0]);
      auto store = open_store(path);
      auto writer = BranchWriter::open(*store, "main");
      for (std::uint64_t i = writer->head().sequence + 1;; ++i) {
        commit_number(*writer, i);
        require(::write(done[1], &i, sizeof i) == sizeof i, "the parent can be told");
      }
    });
    ::close(done[1]);
    ::usleep(static_cast<useconds_t>(random() % 20000));
    child.kill(SIGKILL);
    EXPECT_CHILD_SIGNAL(child.wait(), SIGKILL);
    std::uint64_t i = 0;
    while (::read(done[0], &i, sizeof i) == sizeof i) returned = i;
    ::close(done[0]);
    auto store = open_store(path);
    const std::uint64_t n = number_held_by(*open_version(*store, "main"));
    ASSERT_TRUE(n == returned || n == returned + 1) << n << " after " << returned;
    returned = n;
  }
  auto store = open_store(path);
  EXPECT_TRUE(verify_store(*store, true, {}).damages.empty());
}

}  // namespace
}  // namespace vellum::store::test
