// The objects of an encrypted remote of a plain store: what is changed, cut, exchanged or put back is
// refused, and names tell nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"
#include "remote/engine/directory_engine.hpp"
#include "remote/failing_objects.hpp"
#include "remote/objects/object_key.hpp"
#include "remote/seal/remote_superblock.hpp"
#include "remote/seal/sealed_object.hpp"
#include "remote/seal/sealed_objects.hpp"

namespace vellum::remote::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes noise(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes out(bytes);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

std::shared_ptr<const base::ObjectKeys> keys_of(char content) {
  return std::make_shared<const base::ObjectKeys>(
      base::Secret(Bytes(base::kKeyBytes, static_cast<std::byte>(content))));
}

std::string key_of(const Bytes& bytes, std::uint32_t generation = 1) {
  return piece_key({generation, base::sha256(bytes)});
}

Bytes part_of(const Bytes& bytes, const ObjectRange& range) {
  const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(range.offset_bytes);
  return {from, from + static_cast<std::ptrdiff_t>(range.length_bytes)};
}

constexpr std::size_t kChunk = kSealedChunkBytes, kTag = base::kAuthenticatorBytes;
// Around the ends of chunks.
const std::size_t kSizes[] = {0,      1,          100,        kChunk - 1,
                              kChunk, kChunk + 1, 3 * kChunk, 3 * kChunk + 5};

class SealedObjectsTest : public testing::Test {
 protected:
  std::shared_ptr<ObjectStore> with(char key) const {
    return open_sealed_objects(raw, {keys_of(key), {}});
  }
  std::string sealed_name(const std::string& key) const { return sealed_key(*keys_of('k'), key); }
  Bytes sealed(const std::string& key) const { return raw->get(sealed_name(key), UINT32_MAX); }
  // Whether the object is refused as a whole, and wherever a part of it is.
  void expect_refused(const std::string& key, const Bytes& content) const {
    const auto there = with('k');
    EXPECT_ERRC(there->get(key, UINT32_MAX), Errc::corrupted);
    for (std::size_t at = 0; at < content.size(); at += kChunk / 2) {
      const ObjectRange range{at, std::min<std::size_t>(20, content.size() - at)};
      try {
        EXPECT_EQ(there->get_range(key, range), part_of(content, range));
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::corrupted) << e.what();
        // The store below names it as in the bucket.
        EXPECT_THAT(e.what(),
                    testing::AnyOf(testing::HasSubstr(key), testing::HasSubstr(sealed_name(key))));
      }
    }
  }

  vellum::test::TempDirectory dir;
  const std::shared_ptr<ObjectStore> raw =
      std::make_shared<DirectoryEngine>(base::posix_fs(), dir / "r");
};

TEST_F(SealedObjectsTest, EachSizeComesBackWholeAndInParts) {
  const auto there = with('k');
  for (const std::size_t size : kSizes) {
    const Bytes content = noise(size, size);
    const std::string key = key_of(content);
    EXPECT_TRUE(there->put_if_absent(key, content));
    EXPECT_FALSE(there->put_if_absent(key, content));
    EXPECT_EQ(there->get(key, size), content);
    EXPECT_EQ(sealed(key).size(), sealed_bytes(size));
    EXPECT_EQ(opened_bytes(sealed_bytes(size)), size);
    if (size != 0) {
      EXPECT_ERRC(there->get(key, size - 1), Errc::corrupted);
    }
    EXPECT_EQ(there->get_start(key, 200), part_of(content, {0, std::min<std::size_t>(200, size)}));
    EXPECT_ERRC(there->get_range(key, {0, size + 1}), Errc::corrupted);
    EXPECT_ERRC(with('k')->get_range(key, {size, 1}), Errc::corrupted);
    std::mt19937_64 random(size);
    for (int i = 0; i < 50 && size != 0; ++i) {
      ObjectRange range{random() % size, 0};
      range.length_bytes = 1 + random() % (size - range.offset_bytes);
      EXPECT_EQ(there->get_range(key, range), part_of(content, range));
      EXPECT_EQ(with('k')->get_range(key, range), part_of(content, range))
          << "with no known header";
    }
  }
}

TEST_F(SealedObjectsTest, ASizeThatNoSealedObjectHasIsZero) {
  std::set<std::uint64_t> sizes;
  for (std::uint64_t size = 0; size < 2 * kChunk + 3; ++size) sizes.insert(sealed_bytes(size));
  for (std::uint64_t bytes = 0; bytes < *sizes.rbegin(); ++bytes) {
    const std::uint64_t opened = opened_bytes(bytes);
    EXPECT_TRUE(sizes.contains(bytes) ? sealed_bytes(opened) == bytes : opened == 0) << bytes;
  }
  EXPECT_EQ(sealed_bytes(UINT64_MAX), UINT64_MAX);
}

// Each bit of the header and of the authenticators; some of the content.
TEST_F(SealedObjectsTest, AFlippedBitIsRefusedOrNotRead) {
  const Bytes content = noise(kChunk + 300, 1);
  const std::string key = key_of(content);
  with('k')->put(key, content);
  const Bytes good = sealed(key);
  std::set<std::size_t> places;
  for (std::size_t i = 0; i < kSealedHeaderBytes; ++i) places.insert(i);
  for (std::size_t i = 0; i < kTag; ++i) {
    places.insert({kSealedHeaderBytes + kChunk + i, good.size() - 1 - i});
  }
  for (std::size_t i = kSealedHeaderBytes; i < good.size(); i += 1009) places.insert(i);
  for (const std::size_t at : places) {
    for (const int bit : {0, 7}) {
      Bytes bad = good;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      raw->put(sealed_name(key), bad);
      expect_refused(key, content);
      ASSERT_FALSE(HasFailure()) << "bit " << bit << " of byte " << at;
    }
  }
}

TEST_F(SealedObjectsTest, AnObjectThatWasCutOrLengthenedIsRefused) {
  const Bytes content = noise(3 * kChunk, 2);
  const std::string key = key_of(content);
  with('k')->put(key, content);
  const Bytes good = sealed(key);
  for (std::size_t size = 0; size < good.size(); size += size < 200 ? 1 : 997) {
    raw->put(sealed_name(key), part_of(good, {0, size}));
    expect_refused(key, content);
  }
  // At the end of a chunk.
  const std::size_t two = kSealedHeaderBytes + 2 * (kChunk + kTag);
  raw->put(sealed_name(key), part_of(good, {0, two}));
  expect_refused(key, content);
  // With a header that says so.
  Bytes lied = part_of(good, {0, two});
  const std::uint64_t size = 2 * kChunk;
  std::memcpy(lied.data() + 16, &size, sizeof size);
  raw->put(sealed_name(key), lied);
  expect_refused(key, content);
  Bytes longer = good;
  longer.push_back(std::byte{0});
  raw->put(sealed_name(key), longer);
  expect_refused(key, content);
}

// Its size alone would tell the reader that there is nothing.
TEST_F(SealedObjectsTest, AForgedEmptyObjectIsRefused) {
  const auto there = with('k');
  there->put("heads/1", {});
  there->put("heads/2", noise(100, 1));
  EXPECT_TRUE(there->get_start("heads/1", 28).empty());
  const Bytes empty = sealed("heads/1");
  raw->put("heads/2", empty);  // of another object
  EXPECT_ERRC(there->get_start("heads/2", 28), Errc::corrupted);
  Bytes cut = empty;
  cut.resize(kSealedHeaderBytes);
  raw->put("heads/1", cut);
  EXPECT_ERRC(there->get_start("heads/1", 28), Errc::corrupted);
}

// The limit of each call that reads from the start.
class LimitsSeen final : public ObjectsInFront {
 public:
  using ObjectsInFront::ObjectsInFront;
  std::vector<std::byte> get(const std::string& key, std::uint64_t limit) override {
    most = std::max(most, limit);
    return ObjectsInFront::get(key, limit);
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t limit) override {
    most = std::max(most, limit);
    return ObjectsInFront::get_start(key, limit);
  }
  std::uint64_t most = 0;

 private:
  Fate fate() override { return Fate::works; }
};

TEST_F(SealedObjectsTest, EachReadHasALimit) {
  const auto seen = std::make_shared<LimitsSeen>(raw);
  const auto there = open_sealed_objects(seen, {keys_of('k'), {}});
  const Bytes content = noise(100, 1);
  there->put("heads/1", content);
  for (const std::uint64_t limit : {kMaxSealableBytes, kMaxSealableBytes + 1, UINT64_MAX}) {
    EXPECT_EQ(there->get("heads/1", limit), content);
    EXPECT_EQ(there->get_start("heads/1", limit), content);
  }
  EXPECT_EQ(seen->most, sealed_bytes(kMaxSealableBytes));
}

TEST_F(SealedObjectsTest, ExchangedObjectsAndChunksAreRefused) {
  const Bytes a = noise(3 * kChunk, 3), b = noise(3 * kChunk, 4);
  const auto there = with('k');
  there->put(key_of(a), a);
  there->put(key_of(b), b);
  const Bytes sealed_a = sealed(key_of(a)), sealed_b = sealed(key_of(b));
  raw->put(sealed_name(key_of(a)), sealed_b);
  expect_refused(key_of(a), a);
  const auto with_chunk = [&](Bytes to, std::size_t at, const Bytes& from, std::size_t chunk) {
    const auto place = [](std::size_t n) {
      return static_cast<std::ptrdiff_t>(kSealedHeaderBytes + n * (kChunk + kTag));
    };
    std::copy(from.begin() + place(chunk), from.begin() + place(chunk + 1), to.begin() + place(at));
    return to;
  };
  raw->put(sealed_name(key_of(a)), with_chunk(sealed_a, 1, sealed_b, 1));
  expect_refused(key_of(a), a);
  raw->put(sealed_name(key_of(a)), with_chunk(sealed_a, 0, sealed_a, 2));
  expect_refused(key_of(a), a);
  // Under the name of another generation, and as an object without a hash in its name.
  raw->put(sealed_name(key_of(a, 2)), sealed_a);
  EXPECT_ERRC(with('k')->get(key_of(a, 2), UINT32_MAX), Errc::corrupted);
  raw->put("heads/1", sealed_a);
  EXPECT_ERRC(with('k')->get("heads/1", UINT32_MAX), Errc::corrupted);
}

// Chunks of two contents of one object do not mix: each has a salt of its own.
TEST_F(SealedObjectsTest, ChunksOfAnEarlierContentAreRefused) {
  const std::string key = "newest/head";
  const Bytes old_content = noise(2 * kChunk, 5), content = noise(2 * kChunk, 6);
  with('k')->put(key, old_content);
  const Bytes earlier = sealed(key);
  with('k')->put(key, content);
  Bytes mixed = sealed(key);
  std::copy(earlier.begin() + static_cast<std::ptrdiff_t>(kSealedHeaderBytes + kChunk + kTag),
            earlier.end(),
            mixed.begin() + static_cast<std::ptrdiff_t>(kSealedHeaderBytes + kChunk + kTag));
  raw->put(key, mixed);
  expect_refused(key, content);
  // The whole one opens: an object that may be replaced states itself what it is.
  raw->put(key, earlier);
  EXPECT_EQ(with('k')->get(key, UINT32_MAX), old_content);
}

TEST_F(SealedObjectsTest, ALaterCopyOfTheSameObjectIsReadInParts) {
  const Bytes content = noise(4 * kChunk, 7);
  const std::string key = key_of(content);
  const auto there = with('k');
  there->put(key, content);
  const ObjectRange range{3 * kChunk, 100};
  EXPECT_EQ(there->get_range(key, range), part_of(content, range));
  with('k')->put(key, content);  // another program, with another salt
  EXPECT_EQ(there->get_range(key, range), part_of(content, range));
}

TEST_F(SealedObjectsTest, APlainObjectAndOneOfAnotherKeyAreRefused) {
  const Bytes content = noise(60, 8);
  const std::string key = key_of(content);
  with('k')->put(key, content);
  EXPECT_ERRC(with('x')->get(key, UINT32_MAX), Errc::not_found);  // it has another name
  raw->put(sealed_name(key), seal_object(*keys_of('x'), key, content));
  expect_refused(key, content);
  raw->put(sealed_name(key), content);
  expect_refused(key, content);
  EXPECT_THAT(with('k')->list("", 10), testing::ElementsAre(ObjectInfo{key, 0}));
}

TEST_F(SealedObjectsTest, NamesShowNoHashAndAreListedInOrder) {
  const auto there = with('k');
  std::vector<ObjectInfo> expected{{"heads/00000000000000ff", 5}, {"store/vellum.store", 3}};
  there->put("heads/00000000000000ff", noise(5, 1));
  there->put("store/vellum.store", noise(3, 1));
  EXPECT_EQ(raw->get("store/vellum.store", 3), noise(3, 1)) << "it is clear";
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Bytes content = noise(10 + i, i);
    const ContentName name{static_cast<std::uint32_t>(i % 3), base::sha256(content)};
    const std::string key = i % 2 == 0 ? piece_key(name) : list_key(name);
    there->put_if_absent(key, content);
    expected.push_back({key, content.size()});
    for (const ObjectInfo& object : raw->list("", SIZE_MAX)) {
      EXPECT_EQ(object.key.find(base::hex(name.hash).substr(0, 16)), std::string::npos);
    }
  }
  std::ranges::sort(expected, {}, &ObjectInfo::key);
  EXPECT_EQ(there->list("", SIZE_MAX), expected);
  const auto listed = [&](const std::string& prefix, std::size_t most) {
    std::vector<ObjectInfo> out;
    std::ranges::copy_if(expected, std::back_inserter(out),
                         [&](const ObjectInfo& object) { return object.key.starts_with(prefix); });
    out.resize(std::min(most, out.size()));
    EXPECT_EQ(there->list(prefix, most), out) << prefix;
    return out.size();
  };
  EXPECT_EQ(listed("pieces/", SIZE_MAX), 20u);
  EXPECT_EQ(listed("pieces/", 7), 7u);
  EXPECT_GT(listed("lists/00000001-", SIZE_MAX), 0u);
  EXPECT_EQ(listed(expected[5].key.substr(0, 30), SIZE_MAX), 1u);
  EXPECT_EQ(listed("heads/", 1), 1u);
  EXPECT_EQ(listed("p", 3), 3u);
  // A name of another key, and one that was changed, are none of this remote.
  raw->put(sealed_key(*keys_of('x'),
                      expected.back().key.starts_with("store") ? expected[9].key : expected[8].key),
           noise(1, 1));
  EXPECT_EQ(there->list("", SIZE_MAX), expected);
  for (const ObjectInfo& object : expected) {
    EXPECT_EQ(opened_key(*keys_of('k'), sealed_name(object.key)), object.key);
  }
  std::vector<std::string> all;
  for (const ObjectInfo& object : expected) all.push_back(object.key);
  there->remove_all(all);
  EXPECT_EQ(there->list("", SIZE_MAX), std::vector<ObjectInfo>());
}

TEST_F(SealedObjectsTest, TheSameContentHasOneNameAndOtherBytesEachTime) {
  const Bytes content = noise(1000, 9);
  const std::string key = key_of(content);
  with('k')->put(key, content);
  const Bytes first = sealed(key);
  with('k')->put(key, content);
  EXPECT_NE(sealed(key), first);
  EXPECT_EQ(raw->list("", SIZE_MAX).size(), 1u);
  EXPECT_NE(sealed_name(key_of(content, 2)).substr(16), sealed_name(key).substr(16))
      << "the generation is part of the name that is sealed";
}

TEST_F(SealedObjectsTest, ThreadsReadAndWriteAtOnce) {
  const auto there = with('k');
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 20; ++i) {
        const Bytes content = noise(kChunk + i, i);  // all threads have the same
        const std::string key = key_of(content);
        there->put_if_absent(key, content);
        EXPECT_EQ(there->get(key, UINT32_MAX), content);
        const ObjectRange range{(t * 977 + i) % kChunk, 10};
        EXPECT_EQ(there->get_range(key, range), part_of(content, range));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(there->list("pieces/", SIZE_MAX).size(), 20u);
}

TEST(RemoteSuperblockTest, AFingerprintMakesItOneOfALaterFormat) {
  RemoteSuperblock superblock;
  superblock.store_id[3] = std::byte{7};
  EXPECT_EQ(encode_remote_superblock(superblock), format::encode_superblock(superblock));
  superblock.objects_key.emplace()[5] = std::byte{9};
  const Bytes bytes = encode_remote_superblock(superblock);
  RemoteSuperblock back;
  ASSERT_EQ(decode_remote_superblock(bytes, back), format::SuperblockStatus::ok);
  EXPECT_EQ(back, superblock);
  format::Superblock of_a_store;
  EXPECT_EQ(format::decode_superblock(bytes, of_a_store), format::SuperblockStatus::newer_format)
      << "a directory with it is no store";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    Bytes bad = bytes;
    bad[i] ^= std::byte{1};
    EXPECT_NE(decode_remote_superblock(bad, back), format::SuperblockStatus::ok) << i;
    EXPECT_NE(decode_remote_superblock(part_of(bytes, {0, i}), back), format::SuperblockStatus::ok);
  }
}

}  // namespace
}  // namespace vellum::remote::test
