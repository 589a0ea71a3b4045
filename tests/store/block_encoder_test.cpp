// Blocks come one after another: the results of the last ones must not spoil the next.
#include "store/encode/block_encoder.hpp"

#include "store/support.hpp"

namespace vellum::store::test {
namespace {

using base::Codec;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kBlockBytes = 64u << 10;

// Small numbers, which are best split into planes.
Bytes numbers(std::size_t bytes, std::mt19937_64& random) {
  Bytes out(bytes);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = random() % 1000000;
    std::memcpy(out.data() + at, &word, sizeof word);
  }
  return out;
}

// Words of a small language: best as they are.
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

TEST(BlockEncoder, AnotherKindOfDataGetsItsFormSoon) {
  std::mt19937_64 random(1);
  base::Compressor compressor;
  BlockEncoder blocks(fixed_blocks());
  for (int turn = 0; turn < 3; ++turn) {
    int numbers_as_text = 0, text_as_numbers = 0;
    for (int i = 0; i < 20; ++i) {
      const auto payload = blocks.encode(compressor, numbers(kBlockBytes, random));
      numbers_as_text += payload.codec == Codec::zstd_words ? 0 : 1;
    }
    for (int i = 0; i < 20; ++i) {
      text_as_numbers +=
          blocks.encode(compressor, text(kBlockBytes, random)).codec == Codec::zstd ? 0 : 1;
    }
    EXPECT_LE(numbers_as_text, 1);
    EXPECT_LE(text_as_numbers, 1);
  }
}

}  // namespace
}  // namespace vellum::store::test
