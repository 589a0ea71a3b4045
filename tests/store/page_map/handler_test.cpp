// The functions that the fault handler calls do not allocate and use little stack.
#include <gtest/gtest.h>

#include <thread>

#include "store/support.hpp"
#include "support/count_allocations.hpp"

namespace vellum::store::test {
namespace {

using vellum::test::allocations;
using vellum::test::kCountsAllocations;

// A store with every kind of entry, and journal commits on top.
struct Mixed {
  TempDirectory directory;
  Model model{512};
  std::mt19937_64 random{5};

  Mixed() {
    auto store = StoreDirectory::create(base::posix_fs(), directory.path("s"), small_options());
    store->create_branch("main", 512 * kPageBytes, 0);
    auto writer = BranchWriter::open(*store, "main");
    for (PageNumber p = 0; p < 400; ++p) model.fill(p, random);
    commit(*writer, model, true);
    for (int i = 0; i < 14; ++i) {
      for (int k = 0; k < 100; ++k) model.store64(random() % 512, 8 * (random() % 512), random());
      model.zero(random() % 512);
      commit(*writer, model, true);
    }
    model.store64(1, 0, 1);
    model.fill(2, random);
    model.zero(3);
    commit(*writer, model, false);
    copy_directory(directory.path("s"), directory.path("t"));
  }
  std::shared_ptr<StoreDirectory> open() {
    return StoreDirectory::open(base::posix_fs(), directory.path("t"));
  }
};

TEST(Handler, ReadingAllocatesNothing) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer has a malloc of its own";
  Mixed mixed;
  const auto store = mixed.open();
  const auto source = open_version(*store, "main");
  std::vector<std::byte> out(16 * kPageBytes);
  ReadFailure failure;
  char text[256];
  bool good = true;
  const std::size_t before = allocations;
  for (PageNumber p = 0; p < 512; p += 16) {
    source->zeros_from(p, 16);
    good = good && source->try_read(p, 16, out.data(), failure);
    good = good && std::memcmp(out.data(), mixed.model.page(p), out.size()) == 0;
  }
  failure = {"some reason", {1, 2, 3}, 4, 5};
  source->describe(failure, text);
  EXPECT_EQ(allocations, before);
  EXPECT_TRUE(good);
  EXPECT_TRUE(contains(text, "page 4")) << text;
}

// Runs on its own small stack: an overrun hits the guard page.
TEST(Handler, ReadingNeedsLittleStack) {
  Mixed mixed;
  const auto store = mixed.open();
  const auto source = open_version(*store, "main");
  struct Job {
    const PageSource* source;
    const Model* model;
    bool good = true;
  } job{source.get(), &mixed.model};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (!vellum::test::kSanitizer) {
    pthread_attr_setstacksize(&attributes, 32u << 10);  // the minimum, plus thread-local data
  }
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    Job& j = *static_cast<Job*>(argument);
    static std::byte out[16 * kPageBytes];
    ReadFailure failure;
    for (PageNumber p = 0; p < 512; p += 16) {
      j.good = j.good && j.source->try_read(p, 16, out, failure) &&
               std::memcmp(out, j.model->page(p), sizeof out) == 0;
    }
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &job), 0);
  pthread_join(thread, nullptr);
  EXPECT_TRUE(job.good);
}

TEST(Handler, ManyThreadsReadAtOnce) {
  Mixed mixed;
  const auto store = mixed.open();
  const auto source = open_version(*store, "main");
  const auto again = open_version(*store, "main");
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::vector<std::byte> out(20 * kPageBytes);
      ReadFailure failure;
      for (int i = 0; i < 2000; ++i) {
        const PageNumber p = random() % 500;
        const std::size_t n = 1 + random() % 12;
        const PageSource& s = t % 2 == 0 ? *source : *again;
        if (!s.try_read(p, n, out.data(), failure) ||
            std::memcmp(out.data(), mixed.model.page(p), n * kPageBytes) != 0) {
          ++bad;
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(bad, 0);
}

}  // namespace
}  // namespace vellum::store::test
