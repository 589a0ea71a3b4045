// The list of tiers and the tier id in a directory.
#include "format/tiers.hpp"

#include <gtest/gtest.h>

#include "format/wire/checks.hpp"
#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;

const char* problem(const Bytes& bytes) {
  Tiers out;
  const char* text = decode_tiers(bytes, samples::store_id(), out);
  return text == nullptr ? "" : text;
}

Bytes sealed_tiers(Bytes body) {
  append_checksum(body, samples::seed());
  return body;
}

TEST(Tiers, RoundTrip) {
  Tiers back;
  ASSERT_EQ(
      decode_tiers(encode_tiers(samples::tiers(), samples::store_id()), samples::store_id(), back),
      nullptr);
  EXPECT_EQ(back, samples::tiers());
  ASSERT_EQ(decode_tiers(encode_tiers({}, samples::store_id()), samples::store_id(), back),
            nullptr);
  EXPECT_EQ(back, Tiers());
}

TEST(Tiers, SaysWhatIsWrong) {
  const Bytes good = encode_tiers(samples::tiers(), samples::store_id());
  EXPECT_STREQ(problem(good), "");
  EXPECT_STREQ(problem({}), "not a list of tiers");
  EXPECT_STREQ(problem(Bytes(kMaxTiersBytes + 1)), "larger than any list of tiers");
  Bytes bad = good;
  bad[8] = std::byte{9};
  EXPECT_STREQ(problem(samples::sealed(bad)), "written by a newer format");
  bad = good;
  bad.back() ^= std::byte{1};
  EXPECT_STREQ(problem(bad), "checksum mismatch");
  bad = good;
  bad.pop_back();
  EXPECT_STREQ(problem(bad), "truncated");
  Uuid other = samples::store_id();
  other[0] ^= std::byte{1};
  EXPECT_STREQ(problem(encode_tiers(samples::tiers(), other)), "belongs to another store");
  // Flips every bit under the checksum.
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_STRNE(problem(bad), "") << bit;
  }
}

// Content that Vellum never writes, with a right checksum.
TEST(Tiers, Forged) {
  const auto with = [&](auto change) {
    Tiers t = samples::tiers();
    change(t.directories[0]);
    return encode_tiers(t, samples::store_id());
  };
  EXPECT_STREQ(problem(with([](TierDirectory& d) { d.path = "relative"; })), "malformed directory");
  EXPECT_STREQ(problem(with([](TierDirectory& d) { d.path = ""; })), "malformed directory");
  EXPECT_STREQ(problem(with([](TierDirectory& d) { d.path = "/a/"; })), "malformed directory");
  EXPECT_STREQ(problem(with([](TierDirectory& d) { d.path = std::string("/a\0b", 4); })),
               "malformed directory");
  EXPECT_STREQ(problem(with([](TierDirectory& d) { d.kind = static_cast<TierKind>(3); })),
               "malformed directory");
  EXPECT_STREQ(problem(with([](TierDirectory& d) { d.path = "/nvme"; })), "malformed");
  EXPECT_STREQ(problem(with([](TierDirectory& d) { d.id.fill(std::byte{0x22}); })), "malformed");
  Bytes body = encode_tiers(samples::tiers(), samples::store_id());
  body.resize(body.size() - 8);
  const std::size_t length = body.size();
  for (std::size_t i = 0; i < length; ++i) {
    for (const auto value : {std::byte{0}, std::byte{0xff}, std::byte{0x80}, std::byte{17}}) {
      Bytes bad = body;
      bad[i] = value;
      Tiers out, again;
      const Bytes bytes = sealed_tiers(bad);
      if (decode_tiers(bytes, samples::store_id(), out) != nullptr) continue;
      ASSERT_EQ(decode_tiers(encode_tiers(out, samples::store_id()), samples::store_id(), again),
                nullptr);
      ASSERT_EQ(out, again);
    }
  }
}

TEST(TierId, RoundTripAndDamage) {
  const TierId id{
      TierKind::cache, samples::tiers().directories[1].id, {"/data/s", 4711, -5'000'000'000}};
  const Bytes good = encode_tier_id(id, samples::store_id());
  ASSERT_EQ(good.size(), kTierIdHeaderBytes + 1 + id.owner.home.size() + 8);
  TierId back;
  ASSERT_EQ(decode_tier_id(good, samples::store_id(), back), nullptr);
  EXPECT_EQ(back, id);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_NE(decode_tier_id(bad, samples::store_id(), back), nullptr) << bit;
  }
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_NE(decode_tier_id({good.data(), n}, samples::store_id(), back), nullptr);
  }
  Uuid other = samples::store_id();
  other[0] ^= std::byte{1};
  EXPECT_STREQ(decode_tier_id(good, other, back), "belongs to another store");
}

TEST(TierId, ItsOwnerIsTheStoreOfThatPathInodeAndBirth) {
  const TierOwner owner{"/data/s", 4711, 99};
  EXPECT_TRUE(owner.is(owner));
  EXPECT_FALSE(owner.is({"/data/t", 4711, 99}));
  EXPECT_FALSE(owner.is({"/data/s", 4712, 99}));
  EXPECT_FALSE(owner.is({"/data/s", 4711, 100}));
  EXPECT_TRUE(owner.is({"/data/s", 4711, 0}));  // a file system without birth times
  EXPECT_TRUE((TierOwner{"/data/s", 4711, 0}.is(owner)));
}

}  // namespace
}  // namespace vellum::format
