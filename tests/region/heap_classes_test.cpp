// The size classes of a heap: their sizes, the map of spans, and a heap that allocates, frees,
// commits, rolls back, is opened again and is copied as after a crash, against a map of its blocks.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <vellum/heap.hpp>
#include <vellum/store.hpp>

#include "base/temp_directory.hpp"

namespace vellum {
namespace {

constexpr std::uint64_t kMiBytes = 1 << 20;
using Bytes = boost::interprocess::allocator<char, detail::SegmentManager>;

RegionOptions small_region(std::uint64_t capacity_bytes = 256 * kMiBytes) {
  RegionOptions options;
  options.capacity_bytes = capacity_bytes;
  return options;
}

TEST(HeapSizeClasses, AClassIsTheSmallestThatFits) {
  using namespace detail;
  for (std::size_t bytes = 0; bytes <= kLargestClassBytes; ++bytes) {
    const SizeClass size_class = class_of(bytes);
    ASSERT_LT(size_class, kSizeClasses);
    ASSERT_GE(kClassBytes[size_class], bytes);
    ASSERT_TRUE(size_class == 0 || kClassBytes[size_class - 1] < bytes) << bytes;
  }
}

TEST(HeapSpan, ASpanAllocatesEachBlockOnce) {
  using namespace detail;
  alignas(16) static char memory[kSpanBytes];
  for (SizeClass size_class = 0; size_class < kSizeClasses; ++size_class) {
    auto& span = *::new (static_cast<void*>(memory)) Span(size_class, 3);
    std::vector<char*> blocks;
    while (!span.is_full()) blocks.push_back(static_cast<char*>(span.take()));
    ASSERT_EQ(blocks.size(), span.capacity());
    ASSERT_TRUE(std::is_sorted(blocks.begin(), blocks.end()));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      ASSERT_GE(blocks[i], memory + sizeof(Span));
      ASSERT_EQ((blocks[i] - memory) % 16, 0);
      ASSERT_TRUE(i == 0 || blocks[i] >= blocks[i - 1] + kClassBytes[size_class]);
      ASSERT_TRUE(span.holds(blocks[i]));
      ASSERT_FALSE(span.holds(blocks[i] + 8));
    }
    // Boost's next header has the last 8 bytes.
    ASSERT_LE(blocks.back() + kClassBytes[size_class], memory + kSpanBytes - 8);
    ASSERT_TRUE(span.is_sane());
    for (char* const block : blocks) {
      span.give_back(block);
      ASSERT_FALSE(span.holds(block));
      ASSERT_EQ(span.take(), block) << "the only free one";
    }
    for (char* const block : blocks) span.give_back(block);
    ASSERT_TRUE(span.is_empty());
    ASSERT_EQ(span.used_bytes(), 0U);
    ASSERT_TRUE(span.is_sane());
  }
}

TEST(HeapSpanMap, TheMapHasAPartForEachDoubling) {
  using detail::SpanMap;
  std::vector<char> heap(4 * kMiBytes);
  auto& map = *::new (static_cast<void*>(heap.data())) SpanMap();
  std::size_t at = (sizeof(SpanMap) + 7) / 8 * 8;
  std::vector<detail::SpanNumber> numbers;
  for (const detail::SpanNumber first :
       {1U, 63U, 64U, 4095U, 4096U, 8191U, 8192U, 16383U, 16384U, 65535U, 65536U, 4194303U}) {
    if (const std::size_t bytes = map.missing_bytes(heap.data(), first)) {
      ASSERT_GE(first, 4096U);
      ASSERT_FALSE(map.contains(heap.data(), first));
      ASSERT_LE(at + bytes, heap.size());
      map.add_part(heap.data(), first, heap.data() + at);
      at += bytes;
    }
    ASSERT_EQ(map.missing_bytes(heap.data(), first), 0U);
    map.insert(heap.data(), first);
    numbers.push_back(first);
    for (const auto number : numbers) {
      ASSERT_TRUE(map.contains(heap.data(), number));
      ASSERT_FALSE(map.contains(heap.data(), number + 2));
    }
  }
  EXPECT_TRUE(map.fits(heap.size()));
  EXPECT_FALSE(map.fits(at - 8)) << "the last part does not lie in so small a heap";
  for (const auto number : numbers) {
    map.erase(heap.data(), number);
    ASSERT_FALSE(map.contains(heap.data(), number));
  }
  // Of the largest region, 64 TiB: half of all bits.
  EXPECT_EQ(map.missing_bytes(heap.data(), 0xffffffffU), std::size_t{1} << 28);
}

class HeapClassesTest : public testing::Test {
 protected:
  Region create(std::uint64_t bytes = kMiBytes, std::uint64_t capacity_bytes = 256 * kMiBytes) {
    return store_->create_region("main", bytes, small_region(capacity_bytes));
  }

  test::TempDirectory directory_;
  std::unique_ptr<Store> store_ =
      std::make_unique<Store>(Store::create(directory_.path() + "/store"));
};

// ---- The model ----

struct Block {
  std::size_t bytes;
  unsigned char fill;
};
using Blocks = std::map<std::uint64_t, Block>;  // by place

class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {}

  void step(Region& region, Heap& heap) {
    Bytes bytes(heap.allocator());
    const auto what = random_() % 8;
    if (what < 4 || blocks.empty()) {
      const std::size_t count = random_size();
      add(region, bytes.allocate(count), count);
    } else if (what < 6) {
      const auto block = any();
      check(region, *block);
      bytes.deallocate(pointer_to(region, block->first), block->second.bytes);
      blocks.erase(block);
    } else {
      resize(region, bytes);
    }
  }

  void check_all(const Region& region) const {
    std::uint64_t end = 0;
    for (const auto& block : blocks) {
      ASSERT_GE(block.first, end) << "blocks overlap";
      end = block.first + block.second.bytes;
      ASSERT_LE(end, region.size_bytes());
      check(region, block);
    }
  }

  void free_all(Region& region, Heap& heap) {
    for (const auto& [place, block] : blocks) {
      Bytes(heap.allocator()).deallocate(pointer_to(region, place), block.bytes);
    }
    blocks.clear();
  }

  std::uint64_t live_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [place, block] : blocks) sum += block.bytes;
    return sum;
  }

  Blocks blocks;

 private:
  std::size_t random_size() {
    const std::size_t most = random_() % 16 == 0 ? 20'000 : random_() % 4 == 0 ? 2'000 : 200;
    return 1 + random_() % most;
  }
  static char* pointer_to(const Region& region, std::uint64_t place) {
    return static_cast<char*>(region.data()) + place;
  }
  void add(const Region& region, const Bytes::pointer& memory, std::size_t count) {
    const auto place = static_cast<std::uint64_t>(memory.get() - static_cast<char*>(region.data()));
    ASSERT_EQ(place % 16, 0U);
    const auto fill = static_cast<unsigned char>(random_());
    std::memset(memory.get(), fill, count);
    ASSERT_TRUE(blocks.emplace(place, Block{count, fill}).second);
  }
  void resize(const Region& region, Bytes& bytes) {
    namespace bi = boost::interprocess;
    const auto block = any();
    check(region, *block);
    const Block old = block->second;
    const std::size_t least = random_size();
    std::size_t received = least + random_() % 100;
    const Bytes::pointer memory(pointer_to(region, block->first));
    Bytes::pointer reuse = memory;
    const Bytes::pointer now =
        bytes.allocation_command(bi::allocate_new | bi::expand_fwd, least, received, reuse);
    ASSERT_GE(received, least);
    ASSERT_GE(bytes.size(now), received);
    blocks.erase(block);
    if (!reuse) {
      for (std::size_t i = 0; i < std::min(old.bytes, received); ++i) {
        ASSERT_EQ(static_cast<unsigned char>(memory.get()[i]), old.fill) << "before it was freed";
      }
      bytes.deallocate(memory, old.bytes);
    } else {
      ASSERT_EQ(now, memory);
    }
    add(region, now, received);
  }
  Blocks::iterator any() {
    const auto from = blocks.lower_bound(random_() % (blocks.rbegin()->first + 1));
    return from == blocks.end() ? blocks.begin() : from;
  }
  static void check(const Region& region, const Blocks::value_type& block) {
    const auto* const at = reinterpret_cast<unsigned char*>(pointer_to(region, block.first));
    for (std::size_t i = 0; i < block.second.bytes; ++i) {
      ASSERT_EQ(at[i], block.second.fill) << "byte " << i << " of the block at " << block.first;
    }
  }

  std::mt19937 random_;
};

void expect_whole(const ConstHeap& heap, const Region& region, const Model& model) {
  model.check_all(region);
  EXPECT_TRUE(heap.check_sanity());
  EXPECT_EQ(heap.used_bytes() + heap.free_bytes(), heap.size_bytes());
  EXPECT_GE(heap.used_bytes(), model.live_bytes());
}

// A copy of the store's files is the state after a crash. It has the last commit, and a program can
// continue from it.
void go_on_after_a_crash(const std::string& store, const std::string& copy, Model model) {
  std::filesystem::remove_all(copy);
  std::filesystem::copy(store, copy, std::filesystem::copy_options::recursive);
  auto after = Store::open(copy);
  auto region = after.open_region("main", small_region());
  Heap heap(region);
  expect_whole(heap, region, model);
  for (int i = 0; i < 500; ++i) model.step(region, heap);
  expect_whole(heap, region, model);
  model.free_all(region, heap);
  EXPECT_TRUE(heap.check_sanity());
  EXPECT_LT(heap.used_bytes(), 64U << 10) << "blocks that nobody has";
}

TEST_F(HeapClassesTest, ModelWithCommitsRollbacksReopeningAndCrashes) {
  const unsigned seeds = 4;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const std::string path = directory_ / ("of" + std::to_string(seed));
    auto store = Store::create(path);
    // The first ones begin below 1 MiB, without spans.
    auto region = store.create_region("main", (seed % 2 == 0 ? 256U : 4096U) << 10, small_region());
    std::optional<Heap> heap(region);
    region.commit();
    Model model(seed);
    Blocks committed;
    std::mt19937 random(seed);
    for (int round = 0; round < 16; ++round) {
      for (int i = 0; i < 400; ++i) model.step(region, *heap);
      expect_whole(*heap, region, model);
      switch (random() % 5) {
        case 0:
          region.rollback();
          model.blocks = committed;
          break;
        case 1: {
          Model last = model;
          last.blocks = committed;
          go_on_after_a_crash(path, directory_ / "crashed", last);
          break;
        }
        case 2:
          region.commit();
          committed = model.blocks;
          heap.reset();
          region.close();
          region = store.open_region("main", small_region());
          heap.emplace(region);
          break;
        default:
          region.commit();
          committed = model.blocks;
      }
      expect_whole(*heap, region, model);
      if (testing::Test::HasFatalFailure()) return;
    }
    model.free_all(region, *heap);
    EXPECT_LT(heap->used_bytes(), 64U << 10) << "blocks that nobody has";
  }
}

// ---- Threads ----

TEST_F(HeapClassesTest, ThreadsFreeWhatOthersAllocate) {
  Region region = create(4 * kMiBytes);
  Heap heap(region);
  constexpr int kThreads = 4, kRounds = 3'000;
  std::mutex mutex;
  std::vector<std::pair<Bytes::pointer, std::size_t>> handed_on;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Bytes bytes(heap.allocator());
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kRounds; ++i) {
        const std::size_t count = 1 + random() % (i % 50 == 0 ? 5'000 : 600);
        const Bytes::pointer mine = bytes.allocate(count);
        std::memset(mine.get(), static_cast<int>(count % 251), count);
        std::pair<Bytes::pointer, std::size_t> other{nullptr, 0};
        {
          const std::lock_guard guard(mutex);
          handed_on.emplace_back(mine, count);
          if (handed_on.size() > 200) {
            std::swap(handed_on[random() % handed_on.size()], handed_on.back());
            other = handed_on.back();
            handed_on.pop_back();
          }
        }
        for (std::size_t b = 0; b < other.second; ++b) {
          wrong +=
              other.first[static_cast<std::ptrdiff_t>(b)] != static_cast<char>(other.second % 251);
        }
        if (other.second > 0) bytes.deallocate(other.first, other.second);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(heap.check_sanity());
  for (const auto& [block, count] : handed_on) {
    Bytes(heap.allocator()).deallocate(block, count);
  }
  EXPECT_TRUE(heap.check_sanity());
  EXPECT_LT(heap.used_bytes(), 64U << 10);
  EXPECT_LT(region.size_bytes(), 16 * kMiBytes);
}

// 100 threads, one after another and some at a time: each takes over spans of earlier ones.
TEST_F(HeapClassesTest, SpansOfEndedThreadsAreReused) {
  Region region = create(8 * kMiBytes);
  Heap heap(region, Heap::Growth::manual);
  const auto work = [&heap] {
    Bytes bytes(heap.allocator());
    std::vector<Bytes::pointer> blocks;
    for (int i = 0; i < 1'000; ++i) blocks.push_back(bytes.allocate(1'000));
    for (const auto& block : blocks) bytes.deallocate(block, 1'000);
  };
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 5; ++t) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_TRUE(heap.check_sanity());

  // The same within one thread, of all partly used spans.
  std::vector<Bytes::pointer> kept;
  std::thread([&] {
    Bytes bytes(heap.allocator());
    for (int i = 0; i < 4'000; ++i) kept.push_back(bytes.allocate(1'000));
  }).join();
  Bytes bytes(heap.allocator());
  for (std::size_t i = 0; i < kept.size(); i += 2) bytes.deallocate(kept[i], 1'000);
  for (std::size_t i = 0; i < kept.size(); i += 2) EXPECT_NO_THROW(kept[i] = bytes.allocate(1'000));
  EXPECT_TRUE(heap.check_sanity());
}

// More threads than slots: some share one.
TEST_F(HeapClassesTest, MoreThreadsThanSlots) {
  Region region = create(4 * kMiBytes);
  Heap heap(region);
  std::atomic<int> waiting{0};
  std::vector<std::thread> threads;
  constexpr int kThreads = 80;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Bytes bytes(heap.allocator());
      Bytes::pointer last = bytes.allocate(40);
      for (++waiting; waiting < kThreads;) std::this_thread::yield();  // all live at once
      for (int i = 0; i < 100; ++i) {
        const Bytes::pointer next = bytes.allocate(40);
        bytes.deallocate(last, 40);
        last = next;
      }
      bytes.deallocate(last, 40);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(heap.check_sanity());
  EXPECT_LT(heap.used_bytes(), 64U << 10);
}

// ---- Room ----

TEST_F(HeapClassesTest, AFullHeapNamesItselfAndReusesFreedBlocks) {
  Region region = create(2 * kMiBytes, 2 * kMiBytes);
  Heap heap(region);
  Bytes bytes(heap.allocator());
  std::vector<Bytes::pointer> blocks;
  try {
    for (;;) blocks.push_back(bytes.allocate(100));
  } catch (const HeapFull& full) {
    const std::string message = full.what();
    EXPECT_NE(message.find("heap in region 'main' of 2097152 bytes: no room for 100 bytes"),
              std::string::npos)
        << message;
  }
  EXPECT_GT(blocks.size() * 112, region.size_bytes() * 9 / 10);
  EXPECT_THROW(blocks.push_back(bytes.allocate(1'000)), HeapFull);
  EXPECT_TRUE(heap.check_sanity());
  bytes.deallocate(blocks.back(), 100);
  blocks.pop_back();
  EXPECT_NO_THROW(blocks.push_back(bytes.allocate(100)));
  for (const auto& block : blocks) bytes.deallocate(block, 100);
  // Empty spans serve another size, and a block of half the heap.
  EXPECT_NO_THROW(bytes.allocate(1'000));
  EXPECT_NO_THROW(bytes.allocate(kMiBytes));
  EXPECT_TRUE(heap.check_sanity());
}

// Each size fills the heap and is freed: the next one reuses the space.
TEST_F(HeapClassesTest, SpaceOfOneSizeServesTheNext) {
  Region region = create(4 * kMiBytes);
  Heap heap(region);
  Bytes bytes(heap.allocator());
  constexpr std::size_t kAll = 3 * kMiBytes;
  std::vector<std::pair<Bytes::pointer, std::size_t>> left;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t size = 16; size <= 16'384; size = size * 3 / 2) {
      std::vector<Bytes::pointer> blocks;
      for (std::size_t i = 0; i < kAll / size; ++i) blocks.push_back(bytes.allocate(size));
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i == blocks.size() / 2) {
          left.emplace_back(blocks[i], size);
        } else {
          bytes.deallocate(blocks[i], size);
        }
      }
    }
  }
  EXPECT_LE(region.size_bytes(), 8 * kMiBytes);
  EXPECT_TRUE(heap.check_sanity());
  for (const auto& [block, size] : left) bytes.deallocate(block, size);
  EXPECT_LT(heap.used_bytes(), 64U << 10);
}

TEST_F(HeapClassesTest, SmallBlocksTakeNoMoreThanTheirClass) {
  Region region = create(4 * kMiBytes);
  Heap heap(region);
  Bytes bytes(heap.allocator());
  const std::uint64_t before = heap.used_bytes();
  for (int i = 0; i < 10'000; ++i) bytes.allocate(48);
  EXPECT_LT(heap.used_bytes() - before, 10'000 * 48 * 103 / 100 + (32U << 10));
}

TEST_F(HeapClassesTest, BlocksAreAligned) {
  Region region = create(4 * kMiBytes);
  Heap heap(region);
  Bytes bytes(heap.allocator());
  for (std::size_t size = 1; size <= 1'100; ++size) {
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(bytes.allocate(size).get()) % 16, 0U);
  }
  auto* const segment = heap.allocator().get_segment_manager();
  for (std::size_t alignment = 32; alignment <= 8'192; alignment *= 2) {
    void* const block = segment->allocate_aligned(100, alignment);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
    segment->deallocate(block);
  }
  EXPECT_TRUE(heap.check_sanity());
}

TEST_F(HeapClassesTest, VectorsGrowThroughTheClassesAndShrink) {
  Region region = create(4 * kMiBytes);
  Heap heap(region);
  const std::uint64_t before = heap.used_bytes();
  auto& numbers = heap.root<vector<std::uint32_t>>("numbers");
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    numbers.push_back(i);
    if (i % 1'000 == 10) numbers.shrink_to_fit();
  }
  for (std::uint32_t i = 0; i < 100'000; ++i) ASSERT_EQ(numbers[i], i);
  numbers.resize(20);
  numbers.shrink_to_fit();
  EXPECT_EQ(numbers[19], 19U);
  auto& text = heap.root<string>("text");
  for (int i = 0; i < 5'000; ++i) text += static_cast<char>('a' + i % 26);
  text.resize(70);
  text.shrink_to_fit();
  EXPECT_EQ(text[69], 'a' + 69 % 26);
  heap.destroy<vector<std::uint32_t>>("numbers");
  heap.destroy<string>("text");
  EXPECT_LE(heap.used_bytes(), before + (16U << 10));
  EXPECT_TRUE(heap.check_sanity());
}

// ---- Versions and formats ----

TEST_F(HeapClassesTest, RollbackUndoesSpansAndClasses) {
  Region region = create(512 << 10);  // too small for spans
  Heap heap(region);
  auto& texts = heap.root<vector<string>>("texts");
  region.commit();
  auto* const header = static_cast<detail::HeapHeader*>(region.data());
  const std::uint64_t used = heap.used_bytes();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(header->version, detail::kHeapWithoutClasses);
    for (int i = 0; i < 20'000; ++i) {
      texts.emplace_back(std::string(100, static_cast<char>('a' + round)).c_str());
    }
    EXPECT_EQ(header->version, detail::kHeapWithClasses);
    EXPECT_TRUE(heap.check_sanity());
    region.rollback();
    EXPECT_EQ(heap.used_bytes(), used);
    EXPECT_TRUE(heap.check_sanity());
    ASSERT_TRUE(texts.empty());
  }
}

// A heap of a Vellum without size classes.
using OldAlgorithm = boost::interprocess::rbtree_best_fit<detail::HeapMutexFamily,
                                                          boost::interprocess::offset_ptr<void>>;
using OldSegment =
    boost::interprocess::basic_managed_external_buffer<char, OldAlgorithm,
                                                       boost::interprocess::iset_index>;

TEST_F(HeapClassesTest, HeapOfAnEarlierVellumKeepsItsBlocks) {
  Region region = create(4 * kMiBytes);
  std::vector<std::uint64_t> places;
  const auto at = [&](std::uint64_t place) { return static_cast<char*>(region.data()) + place; };
  {
    auto& header = *static_cast<detail::HeapHeader*>(region.data());
    static_assert(sizeof(OldSegment::segment_manager) == sizeof(detail::SegmentManager));
    header.segment_bytes = region.size_bytes() - sizeof header;
    OldSegment segment(boost::interprocess::create_only, &header + 1, header.segment_bytes);
    for (int i = 0; i < 1'000; ++i) {
      char* const block = static_cast<char*>(segment.allocate(100));
      std::memset(block, i, 100);
      places.push_back(static_cast<std::uint64_t>(block - at(0)));
    }
    *segment.construct<int>("seven")() = 7;
    header.version = 1;
    header.layout = detail::heap_layout();
    std::memcpy(header.magic, detail::kHeapMagic, sizeof header.magic);
    region.snapshot("old");
  }
  const ConstHeap then = Heap::open_read_only(store_->open_version("old"));
  EXPECT_EQ(then.root<int>("seven"), 7);
  EXPECT_TRUE(then.check_sanity());

  Heap heap(region);
  EXPECT_EQ(heap.root<int>("seven"), 7);
  Bytes bytes(heap.allocator());
  const std::uint64_t used = heap.used_bytes();
  std::vector<Bytes::pointer> blocks;
  for (int i = 0; i < 5'000; ++i) {
    blocks.push_back(bytes.allocate(100));
    std::memset(blocks.back().get(), 255, 100);
  }
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_EQ(std::count(at(places[static_cast<std::size_t>(i)]),
                         at(places[static_cast<std::size_t>(i)]) + 100, static_cast<char>(i)),
              100);
    bytes.deallocate(at(places[static_cast<std::size_t>(i)]), 100);
  }
  for (const auto& block : blocks) bytes.deallocate(block, 100);
  EXPECT_LT(heap.used_bytes(), used - 100'000);
  EXPECT_TRUE(heap.check_sanity());
}

TEST_F(HeapClassesTest, PlaceOfClassesThatDoesNotFitIsRefused) {
  Region region = create(4 * kMiBytes);
  {
    Heap heap(region);
    heap.root<map<int, string>>("texts")[1] = "one";
  }
  auto& header = *static_cast<detail::HeapHeader*>(region.data());
  const std::uint64_t place = header.classes;
  ASSERT_NE(place, 0U);
  for (const std::uint64_t wrong :
       {place + 8, place + 128, region.size_bytes(), ~std::uint64_t{15}}) {
    header.classes = wrong;
    try {
      (void)Heap::open_read_only(region);
      ADD_FAILURE() << "took classes at " << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::corrupted);
    }
  }
  header.classes = place;
  EXPECT_EQ(Heap::open_read_only(region).used_bytes(), Heap(region).used_bytes());
}

// Spans start at multiples of 16 KiB in the region, whatever the region's address.
TEST_F(HeapClassesTest, ARegionsAddressNeedBeNoMultipleOfASpan) {
  constexpr std::size_t kReserved = 64 * kMiBytes;
  void* const room =
      mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  const auto aligned = (reinterpret_cast<std::uintptr_t>(room) + 16'383) / 16'384 * 16'384;
  {
    Region first = create(4 * kMiBytes);
    {
      Heap heap(first);
      auto& texts = heap.root<map<int, string>>("texts");
      for (int i = 0; i < 1'000; ++i) texts[i] = std::string(50, 'x').c_str();
    }
    first.commit();
    first.close();
    RegionOptions options;
    options.capacity_bytes = 16 * kMiBytes;
    options.over_reservation = true;
    options.base_address = aligned + 4096;
    Region region = store_->open_region("main", options);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(region.data()), aligned + 4096);
    Heap heap(region);
    auto& texts = heap.root<map<int, string>>("texts");
    for (int i = 0; i < 1'000; ++i) texts.erase(i);
    for (int i = 0; i < 3'000; ++i) texts[i] = std::string(90, 'y').c_str();
    EXPECT_EQ(texts.at(2'999), std::string(90, 'y').c_str());
    EXPECT_TRUE(heap.check_sanity());
    region.commit();
  }
  munmap(room, kReserved);
}

}  // namespace
}  // namespace vellum
