// The address of a region: the same again when it is free, always when it is required.
#include <sys/mman.h>

#include "support/child.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Address : public StoreTest {
 protected:
  RegionOptions fixed() const {
    RegionOptions fixed = options();
    fixed.fixed_address = true;
    return fixed;
  }
};

struct Node {
  Node* next;
  std::uint64_t value;
};

// A list through the region, by plain pointers.
void make_list(const Region& region, std::uint64_t count) {
  auto* at = static_cast<Node*>(region.data());
  for (std::uint64_t i = 1; i <= count; ++i) {
    auto* next = reinterpret_cast<Node*>(bytes_of(region) + i * 7919 % 251 * kPage + 64);
    *at = {i == count ? nullptr : next, i};
    at = next;
  }
}

std::uint64_t list_length(const Region& region) {
  std::uint64_t length = 0;
  for (auto* at = static_cast<const Node*>(region.data()); at != nullptr; at = at->next) {
    if (at->value != ++length) return 0;
  }
  return length;
}

TEST_P(Address, ARegionIsMappedAtItsFormerAddress) {
  Store store = create();
  void* data = nullptr;
  {
    Region region = store.create_region("main", kMiB, options());
    data = region.data();
    make_list(region, 100);
    region.commit();
  }
  Region region = store.open_region("main", options());
  EXPECT_EQ(region.data(), data);
  EXPECT_EQ(list_length(region), 100u);
}

TEST_P(Address, PointersStayValidInAnotherProcess) {
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, fixed());
    make_list(region, 100);
    region.snapshot("s");
  }
  EXPECT_CHILD_EXIT(run_child([&] {
                      Region region = Store::open(path()).open_region("main", fixed());
                      require(list_length(region) == 100, "the branch's list is whole");
                      region.close();
                      Region version = Store::open(path()).open_version("s", fixed());
                      require(list_length(version) == 100, "the snapshot's list is whole");
                    }),
                    0);
}

TEST_P(Address, AFixedAddressThatIsInUseIsBusy) {
  Store store = create();
  void* data = nullptr;
  {
    Region region = store.create_region("main", kMiB, fixed());
    data = region.data();
    word_at(region, 0) = 1;
    region.commit();
  }
  // One page, in the middle of the region's range.
  void* const block = static_cast<std::byte*>(data) + 32 * kPage;
  ASSERT_EQ(mmap(block, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            block);
  char text[32];
  std::snprintf(text, sizeof text, "%p", data);
  expect_error(Errc::busy, {text, "main"}, [&] { (void)store.open_region("main", fixed()); });
  {
    Region moved = store.open_region("main", options());  // only preferred: another one then
    EXPECT_NE(moved.data(), data);
    EXPECT_EQ(word_at(moved, 0), 1u);
    word_at(moved, 0) = 2;
    moved.commit();
  }
  munmap(block, kPage);
  Region region = store.open_region("main", fixed());
  EXPECT_EQ(region.data(), data);  // still the one that the pointers are for
  EXPECT_EQ(word_at(region, 0), 2u);
}

TEST_P(Address, ARegionIsMappedAtTheCallersAddress) {
  // The low end of a mapping that was just removed is free: the kernel fills gaps from their high
  // end.
  constexpr std::uint64_t kRoom = 8192 * kMiB;
  void* const room =
      mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  munmap(room, kRoom);
  RegionOptions chosen = fixed();
  chosen.base_address = (reinterpret_cast<std::uintptr_t>(room) / (2 * kMiB) + 1) * 2 * kMiB;
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, chosen);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region.data()), chosen.base_address);
    make_list(region, 100);
    region.commit();
  }
  {
    Region region = store.open_region("main", fixed());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region.data()), chosen.base_address);
    EXPECT_EQ(list_length(region), 100u);
  }
  RegionOptions other = chosen;
  other.base_address += 2 * kMiB;
  expect_error(Errc::invalid_argument, {"main"}, [&] { (void)store.open_region("main", other); });
  other.base_address = chosen.base_address + kPage;
  expect_error(Errc::invalid_argument, {"base_address"},
               [&] { store.create_region("odd", kMiB, other); });
  EXPECT_FALSE(store.contains("odd"));
}

TEST_P(Address, ARegionThatCannotOpenIsNotCreated) {
  Store store = create();
  Region first = store.create_region("first", kMiB, options());
  RegionOptions taken = fixed();
  taken.base_address = reinterpret_cast<std::uintptr_t>(first.data());
  char text[32];
  std::snprintf(text, sizeof text, "%p", first.data());
  expect_error(Errc::busy, {text}, [&] { store.create_region("second", kMiB, taken); });
  EXPECT_FALSE(store.contains("second"));
  Region second = store.create_region("second", kMiB, options());
}

// A caller has reserved this address space, as Metall does; the pages on both sides are not its
// own.
class Reserved {
 public:
  explicit Reserved(std::uint64_t bytes) : bytes_(bytes) {
    all_ = static_cast<std::byte*>(mmap(nullptr, bytes + 2 * kPage, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    require(all_ != MAP_FAILED, "the address space is reserved");
    all_[0] = all_[bytes + 2 * kPage - 1] = std::byte{42};
    require(mprotect(data(), bytes, PROT_NONE) == 0, "the range is closed");
  }
  ~Reserved() { munmap(all_, bytes_ + 2 * kPage); }
  std::byte* data() const { return all_ + kPage; }
  bool neighbours_are_whole() const {
    return all_[0] == std::byte{42} && all_[bytes_ + 2 * kPage - 1] == std::byte{42};
  }

 private:
  std::uint64_t bytes_;
  std::byte* all_ = nullptr;
};

class OverReservation : public Address {
 protected:
  RegionOptions over(const Reserved& reserved, std::uint64_t bytes) const {
    RegionOptions over = options();
    over.over_reservation = true;
    over.base_address = reinterpret_cast<std::uintptr_t>(reserved.data());
    over.capacity_bytes = bytes;
    return over;
  }
};

TEST_P(OverReservation, ARegionStaysWithinTheReservation) {
  constexpr std::uint64_t kBytes = 5 * kMiB + 3 * kPage;  // no multiple of anything but pages
  Store store = create();
  const Reserved first(kBytes), second(kBytes);
  {
    Region region = store.create_region("main", kMiB, over(first, kBytes));
    ASSERT_EQ(region.data(), first.data());
    EXPECT_EQ(region.capacity_bytes(), kBytes);
    region.grow(kBytes);
    for (std::uint64_t i = 0; i < kBytes; i += kPage) word_at(region, i) = i + 1;
    region.snapshot("s");
    word_at(region, 0) = 7;
    region.rollback();
    EXPECT_EQ(word_at(region, 0), 1u);
    EXPECT_ERRC(region.grow(kBytes + 1), Errc::invalid_argument);
  }
  EXPECT_TRUE(first.neighbours_are_whole());
  // The addresses are still the caller's: no other mapping can have taken them.
  EXPECT_EQ(mmap(first.data(), kBytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0),
            MAP_FAILED);
  const Region version = store.open_version("s", over(first, kBytes));
  const Region region = store.open_region("main", over(second, kBytes));
  EXPECT_EQ(region.data(), second.data());
  for (std::uint64_t i = 0; i < kBytes; i += kPage) {
    EXPECT_EQ(word_at(region, i), i + 1);
    EXPECT_EQ(word_at(version, i), i + 1);
  }
}

TEST_P(OverReservation, ARegionThatDoesNotFitIsRefused) {
  Store store = create();
  const Reserved reserved(kMiB);
  EXPECT_ERRC(store.create_region("main", 2 * kMiB, over(reserved, kMiB)), Errc::invalid_argument);
  RegionOptions odd = over(reserved, kMiB);
  odd.base_address += 8;
  EXPECT_ERRC(store.create_region("main", kPage, odd), Errc::invalid_argument);
  RegionOptions both = over(reserved, kMiB);
  both.fixed_address = true;
  EXPECT_ERRC(store.create_region("main", kPage, both), Errc::invalid_argument);
  EXPECT_FALSE(store.contains("main"));
  EXPECT_TRUE(reserved.neighbours_are_whole());
}

VELLUM_BOTH_ENGINES(OverReservation);
VELLUM_BOTH_ENGINES(Address);

}  // namespace
}  // namespace vellum::test
