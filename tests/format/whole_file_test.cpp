// Rules for each file that is written once and replaced as a whole: content that Vellum did not
// write for this store is refused.
#include "format/wire/whole_file.hpp"

#include <gtest/gtest.h>

#include "format/image_state.hpp"
#include "format/samples.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;

// One kind of file: a sample, and its two functions.
template <typename Content_>
struct Kind;
template <>
struct Kind<WorkingSet> {
  static WorkingSet sample() { return samples::working_set(); }
  static constexpr auto encode = encode_working_set;
  static constexpr auto decode = decode_working_set;
};
template <>
struct Kind<SpaceNote> {
  static SpaceNote sample() { return samples::space_note(); }
  static constexpr auto encode = encode_space_note;
  static constexpr auto decode = decode_space_note;
};
template <>
struct Kind<NewestSnapshots> {
  static NewestSnapshots sample() { return samples::newest_snapshots(); }
  static constexpr auto encode = encode_newest_snapshots;
  static constexpr auto decode = decode_newest_snapshots;
};
template <>
struct Kind<GcCensus> {
  static GcCensus sample() { return samples::gc_census(); }
  static constexpr auto encode = encode_gc_census;
  static constexpr auto decode = decode_gc_census;
};
template <>
struct Kind<Tiers> {
  static Tiers sample() { return samples::tiers(); }
  static constexpr auto encode = encode_tiers;
  static constexpr auto decode = decode_tiers;
};
template <>
struct Kind<ImageState> {
  static ImageState sample() {
    ImageState state;
    state.branch_id = 0x1234;
    state.in_use = true;
    state.size_bytes = 12'345;
    state.path = "/somewhere/a file";
    return state;
  }
  static constexpr auto encode = encode_image_state;
  static constexpr auto decode = decode_image_state;
};

template <typename Content>
class WholeFile : public testing::Test {
 protected:
  static Bytes encoded() { return Kind<Content>::encode(Kind<Content>::sample(), store()); }
  static Uuid store() { return samples::store_id(); }
  // nullptr: accepted.
  const char* problem(const Bytes& bytes, const Uuid& of = store()) {
    return Kind<Content>::decode(bytes, of, back_);
  }

  Content back_{};
};

using Contents =
    testing::Types<WorkingSet, SpaceNote, NewestSnapshots, GcCensus, Tiers, ImageState>;
TYPED_TEST_SUITE(WholeFile, Contents);

TYPED_TEST(WholeFile, ComesBack) {
  ASSERT_EQ(this->problem(this->encoded()), nullptr);
  EXPECT_EQ(this->back_, Kind<TypeParam>::sample());
}

TYPED_TEST(WholeFile, EveryTruncationAndATailAreRefused) {
  Bytes bytes = this->encoded();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_NE(this->problem({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)}),
              nullptr)
        << n;
  }
  bytes.push_back(std::byte{0});
  EXPECT_NE(this->problem(bytes), nullptr);
  EXPECT_EQ(this->back_, TypeParam{}) << "nothing of the refused content";
}

TYPED_TEST(WholeFile, FlippedBitsAreFound) {
  Bytes bytes = this->encoded();
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_NE(this->problem(bytes), nullptr) << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
}

TYPED_TEST(WholeFile, AnotherStoresAndANewerFormatsAreRefused) {
  EXPECT_STREQ(this->problem(this->encoded(), Uuid{}), "belongs to another store");
  Bytes newer = this->encoded();
  newer[8] = std::byte{2};
  EXPECT_STREQ(this->problem(samples::sealed(newer)), "written by a newer format");
}

}  // namespace
}  // namespace vellum::format
