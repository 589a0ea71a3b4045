// The persistent heap: its content survives commit, reopening, growth and rollback. Old versions
// are read at another address and without a single write. A region that holds something else is
// refused.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>
#include <vellum/heap.hpp>
#include <vellum/store.hpp>

#include "base/temp_directory.hpp"

namespace vellum {
namespace {

using Index = map<string, vector<int>>;
constexpr std::uint64_t kMiB = 1 << 20;
// These are longer than the inline buffer of a string, so that each is allocated in the heap.
const std::string kLong(100, 'x');

Errc code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.code();
  }
  return Errc::ok;
}

class HeapTest : public testing::Test {
 protected:
  // Small: the default does not fit under ThreadSanitizer.
  static RegionOptions options(std::uint64_t capacity_bytes = 256 * kMiB) {
    RegionOptions options;
    options.capacity_bytes = capacity_bytes;
    return options;
  }
  Region create(std::uint64_t bytes = kMiB, std::uint64_t capacity_bytes = 256 * kMiB) {
    return store_->create_region("main", bytes, options(capacity_bytes));
  }
  Region reopen(Region& region) {
    region.close();
    return store_->open_region("main", options());
  }

  test::TempDirectory directory_;
  std::unique_ptr<Store> store_ =
      std::make_unique<Store>(Store::create(directory_.path() + "/store"));
};

TEST_F(HeapTest, RootSurvivesCommitAndReopening) {
  Region region = create();
  {
    Heap heap(region);
    auto& ages = *heap.find_or_construct<map<string, int>>("ages");
    ages["ada"] = 36;
    ages[kLong] = 1;
    region.commit();
  }
  Region again = reopen(region);
  Heap heap(again);
  auto* ages = heap.find<map<string, int>>("ages");
  ASSERT_NE(ages, nullptr);
  EXPECT_EQ(ages->size(), 2U);
  EXPECT_EQ(ages->at("ada"), 36);
  EXPECT_EQ(ages->at(kLong), 1);
  EXPECT_EQ((heap.find_or_construct<map<string, int>>("ages")), ages);
}

struct Pair {
  int first;
  int second;
};
struct Wide {
  std::uint64_t words[4];
};
struct Virtual {
  virtual ~Virtual() = default;
};

// Types that the heap refuses at compile time.
static_assert(!detail::is_root_type<int*>() && !detail::is_root_type<const char*>() &&
              !detail::is_root_type<std::string>() && !detail::is_root_type<Virtual>() &&
              !detail::is_root_type<std::vector<int>>() &&
              !detail::is_root_type<std::unordered_map<int, int>>() &&
              !detail::is_root_type<std::array<std::unique_ptr<int>, 2>>() &&
              !detail::is_root_type<std::pair<int, std::string_view>>());
static_assert(detail::is_root_type<int>() && detail::is_root_type<Pair>() &&
              detail::is_root_type<offset_ptr<int>>() && detail::is_root_type<string>() &&
              detail::is_root_type<std::array<Pair, 3>>() && detail::is_root_type<Index>());
static_assert(std::is_base_of_v<Error, HeapFull>);

TEST_F(HeapTest, ARootIsNotReturnedAsAnotherType) {
  Region region = create();
  Heap heap(region);
  heap.root<vector<int>>("numbers").push_back(1);
  heap.root<Pair>("pair").first = 2;
  region.commit();
  const auto refused = [&](auto use) {
    try {
      use();
      ADD_FAILURE() << "no error";
      return std::string();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::invalid_argument) << e.what();
      return std::string(e.what());
    }
  };
  const std::string text = refused([&] { (void)heap.root<map<int, int>>("numbers"); });
  EXPECT_NE(text.find("vector<int32>"), std::string::npos) << text;
  EXPECT_NE(text.find("map<int32, int32>"), std::string::npos) << text;
  refused([&] { (void)heap.find<vector<float>>("numbers"); });
  refused([&] { (void)heap.root<Wide>("pair"); });
  refused([&] { (void)heap.destroy<string>("numbers"); });
  refused([&] { (void)std::as_const(heap).root<vector<std::uint32_t>>("numbers"); });
  EXPECT_EQ(heap.root<vector<int>>("numbers").size(), 1U);
  EXPECT_TRUE(heap.destroy<vector<int>>("numbers"));
  EXPECT_TRUE((heap.root<map<int, int>>("numbers").empty()));
  EXPECT_TRUE(heap.check_sanity());
}

// Heaps of earlier programs have no record of a root's type: then only the size decides.
TEST_F(HeapTest, ARootWithoutATypeIsCheckedBySize) {
  Region region = create();
  Heap heap(region);
  heap.root<Pair>("pair").second = 4;
  auto* const segment = detail::heap_segment(region);
  ASSERT_TRUE(segment->destroy<char>(detail::type_note_of("pair").c_str()));
  EXPECT_EQ(heap.root<Pair>("pair").second, 4);
  EXPECT_EQ(code_of([&] { (void)heap.root<Wide>("pair"); }), Errc::invalid_argument);
  EXPECT_TRUE(heap.destroy<Pair>("pair"));
}

// As in the guide "First program".
struct Book {
  using allocator_type = Allocator;
  Book(std::string_view t, int y, const allocator_type& a) : title(t, a), authors(a), year(y) {}
  Book(const Book& other, const allocator_type& a)
      : title(other.title, a), authors(other.authors, a), year(other.year) {}
  Book(Book&& other, const allocator_type& a)
      : title(std::move(other.title), a), authors(std::move(other.authors), a), year(other.year) {}
  string title;
  vector<string> authors;
  int year;
};

TEST_F(HeapTest, ContainersHoldStructsWithStrings) {
  Region region = create();
  {
    Heap heap(region);
    auto& shelf = heap.root<vector<Book>>("shelf");
    for (int i = 0; i < 100; ++i) {  // it grows, and moves them
      shelf.emplace_back(kLong, i);
      shelf.back().authors.emplace_back(kLong + std::to_string(i));
    }
    auto& by_name = heap.root<map<string, Book>>("by name");
    by_name.try_emplace("u", kLong, 1922);
    by_name.at("u").authors.emplace_back("Joyce");
    auto& copies = heap.root<unordered_map<int, Book>>("copies");
    copies.emplace(7, shelf[7]);
    region.commit();
  }
  Region again = reopen(region);
  const ConstHeap heap(again);
  const auto& shelf = heap.root<vector<Book>>("shelf");
  ASSERT_EQ(shelf.size(), 100U);
  EXPECT_EQ(shelf[42].authors.at(0), (kLong + "42").c_str());
  EXPECT_EQ((heap.root<map<string, Book>>("by name").at("u").authors.at(0)), "Joyce");
  EXPECT_EQ((heap.root<unordered_map<int, Book>>("copies").at(7).year), 7);
  EXPECT_TRUE(heap.check_sanity());
}

TEST_F(HeapTest, UnorderedMapsHaveTheInterfaceOfStd) {
  Region region = create();
  Heap heap(region);
  auto& words = heap.root<unordered_map<string, int>>("words");
  EXPECT_TRUE(words.emplace("one", 1).second);
  EXPECT_FALSE(words.emplace("one", 2).second);
  EXPECT_TRUE(words.insert(std::make_pair("two", 2)).second);
  const std::vector<std::pair<std::string, int>> more = {{"three", 3}, {"four", 4}};
  words.insert(more.begin(), more.end());
  EXPECT_EQ(words.size(), 4U);
  auto& same = heap.root<unordered_map<string, int>>("same");
  for (auto at = words.cbegin(); at != words.cend(); ++at) same.insert(*at);
  EXPECT_TRUE(words == same);
  same["two"] = 5;
  EXPECT_TRUE(words != same);
  for (auto at = words.begin(); at != words.end();) {
    at = at->second % 2 == 0 ? words.erase(at) : std::next(at);
  }
  EXPECT_EQ(words.size(), 2U);
  EXPECT_TRUE(words.contains("one") && words.contains("three"));
  EXPECT_EQ(words.erase("three"), 1U);
}

TEST_F(HeapTest, UncommittedObjectsAreLost) {
  Region region = create();
  {
    Heap heap(region);
    heap.find_or_construct<int>("number", 7);
  }
  Region again = reopen(region);
  EXPECT_EQ(code_of([&] { (void)Heap::open_read_only(again); }), Errc::not_found);
  Heap heap(again);
  EXPECT_EQ(heap.find<int>("number"), nullptr);
}

TEST_F(HeapTest, OldVersionsAreReadWithoutWriting) {
  Region region = create();
  Heap heap(region);
  auto& index = *heap.find_or_construct<Index>("index");
  auto& words = *heap.find_or_construct<unordered_map<string, string>>("words");
  auto& names = *heap.find_or_construct<set<string>>("names");
  for (int i = 0; i < 1000; ++i) {
    index[kLong + std::to_string(i % 10)].push_back(i);
    words[kLong + std::to_string(i)] = std::to_string(i) + kLong;
    names.emplace(kLong + std::to_string(i));
  }
  region.snapshot("old");
  index.clear();
  words.clear();
  names.clear();
  region.commit();

  // A store into this memory would be the end of the test program.
  Region old = store_->open_version("old");
  ASSERT_NE(old.data(), region.data());
  ASSERT_FALSE(old.writable());
  const ConstHeap then = Heap::open_read_only(old);
  const Index* old_index = then.find<Index>("index");
  ASSERT_NE(old_index, nullptr);
  EXPECT_EQ(old_index->size(), 10U);
  EXPECT_EQ(old_index->at(kLong + "3").size(), 100U);
  EXPECT_EQ(old_index->count(kLong + "3"), 1U);
  EXPECT_TRUE(old_index->find(kLong) == old_index->end());
  int sum = 0;
  for (const auto& [key, values] : *old_index) {
    for (const int value : values) {
      sum += value;
    }
  }
  EXPECT_EQ(sum, 999 * 1000 / 2);

  const auto* old_words = then.find<unordered_map<string, string>>("words");
  ASSERT_NE(old_words, nullptr);
  EXPECT_EQ(old_words->size(), 1000U);
  EXPECT_TRUE(old_words->at(kLong + "7") == ("7" + kLong).c_str());
  EXPECT_FALSE(old_words->contains(kLong));
  std::size_t visited = 0;
  for (const auto& [key, value] : *old_words) {
    visited += value.size() > kLong.size() ? 1 : 0;
  }
  EXPECT_EQ(visited, 1000U);

  EXPECT_EQ(then.find<set<string>>("names")->count(kLong + "999"), 1U);
  EXPECT_EQ(then.find<int>("none"), nullptr);
  EXPECT_TRUE(then.check_sanity());
  EXPECT_GT(then.used_bytes(), 200'000U);
  EXPECT_EQ(then.used_bytes() + then.free_bytes(), then.size_bytes());
  EXPECT_TRUE(index.empty());
}

TEST_F(HeapTest, RollbackUndoesChangesOfTheHeap) {
  Region region = create();
  Heap heap(region);
  auto& index = *heap.find_or_construct<Index>("index");
  index["kept"].push_back(1);
  region.commit();
  const std::uint64_t used = heap.used_bytes();

  index["lost"].resize(1000);
  heap.find_or_construct<vector<int>>("lost", 1000U, 5);
  EXPECT_GT(heap.used_bytes(), used);
  region.rollback();

  EXPECT_EQ(heap.used_bytes(), used);
  EXPECT_TRUE(heap.check_sanity());
  EXPECT_EQ(heap.find<vector<int>>("lost"), nullptr);
  EXPECT_EQ(index.size(), 1U);
  index["more"].push_back(2);
  EXPECT_EQ(index.size(), 2U);
}

TEST_F(HeapTest, RollbackUndoesGrowth) {
  Region region = create();
  Heap heap(region);
  auto& numbers = *heap.find_or_construct<vector<int>>("numbers");
  region.commit();
  const std::uint64_t size = region.size_bytes();

  numbers.resize(kMiB);
  EXPECT_GT(region.size_bytes(), size);
  region.rollback();
  EXPECT_EQ(region.size_bytes(), size);
  EXPECT_LT(heap.size_bytes(), size);
  EXPECT_TRUE(numbers.empty());

  numbers.resize(kMiB, 3);
  region.commit();
  EXPECT_EQ(numbers.back(), 3);
  EXPECT_TRUE(heap.check_sanity());
}

TEST_F(HeapTest, AFullHeapGrowsByItself) {
  Region region = create(64 << 10);
  {
    Heap heap(region);
    auto& texts = *heap.find_or_construct<unordered_map<std::uint64_t, string>>("texts");
    for (std::uint64_t i = 0; i < 50'000; ++i) {
      texts[i] = kLong.c_str();
      if (i % 10'000 == 0) {
        region.commit();
      }
    }
    EXPECT_GT(region.size_bytes(), 4 * kMiB);
    EXPECT_LT(region.size_bytes(), 64 * kMiB);
    region.snapshot("full");
  }
  Region again = reopen(region);
  Heap heap(again);
  EXPECT_TRUE(heap.check_sanity());
  EXPECT_EQ(
      heap.find<decltype(unordered_map<std::uint64_t, string>(heap.allocator()))>("texts")->size(),
      50'000U);
  const ConstHeap full = Heap::open_read_only(store_->open_version("full"));
  const auto* texts = full.find<unordered_map<std::uint64_t, string>>("texts");
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    ASSERT_TRUE(texts->at(i) == kLong.c_str());
  }
}

TEST_F(HeapTest, MovedHeapStillGrows) {
  Region region = create(64 << 10);
  Heap first(region);
  Heap second(std::move(first));
  auto& numbers = *second.find_or_construct<vector<int>>("numbers");
  numbers.resize(100'000);
  EXPECT_EQ(numbers.size(), 100'000U);
}

TEST_F(HeapTest, OneOfTwoHeapsOfARegionMayEnd) {
  Region region = create(64 << 10);
  Heap first(region);
  {
    Heap second(region);
  }
  first.find_or_construct<vector<int>>("numbers")->resize(100'000);
}

TEST_F(HeapTest, AHeapWithManualGrowthGrowsOnRequest) {
  Region region = create(64 << 10);
  Heap heap(region, Heap::Growth::manual);
  auto& numbers = *heap.find_or_construct<vector<int>>("numbers", 10U, 1);
  EXPECT_THROW(numbers.resize(100'000), HeapFull);
  EXPECT_EQ(numbers.size(), 10U);
  EXPECT_EQ(region.size_bytes(), 64U << 10);

  region.grow(kMiB);
  heap.grow();
  numbers.resize(100'000);
  EXPECT_THROW(numbers.resize(kMiB), HeapFull);
  heap.grow(8 * kMiB);
  numbers.resize(kMiB);
  EXPECT_EQ(numbers[9], 1);
  EXPECT_TRUE(heap.check_sanity());
}

TEST_F(HeapTest, AFullCapacityIsBadAllocAndRollbackRepairsTheHeap) {
  Region region = create(kMiB, 4 * kMiB);
  Heap heap(region);
  auto& texts = *heap.find_or_construct<map<int, string>>("texts");
  texts[-1] = "first";
  region.commit();
  const auto fill = [&] {
    for (int i = 0;; ++i) {
      texts[i] = kLong.c_str();
    }
  };
  EXPECT_THROW(fill(), HeapFull);
  EXPECT_EQ(region.size_bytes(), 4 * kMiB);
  EXPECT_GT(texts.size(), 15'000U);
  EXPECT_TRUE(heap.check_sanity());
  EXPECT_THROW(heap.find_or_construct<vector<int>>("big", kMiB), HeapFull);
  EXPECT_EQ(heap.find<vector<int>>("big"), nullptr);

  region.rollback();
  EXPECT_EQ(texts.size(), 1U);
  EXPECT_EQ(region.size_bytes(), kMiB);
  heap.find_or_construct<vector<int>>("half", kMiB / 2);
  region.commit();
  EXPECT_TRUE(heap.check_sanity());
}

TEST_F(HeapTest, OpeningAddsTheGrowthOfTheRegion) {
  Region region = create(kMiB);
  {
    Heap heap(region);
    region.commit();
    region.grow(2 * kMiB);
    region.commit();
  }
  region.close();
  Region larger = store_->open_or_create_region("main", 8 * kMiB, options());
  const ConstHeap before = Heap::open_read_only(larger);
  EXPECT_LT(before.size_bytes(), kMiB);
  Heap heap(larger, Heap::Growth::manual);
  EXPECT_GT(heap.free_bytes(), 7 * kMiB);
  heap.find_or_construct<vector<char>>("bytes", 7 * kMiB);
  EXPECT_TRUE(heap.check_sanity());
}

TEST_F(HeapTest, RootsAreCreatedOnceFoundAndDestroyed) {
  Region region = create();
  Heap heap(region);
  EXPECT_EQ(heap.find<int>("n"), nullptr);
  EXPECT_FALSE(heap.destroy<int>("n"));
  int* n = heap.find_or_construct<int>("n", 5);
  EXPECT_EQ(*n, 5);
  EXPECT_EQ(heap.find_or_construct<int>("n", 6), n);
  EXPECT_EQ(*n, 5);
  EXPECT_EQ(std::as_const(heap).find<int>("n"), n);

  const std::uint64_t used = heap.used_bytes();
  auto* texts = heap.find_or_construct<vector<string>>("texts");
  texts->resize(100);
  for (string& text : *texts) {
    text = kLong.c_str();
  }
  EXPECT_TRUE(heap.destroy<vector<string>>("texts"));
  EXPECT_EQ(heap.find<vector<string>>("texts"), nullptr);
  EXPECT_EQ(heap.used_bytes(), used);
}

TEST_F(HeapTest, AnotherTypeUnderTheNameIsRefused) {
  Region region = create();
  Heap heap(region);
  heap.find_or_construct<std::array<std::uint64_t, 4>>("four");
  EXPECT_EQ(code_of([&] { (void)heap.find<std::uint64_t>("four"); }), Errc::invalid_argument);
}

struct Library {
  using allocator_type = Allocator;
  explicit Library(const allocator_type& allocator) : Library(0, allocator) {}
  Library(int year, const allocator_type& allocator)
      : founded(year), books(allocator), readers(allocator) {}
  int founded;
  vector<string> books;
  unordered_map<std::uint64_t, map<string, vector<string>>> readers;
};

TEST_F(HeapTest, AUsersStructIsARootAndAnElement) {
  Region region = create();
  Heap heap(region);
  auto& library = *heap.find_or_construct<Library>("library", 1850);
  EXPECT_EQ(library.founded, 1850);
  library.books.emplace_back("Emma");
  library.readers[7]["lent"].emplace_back(kLong.c_str());
  auto& libraries = *heap.find_or_construct<map<string, Library>>("libraries");
  libraries["north"].books.emplace_back(kLong.c_str());
  libraries.try_emplace("south", 1900).first->second.readers[1]["lent"].emplace_back("Emma");
  region.snapshot("s");

  Region version = store_->open_version("s");
  const ConstHeap then = Heap::open_read_only(version);
  EXPECT_TRUE(then.find<Library>("library")->readers.at(7).at("lent")[0] == kLong.c_str());
  const auto& south = then.find<map<string, Library>>("libraries")->at("south");
  EXPECT_EQ(south.founded, 1900);
  EXPECT_TRUE(south.readers.at(1).at("lent")[0] == "Emma");
}

TEST_F(HeapTest, ARegionWithoutAHeapIsRefused) {
  Region region = create();
  std::memcpy(region.data(), "something else", 14);
  EXPECT_EQ(code_of([&] { Heap heap(region); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)Heap::open_read_only(region); }), Errc::invalid_argument);
  std::memset(region.data(), 0, 14);
  // The first page counts, not only the place of the header.
  static_cast<char*>(region.data())[4000] = 1;
  EXPECT_EQ(code_of([&] { Heap heap(region); }), Errc::invalid_argument);
  static_cast<char*>(region.data())[4000] = 0;
  EXPECT_EQ(code_of([&] { Heap heap(region); }), Errc::ok);
}

TEST_F(HeapTest, HeaderThatDoesNotFitIsRefused) {
  Region region = create();
  {
    Heap heap(region);
  }
  auto* header = static_cast<detail::HeapHeader*>(region.data());
  const auto expect_refused = [&](auto& field, Errc code) {
    const auto kept = field;
    ++field;
    EXPECT_EQ(code_of([&] { Heap heap(region); }), code);
    EXPECT_EQ(code_of([&] { (void)Heap::open_read_only(region); }), code);
    field = kept;
  };
  header->version = detail::kHeapWithClasses;
  expect_refused(header->version, Errc::newer_format);
  expect_refused(header->layout, Errc::unsupported);
  expect_refused(header->segment_bytes, Errc::corrupted);
  header->segment_bytes = 4096;
  EXPECT_EQ(code_of([&] { Heap heap(region); }), Errc::corrupted);
}

TEST_F(HeapTest, ReadOnlyRegionIsRefusedForWriting) {
  Region region = create();
  Heap heap(region);
  region.snapshot("s");
  Region version = store_->open_version("s");
  EXPECT_EQ(code_of([&] { Heap second(version); }), Errc::read_only);
  Region none;
  EXPECT_EQ(code_of([&] { Heap second(none); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)Heap::open_read_only(none); }), Errc::invalid_argument);
}

// A region without another handle could not be committed.
static_assert(!std::is_constructible_v<Heap, Region>);
static_assert(std::is_constructible_v<Heap, Region&>);
static_assert(std::is_constructible_v<ConstHeap, Region>);

template <class AnyHeap, class = void>
constexpr bool finds_in = false;
template <class AnyHeap>
constexpr bool finds_in<
    AnyHeap, std::void_t<decltype(std::declval<AnyHeap>().template find<int>(std::string())),
                         decltype(std::declval<AnyHeap>().template root<int>(std::string()))>> =
    true;
static_assert(finds_in<ConstHeap&> && finds_in<const ConstHeap&> && finds_in<Heap&>);
static_assert(!finds_in<ConstHeap>, "the region of a temporary heap may end with it");

TEST_F(HeapTest, AHeapKeepsItsRegionOpenForReading) {
  Region region = create();
  Heap heap(region);
  heap.root<map<string, int>>("ages")["ada"] = 36;
  region.snapshot("s");
  const ConstHeap then = Heap::open_read_only(store_->open_version("s"));
  EXPECT_EQ((then.root<map<string, int>>("ages").at("ada")), 36);
  const ConstHeap copy = then;
  EXPECT_EQ((&copy.root<map<string, int>>("ages")), (&then.root<map<string, int>>("ages")));
}

TEST_F(HeapTest, AHeapSurvivesAMoveOfItsRegion) {
  Region region = create(64 << 10, 16 * kMiB);
  Heap heap(region);
  auto& numbers = heap.root<vector<std::uint64_t>>("numbers");
  Region moved = std::move(region);
  region = Region();
  for (std::uint64_t i = 0; i < 100'000; ++i) numbers.push_back(i);  // grows the region
  EXPECT_GT(moved.size_bytes(), 800'000U);
  EXPECT_EQ(heap.find<vector<std::uint64_t>>("numbers"), &numbers);
  heap.grow(moved.size_bytes() + kMiB);
  moved.commit();
  EXPECT_TRUE(heap.check_sanity());
  Heap other = std::move(heap);
  Region again = std::move(moved);
  for (std::uint64_t i = 0; i < 100'000; ++i) numbers.push_back(i);
  again.commit();
  EXPECT_EQ(other.root<vector<std::uint64_t>>("numbers").size(), 200'000U);
}

// As a Pin does. The last of them releases the writer's lock.
TEST_F(HeapTest, AHeapHoldsTheBranchUntilItsEnd) {
  auto region = std::make_unique<Region>(create());
  auto heap = std::make_unique<Heap>(*region);
  heap->root<int>("number", 7);
  region->commit();
  region.reset();
  EXPECT_EQ(*heap->find<int>("number"), 7);
  EXPECT_EQ(code_of([&] { (void)store_->open_region("main", options()); }), Errc::busy);
  heap.reset();
  EXPECT_EQ(code_of([&] { (void)store_->open_region("main", options()); }), Errc::ok);
}

TEST_F(HeapTest, AMissingRootIsCreatedInAHeapAndAnErrorInAVersion) {
  Region region = create();
  Heap heap(region);
  EXPECT_EQ(heap.root<int>("number", 7), 7);
  heap.root<int>("number", 8) += 1;
  EXPECT_EQ(std::as_const(heap).root<int>("number"), 8);
  EXPECT_EQ(code_of([&] { (void)std::as_const(heap).root<int>("none"); }), Errc::not_found);
  region.snapshot("s");
  const ConstHeap then = Heap::open_read_only(store_->open_version("s"));
  EXPECT_EQ(then.root<int>("number"), 8);
  EXPECT_EQ(code_of([&] { (void)then.root<int>("none"); }), Errc::not_found);
}

TEST_F(HeapTest, UnorderedMapAgainstTheStandardOne) {
  Region region = create();
  Heap heap(region);
  using Map = unordered_map<std::uint64_t, string>;
  auto& ours = *heap.find_or_construct<Map>("map");
  std::unordered_map<std::uint64_t, std::string> theirs;
  std::mt19937_64 random(1);
  const auto expect_equal = [&](const Map& map) {
    ASSERT_EQ(map.size(), theirs.size());
    std::size_t visited = 0;
    for (const auto& [key, value] : map) {
      ASSERT_TRUE(value == theirs.at(key).c_str());
      ++visited;
    }
    ASSERT_EQ(visited, theirs.size());
    for (const auto& [key, value] : theirs) {
      ASSERT_TRUE(map.at(key) == value.c_str());
    }
  };
  const std::uint64_t used_by_none = heap.used_bytes();
  for (int round = 0; round < 20'000; ++round) {
    const std::uint64_t key = random() % 2'000;
    switch (random() % 4) {
      case 0:
        ASSERT_EQ(ours.erase(key), theirs.erase(key));
        break;
      case 1: {
        const std::string value = kLong + std::to_string(round);
        ASSERT_EQ(ours.insert_or_assign(key, value.c_str()).second,
                  theirs.insert_or_assign(key, value).second);
        break;
      }
      case 2:
        ASSERT_EQ(ours.try_emplace(key, "new").second, theirs.try_emplace(key, "new").second);
        break;
      default:
        ASSERT_EQ(ours.contains(key), theirs.count(key) == 1);
        ASSERT_EQ(ours.find(key) == ours.end(), theirs.find(key) == theirs.end());
    }
  }
  expect_equal(ours);
  {
    Map copy(ours);
    expect_equal(copy);
    Map moved(std::move(copy));
    expect_equal(moved);
    EXPECT_TRUE(copy.empty());
    copy = moved;
    expect_equal(copy);
    moved = std::move(copy);
    expect_equal(moved);
    expect_equal(ours);
  }
  EXPECT_THROW(ours.at(1'000'000), std::out_of_range);
  for (auto& [key, value] : ours) {
    value = "same";
  }
  for (const auto& [key, value] : ours) {
    ASSERT_TRUE(value == "same");
  }
  ours.clear();
  EXPECT_TRUE(ours.begin() == ours.end());
  EXPECT_TRUE(heap.destroy<Map>("map"));
  EXPECT_LT(heap.used_bytes(), used_by_none);
  EXPECT_TRUE(heap.check_sanity());
}

TEST_F(HeapTest, TextKeysAreLookedUpWithoutAnAllocation) {
  Region region = create(64 << 10);
  Heap heap(region, Heap::Growth::manual);
  auto& tree = *heap.find_or_construct<map<string, int>>("tree");
  auto& table = *heap.find_or_construct<unordered_map<string, int>>("table");
  tree[kLong] = table[kLong] = 1;
  const std::string too_long(256 << 10, 'y');  // would not fit
  EXPECT_TRUE(tree.find(too_long) == tree.end());
  EXPECT_EQ(tree.erase(too_long), 0U);
  EXPECT_THROW(tree.at(too_long), std::out_of_range);
  EXPECT_TRUE(table.find(too_long) == table.end());
  EXPECT_EQ(table.erase(too_long), 0U);
  EXPECT_THROW(table.at(too_long), std::out_of_range);
  EXPECT_THROW(table[too_long], HeapFull);
  EXPECT_EQ(table.size(), 1U);
  const string key(kLong.c_str(), heap.allocator<char>());
  EXPECT_EQ(tree[key], 1);
  EXPECT_EQ(table[key], 1);
  EXPECT_EQ(tree.erase(std::string_view(kLong)), 1U);
  EXPECT_EQ(table.erase(kLong.c_str()), 1U);
}

// The hash is stored in regions: it must never change.
TEST(HeapHash, TheHashOfKeysIsFixed) {
  EXPECT_EQ(hash<int>()(0), 0xe220a8397b1dcdafU);
  EXPECT_EQ(hash<std::uint64_t>()(1), 0x910a2dec89025cc1U);
  EXPECT_EQ(hash<string>()(""), 0U);
  EXPECT_EQ(hash<string>()("vellum"), 5588607833548765606U);
  EXPECT_EQ(hash<string>()("a longer text than one word"), 18059279559807167382U);
  EXPECT_NE(hash<string>()(std::string_view("a\0", 2)), hash<string>()("a"));
}

TEST_F(HeapTest, ThreadsAllocateTogetherAndGrow) {
  static_assert(std::is_empty_v<detail::HeapMutex>, "a lock must not lie in the region");
  Region region = create(64 << 10);
  Heap heap(region);
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&heap, t] {
      auto& texts = *heap.find_or_construct<map<string, string>>("of" + std::to_string(t));
      for (int i = 0; i < 3'000; ++i) {
        texts[std::to_string(i)] = kLong.c_str();
        if (i % 3 == 0) {
          texts.erase(std::to_string(i / 2));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  region.commit();
  EXPECT_TRUE(heap.check_sanity());
  const auto& first = *heap.find<map<string, string>>("of0");
  for (int t = 1; t < kThreads; ++t) {
    const auto& other = *heap.find<map<string, string>>("of" + std::to_string(t));
    EXPECT_TRUE(other == first);
  }
}

}  // namespace
}  // namespace vellum
