// Damages valid encodings in many ways and passes them to every decoder. No decoder may crash or
// read out of bounds (the sanitizer builds detect that: every input is in a heap block of exactly
// its size), and damage under a checksum must always be detected. Deterministic: the same seed
// reproduces a failure.
#include <gtest/gtest.h>

#include <functional>

#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;

constexpr int kRounds = 4000;

Bytes damage(std::mt19937_64& random, const Bytes& good) {
  Bytes b = good;
  const auto at = [&] { return b.empty() ? 0 : random() % b.size(); };
  switch (random() % 6) {
    case 0:  // bits
      for (std::uint64_t i = 0; i < 1 + random() % 4 && !b.empty(); ++i)
        b[at()] ^= static_cast<std::byte>(1u << random() % 8);
      break;
    case 1:  // truncated
      b.resize(at());
      break;
    case 2:  // one part copied over another
      if (b.size() > 1) {
        const std::size_t from = at(), to = at();
        const std::size_t n = std::min({b.size() - from, b.size() - to, 1 + random() % 64});
        std::memmove(b.data() + to, b.data() + from, n);
      }
      break;
    case 3:  // bytes inserted
      b.insert(b.begin() + static_cast<std::ptrdiff_t>(at()), 1 + random() % 16,
               static_cast<std::byte>(random()));
      break;
    case 4:  // bytes removed
      if (!b.empty()) b.erase(b.begin() + static_cast<std::ptrdiff_t>(at()));
      break;
    default:  // a byte of extremes, which affects varints and lengths
      if (!b.empty()) b[at()] = random() % 2 == 0 ? std::byte{0xff} : std::byte{0x80};
  }
  return b;
}

// `accepts` decodes the corrupted bytes and returns whether they were accepted.
void mutate(const Bytes& good, std::uint64_t seed, const std::function<void(const Bytes&)>& check) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < kRounds; ++i) {
    Bytes bad = damage(random, good);
    if (random() % 3 == 0) bad = damage(random, bad);
    bad.shrink_to_fit();
    if (bad != good) check(bad);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Only the first `significant` bytes are under the checksum. Changes after them are no
// damage.
void always_detected(const Bytes& good, std::size_t significant,
                     const std::function<bool(const Bytes&)>& accepts) {
  ASSERT_TRUE(accepts(good));
  mutate(good, good.size(), [&](const Bytes& bad) {
    const bool intact =
        bad.size() >= significant && std::memcmp(bad.data(), good.data(), significant) == 0;
    if (!intact) {
      ASSERT_FALSE(accepts(bad));
    }
  });
}

TEST(Mutation, Superblock) {
  const Bytes good = encode_superblock(samples::superblock());
  always_detected(good, good.size(), [](const Bytes& b) {
    Superblock out;
    return decode_superblock(b, out) == SuperblockStatus::ok;
  });
}

TEST(Mutation, PackHeader) {
  const Bytes good = encode_pack_header({samples::store_id(), 5, 6});
  always_detected(good, good.size(), [](const Bytes& b) {
    PackHeader out;
    return decode_pack_header(b, out);
  });
}

TEST(Mutation, PackTrailer) {
  const Bytes good = encode_pack_trailer(5, 640, samples::seed());
  always_detected(good, good.size(), [](const Bytes& b) {
    std::uint64_t offset = 0;
    return decode_pack_trailer(b, 5, samples::seed(), offset);
  });
}

TEST(Mutation, Record) {
  RecordHeader h;
  const Bytes good = samples::record(h);
  const RecordRef ref{h.pack, h.offset_bytes, h.tag()};
  always_detected(good, kRecordHeaderBytes + 32 + h.stored_bytes, [&](const Bytes& b) {
    RecordHeader out;
    if (decode_record_header(b, out) != nullptr) return false;
    (void)record_payload(b, out).size();
    return verify_record(b, out, ref, samples::seed()) == nullptr;
  });
}

TEST(Mutation, JournalHeader) {
  const Bytes good = encode_journal_header(samples::journal_header());
  always_detected(good, good.size(), [](const Bytes& b) {
    JournalHeader out;
    return decode_journal_header(b, samples::store_id(), out) == nullptr;
  });
}

TEST(Mutation, Frame) {
  const Bytes payload = encode_commit(samples::commit_body());
  const Bytes good = encode_frame({FrameType::commit, 3, 4, 0}, payload, samples::seed());
  always_detected(good, kFrameHeaderBytes + payload.size(), [](const Bytes& b) {
    FrameHeader out;
    std::span<const std::byte> found;
    if (!decode_frame(b, samples::seed(), out, found)) return false;
    EXPECT_TRUE(found.data() >= b.data() && found.data() + found.size() <= b.data() + b.size());
    return true;
  });
}

TEST(Mutation, SnapshotRef) {
  const Bytes good = encode_snapshot_ref(samples::snapshot_ref(), samples::store_id());
  always_detected(good, good.size(), [](const Bytes& b) {
    SnapshotRef out;
    return decode_snapshot_ref(b, samples::store_id(), out) == nullptr;
  });
}

TEST(Mutation, SignedSnapshotRefAndSigners) {
  const Bytes ref = encode_snapshot_ref(samples::signed_snapshot_ref(), samples::store_id());
  always_detected(ref, ref.size(), [](const Bytes& b) {
    SnapshotRef out;
    return decode_snapshot_ref(b, samples::store_id(), out) == nullptr;
  });
  const Bytes signers = encode_signers(samples::signers(), samples::store_id());
  always_detected(signers, signers.size(), [](const Bytes& b) {
    Signers out;
    return decode_signers(b, samples::store_id(), out) == nullptr;
  });
}

TEST(Mutation, WorkingSet) {
  const Bytes good = encode_working_set(samples::working_set(), samples::store_id());
  always_detected(good, good.size(), [](const Bytes& b) {
    WorkingSet out;
    return decode_working_set(b, samples::store_id(), out) == nullptr;
  });
}

TEST(Mutation, KeySlots) {
  const Bytes good = encode_key_slots(samples::key_slots(), samples::store_id());
  always_detected(good, good.size(), [](const Bytes& b) {
    KeySlots out;
    return decode_key_slots(b, samples::store_id(), out) == nullptr;
  });
}

TEST(Mutation, Group) {
  const Bytes file = encode_group_file(samples::group_file());
  always_detected(file, file.size(), [](const Bytes& b) {
    GroupFile out;
    return decode_group_file(b, out) == nullptr;
  });
  const Bytes good = encode_group_record(samples::group_record(), samples::store_id());
  always_detected(good, good.size(), [](const Bytes& b) {
    GroupRecord out;
    return decode_group_record(b, samples::store_id(), out) == nullptr;
  });
}

// The bodies below have no checksum of their own. Each accepted input must be a value that encodes
// and decodes again.
TEST(Mutation, Version) {
  mutate(encode_version(samples::version()), 11, [](const Bytes& bad) {
    Version v, again;
    if (!decode_version(bad, v)) return;
    ASSERT_TRUE(decode_version(encode_version(v), again));
    ASSERT_EQ(v, again);
  });
}

TEST(Mutation, Commit) {
  mutate(encode_commit(samples::commit_body()), 12, [](const Bytes& bad) {
    CommitBody body, again;
    if (!decode_commit(bad, body)) return;
    ASSERT_TRUE(decode_commit(encode_commit(body), again));
    ASSERT_EQ(body, again);
  });
}

TEST(Mutation, Index) {
  mutate(encode_index(samples::index_lines()), 13, [](const Bytes& bad) {
    std::vector<IndexLine> lines, again;
    if (!decode_index(bad, lines)) return;
    ASSERT_TRUE(decode_index(encode_index(lines), again));
    ASSERT_EQ(lines, again);
  });
}

TEST(Mutation, Translation) {
  mutate(encode_translation(samples::translation()), 20, [](const Bytes& bad) {
    Translation t, again;
    if (!decode_translation(bad, samples::kTranslationAt, t)) return;
    ASSERT_TRUE(decode_translation(encode_translation(t), samples::kTranslationAt, again));
    ASSERT_EQ(t, again);
    for (std::size_t i = 0; i < t.lines.size(); ++i) {
      ASSERT_EQ(t.find(t.lines[i].old_offset_bytes), &t.lines[i]);
      ASSERT_EQ(t.find_new(t.lines[i].new_offset_bytes), &t.lines[i]);
      ASSERT_LE(t.lines[i].new_offset_bytes + kRecordHeaderBytes, samples::kTranslationAt);
    }
  });
}

TEST(Mutation, MapBlock) {
  mutate(encode_map_block(samples::map_entries()), 14, [](const Bytes& bad) {
    std::vector<MapEntry> out(kMaxEntriesPerMapBlock), again(kMaxEntriesPerMapBlock);
    const int n = decode_map_block(bad, out);
    if (n < 0) return;
    out.resize(static_cast<std::size_t>(n));
    ASSERT_EQ(decode_map_block(encode_map_block(out), again), n);
    again.resize(static_cast<std::size_t>(n));
    ASSERT_EQ(out, again);
  });
}

TEST(Mutation, RunRoot) {
  mutate(encode_run_root(samples::run_root()), 15, [](const Bytes& bad) {
    RunRoot root, again;
    if (!decode_run_root(bad, root)) return;
    ASSERT_TRUE(decode_run_root(encode_run_root(root), again));
    ASSERT_EQ(root, again);
  });
}

void check_deltas(const Bytes& bad) {
  std::vector<DeltaIndexLine> lines(kMaxDeltasPerBatch);
  const int n = index_delta_batch(bad, lines);
  DeltaBatch batch;
  ASSERT_EQ(decode_delta_batch(bad, batch), n >= 0);
  for (int i = 0; i < n; ++i) {
    // Two blocks of exactly a page, to detect a run that leaves it.
    Bytes indexed(kPageBytes), decoded(kPageBytes);
    const auto& page = batch.pages()[static_cast<std::size_t>(i)];
    apply_indexed_delta(bad, lines[static_cast<std::size_t>(i)], indexed.data());
    apply_delta(batch.spans_of(page), batch.bytes_of(page), decoded.data());
    ASSERT_EQ(indexed, decoded);
  }
}

TEST(Mutation, DeltaBatch) {
  const DeltaBatch small = samples::delta_batch();
  mutate(encode_delta_batch(small, 0, 2), 16, check_deltas);
  std::mt19937_64 random(17);
  DeltaBatch many;
  for (PageNumber page = 1; page < 20; ++page) {
    Bytes now(kPageBytes);
    for (int k = 0; k < 20; ++k) now[random() % kPageBytes] = std::byte{9};
    many.add_difference_from_zero(page * 50, now.data());
  }
  mutate(encode_delta_batch(many, 0, many.pages().size()), 18, check_deltas);
}

// Random bytes that are no encoding.
TEST(Mutation, Noise) {
  std::mt19937_64 random(19);
  for (int i = 0; i < kRounds; ++i) {
    Bytes noise(random() % 200);
    for (auto& b : noise) b = static_cast<std::byte>(random() % 3 == 0 ? random() : random() % 4);
    noise.shrink_to_fit();
    check_deltas(noise);
    std::vector<MapEntry> entries(kMaxEntriesPerMapBlock);
    decode_map_block(noise, entries);
    RunRoot root;
    decode_run_root(noise, root);
    std::vector<IndexLine> lines;
    decode_index(noise, lines);
    Translation t;
    decode_translation(noise, samples::kTranslationAt, t);
    Version v;
    decode_version(noise, v);
    CommitBody body;
    decode_commit(noise, body);
  }
}

}  // namespace
}  // namespace vellum::format
