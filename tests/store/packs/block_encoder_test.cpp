// Blocks are encoded in sequence: results of earlier blocks must not impair later ones.
#include "store/packs/encode/block_encoder.hpp"

#include "store/branch/checkpoint/checkpoint.hpp"
#include "store/packs/encode/payload.hpp"
#include "store/support.hpp"

namespace vellum::store::test {
namespace {

using base::Codec;
using base::Compression;
using base::Filter;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kBlockBytes = 64u << 10;

// Small numbers, which compress best in planes.
Bytes numbers(std::size_t bytes, std::mt19937_64& random) {
  Bytes out(bytes);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = random() % 1000000;
    std::memcpy(out.data() + at, &word, sizeof word);
  }
  return out;
}

// Words of a small vocabulary, which compress best as they are.
Bytes text(std::size_t bytes, std::mt19937_64& random) {
  static constexpr const char* kWords[] = {"page ",    "block ",  "delta ",
                                           "journal ", "commit ", "of "};
  std::string out;
  while (out.size() < bytes) out += kWords[random() % std::size(kWords)];
  const auto all = std::as_bytes(std::span(out)).first(bytes);
  return {all.begin(), all.end()};
}

format::Encoding fixed_blocks() {
  format::Encoding encoding;
  encoding.block_bytes = kBlockBytes;
  encoding.grow_blocks = false;
  return encoding;
}

TEST(BlockEncoder, ANewKindOfDataSoonGetsItsForm) {
  std::mt19937_64 random(1);
  base::Compressor compressor;
  BlockEncoder blocks(fixed_blocks());
  for (int turn = 0; turn < 3; ++turn) {
    int numbers_as_text = 0, text_as_numbers = 0;
    for (int i = 0; i < 20; ++i) {
      const auto payload = blocks.encode(compressor, numbers(kBlockBytes, random));
      numbers_as_text += payload.codec == Codec{Compression::zstd, Filter::words} ? 0 : 1;
    }
    for (int i = 0; i < 20; ++i) {
      text_as_numbers +=
          blocks.encode(compressor, text(kBlockBytes, random)).codec == Compression::zstd ? 0 : 1;
    }
    EXPECT_LE(numbers_as_text, 1);
    EXPECT_LE(text_as_numbers, 1);
  }
}

// As many deltas as fit: neither limit is exceeded, and one more delta would exceed one.
void check_that_payloads_are_full(const format::DeltaBatch& batch) {
  std::size_t first = 0;
  while (first < batch.pages().size()) {
    const std::size_t count = format::deltas_that_fit(batch, first).count;
    ASSERT_GE(count, 1u);
    ASSERT_LE(count, format::kMaxDeltasPerBatch);
    const auto bytes_of = [&](std::size_t deltas) {
      return format::encode_delta_batch(batch, first, deltas).size();
    };
    ASSERT_LE(bytes_of(count), format::kMaxDeltaBatchRawBytes);
    ASSERT_EQ(bytes_of(count), format::deltas_that_fit(batch, first).encoded_bytes);
    if (first + count < batch.pages().size() && count < format::kMaxDeltasPerBatch) {
      ASSERT_GT(bytes_of(count + 1), format::kMaxDeltaBatchRawBytes);
    }
    first += count;
  }
  ASSERT_EQ(first, batch.pages().size());
}

TEST(DeltaEncoding, PayloadsAreFilled) {
  std::mt19937_64 random(12);
  for (const std::size_t most_spans : {1U, 3U, 40U, 1000U}) {
    format::DeltaBatch batch;
    format::PageNumber page = 0;
    for (std::uint64_t i = 0; i < 5000; ++i) {
      page += random() % (i % 2 == 0 ? 100 : 100000) + 1;
      std::vector<format::DeltaSpan> spans;
      std::size_t at = random() % 200, bytes = 0;
      for (std::size_t n = random() % most_spans + 1; n > 0 && at < format::kPageBytes; --n) {
        const std::size_t length =
            std::min<std::size_t>(format::kPageBytes - at, random() % (n % 7 == 0 ? 300 : 8) + 1);
        spans.push_back({static_cast<std::uint16_t>(at), static_cast<std::uint16_t>(length)});
        bytes += length;
        at += length + random() % (n % 5 == 0 ? 200 : 4);
      }
      batch.add(page, spans, Bytes(bytes, std::byte{1}));
    }
    check_that_payloads_are_full(batch);
  }
}

// The largest encoded delta: every other byte has changed.
TEST(DeltaEncoding, APayloadHoldsAtLeastOneDelta) {
  std::vector<format::DeltaSpan> spans;
  for (std::uint16_t at = 0; at < format::kPageBytes; at += 2) spans.push_back({at, 1});
  format::DeltaBatch batch;
  for (format::PageNumber page = 0; page < 20; ++page) {
    batch.add((format::PageNumber{1} << 33) + page, spans, Bytes(spans.size(), std::byte{1}));
  }
  check_that_payloads_are_full(batch);
}

// New elements of many lists: four bytes of each recur in others, and no six do.
Bytes deltas_of_lists(std::mt19937_64& random) {
  std::vector<std::uint32_t> targets(200);
  for (auto& target : targets) target = static_cast<std::uint32_t>(random());
  format::DeltaBatch batch;
  for (format::PageNumber page = 0; page < 300; ++page) {
    std::vector<format::DeltaSpan> spans;
    std::vector<std::uint32_t> bytes;
    for (std::uint16_t at = 0; at + 16u <= format::kPageBytes; at += 256) {
      spans.push_back({at, 4});
      bytes.push_back(targets[random() % targets.size()]);
    }
    const auto raw = std::as_bytes(std::span(bytes));
    batch.add(page, spans, raw);
  }
  return format::encode_delta_batch(batch, 0, format::deltas_that_fit(batch, 0).count);
}

TEST(DeltaEncoding, ShortRepetitionsAreFoundAtTheLowestLevel) {
  std::mt19937_64 random(2);
  base::Compressor compressor;
  const Bytes raw = deltas_of_lists(random);
  format::Encoding encoding;
  ASSERT_EQ(encoding.compression_level, 1);
  const auto deltas = encode_deltas(compressor, encoding, raw);
  const auto plain = encode_payload(compressor, Compression::zstd, encoding.compression_level, raw);
  EXPECT_EQ(deltas.codec, Compression::zstd);
  EXPECT_LT(deltas.stored.size() * 10, plain.stored.size() * 8);

  encoding.compression_level = 19;  // a higher level is kept
  EXPECT_EQ(encode_deltas(compressor, encoding, raw).stored,
            encode_payload(compressor, Compression::zstd, 19, raw).stored);
}

}  // namespace
}  // namespace vellum::store::test
