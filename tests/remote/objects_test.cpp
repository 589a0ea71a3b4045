// Heads, lists, piece indices and remotes' files: round trips, and forged bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "format/samples.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"
#include "remote/objects/lock_note.hpp"
#include "remote/objects/name_table.hpp"
#include "remote/objects/object_key.hpp"
#include "remote/remote_samples.hpp"

namespace vellum::remote {
namespace {

using format::samples::Bytes;
using format::samples::store_id;
using namespace samples;

struct Structure {
  const char* name;
  Bytes sample;
  // nullptr: the bytes are accepted; then they encode to the same bytes again.
  std::function<const char*(const Bytes& bytes, Bytes& again)> decode;
};

std::vector<Structure> structures(const format::FileSeal& seal = store_id()) {
  return {
      {"head", encode_head(sample_head(), seal),
       [seal](const Bytes& bytes, Bytes& again) {
         Head out;
         const char* problem = decode_head(bytes, seal, out);
         if (problem == nullptr) again = encode_head(out, seal);
         return problem;
       }},
      {"head with objects", encode_head(sample_head_with_objects(), seal),
       [seal](const Bytes& bytes, Bytes& again) {
         Head out;
         const char* problem = decode_head(bytes, seal, out);
         if (problem == nullptr) again = encode_head(out, seal);
         return problem;
       }},
      {"table with objects", encode_name_table(sample_head_with_objects().versions, 2, seal),
       [seal](const Bytes& bytes, Bytes& again) {
         std::vector<RemoteVersion> out;
         const char* problem = decode_name_table(bytes, seal, out);
         if (problem == nullptr) again = encode_name_table(out, UINT32_MAX, seal);
         return problem;
       }},
      {"table", encode_name_table(sample_head().versions, 2, seal),
       [seal](const Bytes& bytes, Bytes& again) {
         std::vector<RemoteVersion> out;
         const char* problem = decode_name_table(bytes, seal, out);
         if (problem == nullptr) again = encode_name_table(out, UINT32_MAX, seal);
         return problem;
       }},
      {"list", encode_piece_list(sample_list(), seal),
       [seal](const Bytes& bytes, Bytes& again) {
         VersionPieces out;
         const char* problem = decode_piece_list(bytes, seal, out);
         if (problem == nullptr) again = encode_piece_list(out, seal);
         return problem;
       }},
      {"list on a base", encode_list_on_base(sample_list_on_base(), sample_base(), seal),
       [seal](const Bytes& bytes, Bytes& again) {
         VersionPieces out;
         const char* problem = decode_list_on_base(bytes, seal, sample_base(), out);
         if (problem == nullptr) again = encode_list_on_base(out, sample_base(), seal);
         return problem;
       }},
      {"piece", encode_piece_index(sample_records(), seal),
       [seal](const Bytes& bytes, Bytes& again) {
         std::vector<PieceRecord> out;
         const char* problem = decode_piece_index(bytes, seal, out);
         if (problem == nullptr) again = encode_piece_index(out, seal);
         return problem;
       }},
      {"hold", encode_hold(sample_hold(), seal),
       [seal](const Bytes& bytes, Bytes& again) {
         Hold out;
         const char* problem = decode_hold(bytes, seal, out);
         if (problem == nullptr) again = encode_hold(out, seal);
         return problem;
       }},
      {"duration of locks", encode_lock_note(std::chrono::hours(720), seal),
       [seal](const Bytes& bytes, Bytes& again) {
         std::chrono::seconds out{0};
         const char* problem = decode_lock_note(bytes, seal, out);
         if (problem == nullptr) again = encode_lock_note(out, seal);
         return problem;
       }},
      {"file", encode_remote_file(sample_file(), seal),
       [seal](const Bytes& bytes, Bytes& again) {
         RemoteFile out;
         const char* problem = decode_remote_file(bytes, seal, out);
         if (problem == nullptr) again = encode_remote_file(out, seal);
         return problem;
       }},
  };
}

TEST(RemoteObjects, RoundTrips) {
  Head head;
  ASSERT_EQ(decode_head(encode_head(sample_head(), store_id()), store_id(), head), nullptr);
  EXPECT_EQ(head, sample_head());
  EXPECT_EQ(head.find("night"), &head.versions[1]);
  EXPECT_EQ(head.find("nigh"), nullptr);
  std::vector<PieceRecord> records;
  ASSERT_EQ(
      decode_piece_index(encode_piece_index(sample_records(), store_id()), store_id(), records),
      nullptr);
  EXPECT_EQ(records, sample_records());
  VersionPieces list;
  ASSERT_EQ(decode_piece_list(encode_piece_list(sample_list(), store_id()), store_id(), list),
            nullptr);
  EXPECT_EQ(list, sample_list());
  Hold hold;
  ASSERT_EQ(decode_hold(encode_hold(sample_hold(), store_id()), store_id(), hold), nullptr);
  EXPECT_EQ(hold, sample_hold());
  RemoteFile file;
  ASSERT_EQ(decode_remote_file(encode_remote_file(sample_file(), store_id()), store_id(), file),
            nullptr);
  EXPECT_EQ(file, sample_file());
}

TEST(RemoteObjects, TheFileOfALockedRemoteHasItsDuration) {
  RemoteFile sample = sample_file(), file;
  sample.lock = {std::chrono::hours(720), 1'700'000'000'000'000'000};
  ASSERT_EQ(decode_remote_file(encode_remote_file(sample, store_id()), store_id(), file), nullptr);
  EXPECT_EQ(file, sample);
  sample.objects_key = {{std::byte{1}}, Bytes(300, std::byte{7})};
  ASSERT_EQ(decode_remote_file(encode_remote_file(sample, store_id()), store_id(), file), nullptr);
  EXPECT_EQ(file, sample);
  sample.lock->duration = std::chrono::seconds(0);
  EXPECT_STREQ(decode_remote_file(encode_remote_file(sample, store_id()), store_id(), file),
               "malformed");
  sample.lock->duration = kMaxLock + std::chrono::seconds(1);
  EXPECT_STREQ(decode_remote_file(encode_remote_file(sample, store_id()), store_id(), file),
               "malformed");
}

TEST(RemoteObjects, TheFileOfARemoteThatIsEncryptedByObjectsHasItsKey) {
  RemoteFile sample = sample_file(), file;
  sample.objects_key = {{std::byte{1}, std::byte{2}}, Bytes(300, std::byte{7})};
  const auto bytes = encode_remote_file(sample, store_id());
  ASSERT_EQ(decode_remote_file(bytes, store_id(), file), nullptr);
  EXPECT_EQ(file, sample);
  sample.objects_key->slots.assign(format::kMaxKeySlotsBytes, std::byte{7});
  ASSERT_EQ(decode_remote_file(encode_remote_file(sample, store_id()), store_id(), file), nullptr);
  EXPECT_EQ(file, sample);
}

// In an encrypted remote: all but the frame, and the start of a head, is authenticated.
TEST(RemoteObjects, SealedOnesOpenWithTheirKeyAndOnlyAsTheyWere) {
  const base::StoreKeys keys(base::Secret::random(base::kKeyBytes)),
      others(base::Secret::random(base::kKeyBytes));
  const auto plain = structures(), with_keys = structures({store_id(), &keys}),
             again_sealed = structures({store_id(), &keys}),
             with_others = structures({store_id(), &others});
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const Bytes& sample = with_keys[i].sample;
    const std::string name = plain[i].name;
    Bytes again;
    ASSERT_EQ(with_keys[i].decode(sample, again), nullptr) << name;
    const bool has_own_nonce =
        name.starts_with("head") || name == "hold" || name == "file" || name == "duration of locks";
    EXPECT_EQ(again_sealed[i].sample == sample, !has_own_nonce) << name;
    EXPECT_STREQ(plain[i].decode(sample, again), "an encrypted file in a plain store");
    EXPECT_STREQ(with_keys[i].decode(plain[i].sample, again), "a plain file in an encrypted store");
    EXPECT_NE(with_others[i].decode(sample, again), nullptr) << name;
    for (std::size_t at = format::kWholeFileHeaderBytes; at + 8 < sample.size(); ++at) {
      Bytes forged = sample;
      forged[at] ^= std::byte{1};
      ASSERT_NE(with_keys[i].decode(format::samples::sealed(forged), again), nullptr)
          << name << " at " << at;
    }
  }
}

TEST(RemoteObjects, ThePlainStartOfASealedHeadIsItsId) {
  const base::StoreKeys keys(base::Secret::random(base::kKeyBytes));
  const Bytes bytes = encode_head(sample_head(), {store_id(), &keys});
  EXPECT_EQ(head_id_at_start(std::span(bytes).first(kHeadStartBytes)), sample_head().id());
}

TEST(RemoteObjects, TheFileOfAnOlderVellumIsRead) {
  const RemoteFile sample = sample_file();
  std::vector<std::byte> body;
  format::ByteWriter w(body);
  w.string(sample.url);
  w.bytes(sample.writer);
  w.varint(1);
  sample.replicated.write(w);
  w.varint(sample.branches.size());
  RemoteFile expected = sample;
  expected.head_number = 0;
  expected.head_hash = {};
  for (SeenBranch& branch : expected.branches) {
    branch.epoch = 0;
    w.string(branch.name);
    for (const WriteId* id : {&branch.seen, &branch.intended, &branch.pulling}) w.bytes(*id);
    w.u64(branch.branch_id);
    w.u64(branch.sequence);
    w.u64(static_cast<std::uint64_t>(branch.time_ns));
  }
  const auto bytes = format::encode_whole_file({"VLMRMOT\n", 1u << 20, "", ""}, body, store_id());
  RemoteFile out;
  ASSERT_EQ(decode_remote_file(bytes, store_id(), out), nullptr);
  EXPECT_EQ(out, expected);
}

// A reader needs at most 256 times the memory of its input, so these are not compressed.
TEST(RemoteObjects, NamesThatCompressTooWellAreStoredUncompressed) {
  RemoteVersion name = sample_head().versions[1];
  name.ref.version.runs.assign(250, name.ref.version.runs[0]);
  std::vector<RemoteVersion> names;
  for (int i = 0; i < 1000; ++i) {
    name.ref.name = fmt::format("n{:04}", i);
    names.push_back(name);
  }
  const auto bytes = encode_name_table(names, 2, store_id());
  EXPECT_GT(bytes.size(), 1'000'000u) << "they compress less than expected";
  std::vector<RemoteVersion> again;
  ASSERT_EQ(decode_name_table(bytes, store_id(), again), nullptr);
  EXPECT_EQ(again, names);
}

TEST(RemoteObjects, EveryFlippedBitAndEveryCutIsDetected) {
  for (const Structure& s : structures()) {
    Bytes again;
    ASSERT_EQ(s.decode(s.sample, again), nullptr) << s.name;
    for (std::size_t bit = 0; bit < 8 * s.sample.size(); ++bit) {
      Bytes bad = s.sample;
      bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      EXPECT_NE(s.decode(bad, again), nullptr) << s.name << " bit " << bit;
    }
    for (std::size_t size = 0; size < s.sample.size(); ++size) {
      EXPECT_NE(
          s.decode(Bytes(s.sample.begin(), s.sample.begin() + static_cast<std::ptrdiff_t>(size)),
                   again),
          nullptr)
          << s.name << " of " << size;
    }
  }
}

// With a correct length and checksum. Accepted bytes have exactly one meaning.
TEST(RemoteObjects, ForgedBytesAreRefusedOrMeanWhatTheySay) {
  std::mt19937_64 random(4);
  for (const Structure& s : structures()) {
    std::size_t accepted = 0;
    for (int i = 0; i < 20'000; ++i) {
      Bytes bad = s.sample;
      for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
        const std::size_t at = 32 + random() % (bad.size() - 40);
        const std::uint64_t how = random() % 4;
        if (how == 0) bad[at] = static_cast<std::byte>(random());
        if (how == 1) bad[at] = std::byte{0xff};
        if (how == 2 && bad.size() > 48) bad.erase(bad.begin() + static_cast<std::ptrdiff_t>(at));
        if (how == 3)
          bad.insert(bad.begin() + static_cast<std::ptrdiff_t>(at),
                     static_cast<std::byte>(random()));
      }
      bad = format::samples::sealed(std::move(bad));
      Bytes again;
      if (s.decode(bad, again) != nullptr) continue;
      ++accepted;
      Bytes third;
      EXPECT_EQ(s.decode(again, third), nullptr) << s.name;
      EXPECT_EQ(again, third) << s.name;
    }
    EXPECT_LT(accepted, 19'000u) << s.name;
  }
}

TEST(RemoteObjects, ObjectsFollowTheFrameOfAHead) {
  const base::StoreKeys keys(base::Secret::random(base::kKeyBytes));
  for (const format::FileSeal& seal :
       {format::FileSeal(store_id()), format::FileSeal(store_id(), &keys)}) {
    const Bytes objects(5000, std::byte{7});
    Head head = sample_head_with_objects();
    auto& embedded = head.versions[0].embedded;
    embedded = {{6, 66, 640, 300, 5}, {7, 77, 0, 904, 6}, {7, 77, 904, 4096, 7}};
    const Bytes bytes = encode_head_with(head, objects, seal);
    const std::uint64_t at = embedded[1].offset_bytes;
    EXPECT_EQ(embedded[2].offset_bytes, at + 904);
    EXPECT_EQ(embedded[0].offset_bytes, 640u);
    ASSERT_EQ(bytes.size(), at + objects.size());
    EXPECT_TRUE(std::ranges::equal(std::span(bytes).subspan(at), objects));
    Head again;
    ASSERT_EQ(decode_head(bytes, seal, again), nullptr);
    EXPECT_EQ(again, head);
    EXPECT_EQ(decode_head(frame_of_head(bytes), seal, again), nullptr);
    // Without the name's table nothing may follow.
    Bytes plain = encode_head(sample_head(), seal);
    plain.resize(plain.size() + 64);
    EXPECT_NE(decode_head(plain, seal, again), nullptr);
    head.versions[0].embedded.back().head = head.number + 1;
    EXPECT_STREQ(decode_head(encode_head(head, seal), seal, again), "malformed");
    // No more than a push ever has: each costs a reader memory.
    for (const std::size_t more : {0u, 1u}) {
      embedded.clear();
      for (std::size_t i = 0; i < kMaxEmbeddedObjects + more; ++i) {
        embedded.push_back({6, 66, 640 + i, 1, 5});
      }
      EXPECT_EQ(decode_head(encode_head(head, seal), seal, again) == nullptr, more == 0);
    }
  }
}

TEST(RemoteObjects, AHeadOfAnOlderVellumHasNoWitness) {
  Head head, expected = sample_head();
  expected.is_witness = false;
  expected.earlier_witness = {};
  const Bytes old = as_old_head(encode_head(sample_head(), store_id()));
  ASSERT_EQ(decode_head(old, store_id(), head), nullptr);
  EXPECT_EQ(head, expected);
  EXPECT_EQ(head_id_at_start(std::span(old).first(kHeadStartBytes)), expected.id());
}

TEST(RemoteObjects, AnotherStoresAndNewerOnesAreNamed) {
  format::Uuid other = store_id();
  other[0] ^= std::byte{1};
  Head head;
  EXPECT_STREQ(decode_head(encode_head(sample_head(), store_id()), other, head),
               "belongs to another store");
  Bytes newer = encode_head(sample_head(), store_id());
  newer[10] = std::byte{3};
  EXPECT_STREQ(decode_head(format::samples::sealed(newer), store_id(), head),
               "written by a newer format");
}

TEST(RemoteObjects, KeysParseToTheirNames) {
  const ContentName name{0xabc, filled<32>(0x5f)};
  EXPECT_EQ(parse_content_key(piece_key(name), kPiecePrefix), name);
  EXPECT_EQ(parse_content_key(list_key(name), kListPrefix), name);
  EXPECT_EQ(parse_content_key(list_key(name), kPiecePrefix), std::nullopt);
  for (const std::uint64_t number : {std::uint64_t{1}, std::uint64_t{77}, UINT64_MAX}) {
    EXPECT_EQ(parse_head_key(head_key(number)), number);
  }
  EXPECT_LT(head_key(2), head_key(1));
  for (std::string bad : {"", "heads/", "heads/0", "heads/fffffffffffffffg",
                          "heads/FFFFFFFFFFFFFFFF", "heads/00000000000000001"}) {
    EXPECT_EQ(parse_head_key(bad), std::nullopt) << bad;
  }
  std::string bad = piece_key(name);
  bad[bad.size() - 1] = 'g';
  EXPECT_EQ(parse_content_key(bad, kPiecePrefix), std::nullopt);
  EXPECT_EQ(parse_content_key(piece_key(name) + "0", kPiecePrefix), std::nullopt);
}

}  // namespace
}  // namespace vellum::remote
