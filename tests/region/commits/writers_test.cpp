// A branch has one writer, across processes; a dead writer's lock is free at once.
#include <signal.h>

#include "support/child.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Writers : public StoreTest {
 protected:
  // A child that has the branch open, and has reported it.
  Child start_holder() const {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    Child child = start_child([&] {
      Region region = Store::open(path()).open_region("main", options());
      word_at(region, 0) = 7;
      region.commit();
      require(write(ready[1], "x", 1) == 1, "the parent listens");
      pause();
    });
    char byte = 0;
    close(ready[1]);
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
  }
};

TEST_P(Writers, ASecondWriterInTheSameProcessIsBusy) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  expect_error(Errc::busy, {"main"}, [&] { (void)store.open_region("main", options()); });
  expect_error(Errc::busy, {"main"},
               [&] { (void)Store::open(path()).open_region("main", options()); });
  word_at(region, 0) = 1;
  region.commit();
  region.close();
  EXPECT_EQ(word_at(store.open_region("main", options()), 0), 1u);
}

TEST_P(Writers, ASecondWriterInAnotherProcessIsBusy) {
  Store store = create();
  store.create_region("main", kMiB, options()).close();
  Child holder = start_holder();
  expect_error(Errc::busy, {"main"}, [&] { (void)store.open_region("main", options()); });
  expect_error(Errc::busy, {"main"}, [&] { store.remove_branch("main"); });
  EXPECT_EQ(word_at(store.open_version("main", options()), 0), 7u);
  Region other = store.create_region("other", kMiB, options());
  holder.kill(SIGKILL);
  EXPECT_CHILD_SIGNAL(holder.wait(), SIGKILL);
  Region region = store.open_region("main", options());
  EXPECT_EQ(word_at(region, 0), 7u);
}

TEST_P(Writers, AForkedChildIsNoSecondWriter) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  word_at(region, 0) = 1;
  region.commit();
  word_at(region, 0) = 2;
  EXPECT_CHILD_EXIT(
      run_child([&] {
        expect_error(Errc::invalid_argument, {"main", "fork"}, [&] { region.commit(); });
        expect_error(Errc::invalid_argument, {"main", "fork"}, [&] { region.rollback(); });
        require(!testing::Test::HasFailure(), "every call is refused");
        {
          const Region taken = std::move(region);
        }  // as exit() does with globals
      }),
      0);
  EXPECT_EQ(word_at(region, 0), 2u);
  word_at(region, kPage) = 3;
  region.commit();
  expect_error(Errc::busy, {"main"}, [&] { (void)store.open_region("main", options()); });
  region.close();
  Region again = store.open_region("main", options());
  EXPECT_EQ(word_at(again, 0), 2u);
  EXPECT_EQ(word_at(again, kPage), 3u);
}

VELLUM_BOTH_ENGINES(Writers);

}  // namespace
}  // namespace vellum::test
