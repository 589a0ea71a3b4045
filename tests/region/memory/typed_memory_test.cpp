// Region::root() and array(): typed memory, checked once.
#include <array>
#include <limits>

#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class TypedMemory : public StoreTest {};

struct TypedMemoryHead {
  std::uint32_t version;
  double values[3];
};

TEST_P(TypedMemory, TypedObjectsAreInTheRegion) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  auto& head = region.root<TypedMemoryHead>();
  EXPECT_EQ(static_cast<void*>(&head), region.data());
  EXPECT_EQ(head.version, 0u) << "zero at first";
  head = {7, {1, 2, 3}};
  double* const numbers = region.array<double>(100, 4096);
  EXPECT_EQ(static_cast<void*>(numbers), bytes_of(region) + 4096);
  numbers[99] = 0.5;
  region.snapshot("s");
  head.version = 8;

  const Region old = store.open_version("s", options());
  EXPECT_EQ(old.root<const TypedMemoryHead>().version, 7u);
  EXPECT_EQ(old.root<const TypedMemoryHead>().values[2], 3);
  EXPECT_EQ(old.array<const double>(100, 4096)[99], 0.5);
  EXPECT_EQ((region.root<const std::array<std::byte, 16>>()[0]), std::byte{8});
}

TEST_P(TypedMemory, ObjectsThatDoNotFitAreRefused) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  const auto refuse = [&](std::uint64_t count, std::uint64_t offset) {
    expect_error(Errc::invalid_argument, {"main"},
                 [&] { (void)region.array<std::uint64_t>(count, offset); });
  };
  EXPECT_NE(region.array<std::uint64_t>(kMiB / 8), nullptr);
  EXPECT_NE(region.array<std::uint64_t>(1, kMiB - 8), nullptr);
  EXPECT_NE(region.array<std::uint64_t>(0, kMiB), nullptr);
  refuse(kMiB / 8 + 1, 0);
  refuse(1, kMiB);
  refuse(2, kMiB - 8);
  refuse(1, 4);  // misaligned
  refuse(1, kMiB + 8);
  refuse(std::numeric_limits<std::uint64_t>::max(), 8);
  refuse(std::numeric_limits<std::uint64_t>::max() / 8 + 2, 0);
  EXPECT_NE(region.array<char>(3, 5), nullptr);
  expect_error(Errc::invalid_argument, {"main"},
               [&] { (void)region.root<std::array<char, kMiB + 1>>(); });
  region.grow(2 * kMiB);
  EXPECT_NE(region.array<std::uint64_t>(1, kMiB), nullptr);
  region.close();
  EXPECT_ERRC((void)region.root<int>(), Errc::invalid_argument);
}

TEST_P(TypedMemory, TypedObjectsOfAVersionAreConst) {
  Store store = create();
  store.create_region("main", kMiB, options()).snapshot("s");
  const Region old = store.open_version("s", options());
  EXPECT_EQ(old.root<const int>(), 0);
  expect_error(Errc::read_only, {"'s'", "const"}, [&] { (void)old.root<int>(); });
}

VELLUM_BOTH_ENGINES(TypedMemory);

}  // namespace
}  // namespace vellum::test
