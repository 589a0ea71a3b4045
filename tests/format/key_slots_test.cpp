#include "format/key_slots.hpp"

#include <gtest/gtest.h>

#include "format/samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;
using samples::sealed;

const char* slots_problem(const Bytes& bytes, KeySlots& out) {
  return decode_key_slots(bytes, samples::store_id(), out);
}

TEST(KeySlots, ComeBack) {
  KeySlots back;
  ASSERT_EQ(slots_problem(encode_key_slots(samples::key_slots(), samples::store_id()), back),
            nullptr);
  EXPECT_EQ(back, samples::key_slots());
}

// A hostile slot must not cost its reader all memory, nor an endless derivation.
TEST(KeySlots, BoundTheirCost) {
  KeySlots back;
  for (const base::Argon2Cost cost :
       {base::Argon2Cost{base::kMaxArgon2Passes + 1, 1024},
        base::Argon2Cost{1, base::kMaxArgon2MemoryKib + 1}, base::Argon2Cost{0, 1024}}) {
    KeySlots slots = samples::key_slots();
    slots.slots[0].cost = cost;
    EXPECT_STREQ(slots_problem(encode_key_slots(slots, samples::store_id()), back),
                 "malformed key slot");
  }
}

TEST(KeySlots, HaveAscendingNumbersBelowTheNext) {
  KeySlots back;
  for (const std::uint32_t number : {0u, 1u, 9u}) {
    KeySlots slots = samples::key_slots();
    slots.slots[3].number = number;
    EXPECT_STREQ(slots_problem(encode_key_slots(slots, samples::store_id()), back),
                 "malformed key slot");
  }
  KeySlots none;
  EXPECT_STREQ(slots_problem(encode_key_slots(none, samples::store_id()), back), "malformed");
}

TEST(KeySlots, TruncationsAndATailAreRefused) {
  const Bytes good = encode_key_slots(samples::key_slots(), samples::store_id());
  KeySlots back;
  for (std::size_t n = 41; n < good.size(); ++n) {
    EXPECT_NE(
        slots_problem(sealed({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}), back),
        nullptr)
        << n;
  }
  Bytes longer = good;
  longer.insert(longer.end() - 8, std::byte{});
  EXPECT_NE(slots_problem(sealed(longer), back), nullptr);
}

// Everything in the slot but the wrapped key itself, and the superblock.
TEST(KeySlots, AreAuthenticatedWithTheirContext) {
  const Bytes superblock = encode_superblock(samples::superblock());
  for (const StoredKeySlot& slot : samples::key_slots().slots) {
    const Bytes context = key_slot_context(slot, superblock);
    StoredKeySlot other = slot;
    other.wrapped.fill(std::byte{0x45});
    EXPECT_EQ(key_slot_context(other, superblock), context);
    other.label += "x";
    EXPECT_NE(key_slot_context(other, superblock), context);
    EXPECT_TRUE(std::equal(superblock.begin(), superblock.end(), context.begin()));
  }
}

}  // namespace
}  // namespace vellum::format
