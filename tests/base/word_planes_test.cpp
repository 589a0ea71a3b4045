#include "base/bytes/word_planes.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"

namespace vellum::base {
namespace {

using test::Bytes;
using test::random_bytes;

TEST(WordPlanes, BytesGoWhereTheirPlaneSays) {
  for (const std::size_t size : {128u, 256u, 4096u, 65536u, 65536u + 128u}) {
    const Bytes words = random_bytes(size, size);
    Bytes planes(size);
    split_word_planes(words, planes);
    const std::size_t count = size / 8;
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(planes[i % 8 * count + i / 8], words[i]) << i;
  }
}

TEST(WordPlanes, JoiningBringsEverySizeBack) {
  for (std::size_t size = 0; size < 700; ++size) {
    const Bytes words = random_bytes(size, size);
    Bytes planes(size), back(size);
    split_word_planes(words, planes);
    join_word_planes(planes, back);
    ASSERT_EQ(back, words) << size;
  }
}

TEST(WordPlanes, FieldsStandTogetherAndComeBack) {
  for (std::size_t size = 0; size < 700; ++size) {
    for (const std::size_t fields : {1u, 3u, 16u}) {
      const Bytes structures = random_bytes(size, size);
      Bytes out(size), back(size);
      gather_fields(structures, out, fields);
      const std::size_t count = size / (fields * 8);
      for (std::size_t i = 0; i < count * fields * 8; ++i) {
        const std::size_t structure = i / (fields * 8), field = i / 8 % fields;
        ASSERT_EQ(out[(field * count + structure) * 8 + i % 8], structures[i]) << i;
      }
      scatter_fields(out, back, fields);
      ASSERT_EQ(back, structures) << size;
    }
  }
}

TEST(WordPlanes, TheRestStaysAsItIs) {
  const Bytes words = random_bytes(128 + 100, 1);
  Bytes planes(words.size());
  split_word_planes(words, planes);
  EXPECT_TRUE(std::equal(words.begin() + 128, words.end(), planes.begin() + 128));
}

}  // namespace
}  // namespace vellum::base
