#include "format/records/delta.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "format/records/page_diff.hpp"
#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;
using Spans = std::vector<std::pair<int, int>>;

Spans spans_of(const DeltaBatch& batch) {
  Spans out;
  for (const DeltaSpan& r : batch.spans_of(batch.pages().back()))
    out.emplace_back(r.offset_bytes, r.length_bytes);
  return out;
}

Spans difference(std::initializer_list<int> changed) {
  Bytes old_content(kPageBytes), now(kPageBytes);
  for (const int at : changed) now[static_cast<std::size_t>(at)] = std::byte{1};
  DeltaBatch batch;
  EXPECT_EQ(batch.add_difference(1, old_content.data(), now.data()), changed.size() != 0);
  return batch.empty() ? Spans{} : spans_of(batch);
}

TEST(Difference, RunsAreExact) {
  EXPECT_EQ(difference({}), Spans{});
  EXPECT_EQ(difference({0}), (Spans{{0, 1}}));
  EXPECT_EQ(difference({4095}), (Spans{{4095, 1}}));
  EXPECT_EQ(difference({5, 6, 7}), (Spans{{5, 3}}));
  EXPECT_EQ(difference({63, 64}), (Spans{{63, 2}}));
  EXPECT_EQ(difference({0, 4095}), (Spans{{0, 1}, {4095, 1}}));
}

TEST(Difference, RunsCloserThanTheMergeGapAreOne) {
  EXPECT_EQ(difference({10, 14}), (Spans{{10, 5}}));  // three equal bytes between them
  EXPECT_EQ(difference({10, 15}), (Spans{{10, 1}, {15, 1}}));
  EXPECT_EQ(difference({62, 66}), (Spans{{62, 5}}));  // across a line
  EXPECT_EQ(difference({62, 67}), (Spans{{62, 1}, {67, 1}}));
}

TEST(Difference, WholePage) {
  Bytes now(kPageBytes, std::byte{3});
  DeltaBatch batch;
  ASSERT_TRUE(batch.add_difference_from_zero(1, now.data()));
  EXPECT_EQ(spans_of(batch), (Spans{{0, 4096}}));
  EXPECT_EQ(batch.last_cost_bytes(), 4099u);
}

TEST(Difference, PopBackTakesTheLastPageOff) {
  DeltaBatch batch = samples::delta_batch();
  batch.pop_back();
  ASSERT_EQ(batch.pages().size(), 1u);
  EXPECT_EQ(batch.last_cost_bytes(), 3u + 2 * 3);
  batch.pop_back();
  EXPECT_TRUE(batch.empty());
}

// A pair of pages with changes of many shapes: scattered bytes, words, ranges, rewrites of most
// of the page.
Bytes mutate(std::mt19937_64& random, const Bytes& old_content) {
  Bytes now = old_content;
  const std::size_t writes = std::size_t{1} << (random() % 10);
  for (std::size_t i = 0; i < writes; ++i) {
    const std::size_t at = random() % kPageBytes;
    const std::size_t n = std::min(kPageBytes - at, std::size_t{1} << (random() % 8));
    for (std::size_t k = 0; k < n; ++k) now[at + k] = static_cast<std::byte>(random());
  }
  return now;
}

TEST(Difference, AppliedToTheOldContentGivesTheNew) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) {
    const Bytes old_content = i % 2 == 0 ? samples::random_page(random) : Bytes(kPageBytes);
    const Bytes now = mutate(random, old_content);
    DeltaBatch batch;
    if (!batch.add_difference(9, old_content.data(), now.data())) {
      ASSERT_EQ(now, old_content);
      continue;
    }
    Bytes page = old_content;
    apply_delta(batch.spans_of(batch.pages()[0]), batch.bytes_of(batch.pages()[0]), page.data());
    ASSERT_EQ(page, now);
  }
}

TEST(Difference, EveryKernelAgrees) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    const Bytes old_content = samples::random_page(random);
    const Bytes now = i % 50 == 0 ? old_content : mutate(random, old_content);
    for (const bool from_zero : {false, true}) {
      const std::byte* old = from_zero ? nullptr : old_content.data();
      PageDiff expected;
      diff_page_with(DiffKernel::generic, old, now.data(), expected);
      for (const DiffKernel kernel : {DiffKernel::avx2, DiffKernel::avx512}) {
        if (!diff_kernel_supported(kernel)) continue;
        PageDiff got;
        diff_page_with(kernel, old, now.data(), got);
        ASSERT_EQ(got.lines, expected.lines);
        for (std::size_t line = 0; line < kLinesPerPage; ++line) {
          if ((got.lines >> line & 1) == 0) continue;
          ASSERT_EQ(got.mask[line], expected.mask[line]);
          ASSERT_EQ(0, std::memcmp(got.copy + line * kLineBytes, now.data() + line * kLineBytes,
                                   kLineBytes));
        }
      }
    }
  }
}

// If the mask and the bytes were from different reads, a span's first or last byte could equal the
// old content.
void check_consistency_under_writes(DiffKernel kernel) {
  const Bytes old_content(kPageBytes);
  Bytes now(kPageBytes);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    std::mt19937_64 random(4);
    while (!stop.load(std::memory_order_relaxed)) {
      const std::size_t at = random() % 64;  // one line, written and cleared repeatedly
      __atomic_store_n(reinterpret_cast<unsigned char*>(now.data()) + at,
                       static_cast<unsigned char>(random() % 2), __ATOMIC_RELAXED);
    }
  });
  for (int i = 0; i < 20000; ++i) {
    PageDiff diff;
    diff_page_with(kernel, old_content.data(), now.data(), diff);
    for_each_span(diff.lines, diff.mask, 0, [&](std::size_t offset, std::size_t length) {
      for (std::size_t k = 0; k < length; ++k) ASSERT_NE(diff.copy[offset + k], std::byte{0});
    });
    DeltaBatch batch;
    if (!batch.add_difference(1, old_content.data(), now.data())) continue;
    const auto bytes = batch.bytes_of(batch.pages()[0]);
    std::size_t at = 0;
    for (const DeltaSpan& r : batch.spans_of(batch.pages()[0])) {
      ASSERT_NE(bytes[at], std::byte{0});
      ASSERT_NE(bytes[at + r.length_bytes - 1], std::byte{0});
      at += r.length_bytes;
    }
    ASSERT_EQ(at, bytes.size());
  }
  stop = true;
  writer.join();
}

TEST(Difference, IsConsistentWhileAnotherThreadWrites) {
  for (const DiffKernel kernel : {DiffKernel::generic, DiffKernel::avx2, DiffKernel::avx512}) {
    if (diff_kernel_supported(kernel)) check_consistency_under_writes(kernel);
  }
}

DeltaBatch random_batch(std::mt19937_64& random, std::size_t pages, int writes) {
  DeltaBatch batch;
  const Bytes old_content(kPageBytes);
  PageNumber page = random() % 100;
  for (std::size_t i = 0; i < pages; ++i) {
    Bytes now(kPageBytes);
    for (int k = 0; k < writes; ++k)
      now[random() % kPageBytes] = static_cast<std::byte>(1 + random() % 255);
    batch.add_difference(page, old_content.data(), now.data());
    page += 1 + random() % 300;
  }
  return batch;
}

void expect_same(const DeltaBatch& a, std::size_t first, const DeltaBatch& b) {
  for (std::size_t i = 0; i < b.pages().size(); ++i) {
    const auto& pa = a.pages()[first + i];
    const auto& pb = b.pages()[i];
    ASSERT_EQ(pa.page, pb.page);
    const auto ra = a.spans_of(pa), rb = b.spans_of(pb);
    ASSERT_TRUE(
        std::equal(ra.begin(), ra.end(), rb.begin(), rb.end(), [](DeltaSpan x, DeltaSpan y) {
          return x.offset_bytes == y.offset_bytes && x.length_bytes == y.length_bytes;
        }));
    const auto ba = a.bytes_of(pa), bb = b.bytes_of(pb);
    ASSERT_TRUE(std::equal(ba.begin(), ba.end(), bb.begin(), bb.end()));
  }
}

TEST(Batch, RoundTripOfAnyPart) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 50; ++i) {
    const DeltaBatch batch =
        random_batch(random, 1 + random() % 200, 1 + static_cast<int>(random() % 40));
    const std::size_t first = random() % batch.pages().size();
    const std::size_t count = 1 + random() % (batch.pages().size() - first);
    const Bytes raw = encode_delta_batch(batch, first, count);
    ASSERT_LE(raw.size(), batch.encoded_bound_bytes());
    DeltaBatch back;
    ASSERT_TRUE(decode_delta_batch(raw, back));
    ASSERT_EQ(back.pages().size(), count);
    expect_same(batch, first, back);
  }
}

// Every third delta is the batch's own, and some are removed again.
TEST(Batch, BorrowedBytesAreWrittenLikeItsOwn) {
  std::mt19937_64 random(7);
  const DeltaBatch batch = random_batch(random, 200, 30);
  DeltaBatch mixed;
  for (const auto& p : batch.pages()) {
    if (p.page % 3 == 0) {
      mixed.add(p.page, batch.spans_of(p), batch.bytes_of(p));
      continue;
    }
    mixed.add_borrowed(p.page, batch.spans_of(p), batch.bytes_of(p));
    EXPECT_EQ(mixed.bytes_of(mixed.pages().back()).data(), batch.bytes_of(p).data());
    mixed.pop_back();
    mixed.add_borrowed(p.page, batch.spans_of(p), batch.bytes_of(p));
  }
  expect_same(batch, 0, mixed);
  EXPECT_EQ(encode_delta_batch(mixed, 0, 200), encode_delta_batch(batch, 0, 200));
}

TEST(Batch, ContentIsTakenAtTheSpans) {
  std::mt19937_64 random(8);
  const DeltaBatch batch = random_batch(random, 200, 30);
  DeltaBatch taken;
  for (const auto& p : batch.pages()) {
    Bytes page(kPageBytes, std::byte{0x5a});
    apply_delta(batch.spans_of(p), batch.bytes_of(p), page.data());
    taken.add_content(p.page, batch.spans_of(p), page.data());
  }
  expect_same(batch, 0, taken);
}

TEST(Batch, IndexedDeltasApplyWithoutDecoding) {
  std::mt19937_64 random(6);
  const DeltaBatch batch = random_batch(random, 300, 30);
  const Bytes raw = encode_delta_batch(batch, 0, 300);
  std::vector<DeltaIndexLine> lines(kMaxDeltasPerBatch);
  ASSERT_EQ(index_delta_batch(raw, lines), 300);
  for (std::size_t i = 0; i < 300; ++i) {
    ASSERT_EQ(lines[i].page, batch.pages()[i].page);
    Bytes expected(kPageBytes), got(kPageBytes);
    apply_delta(batch.spans_of(batch.pages()[i]), batch.bytes_of(batch.pages()[i]),
                expected.data());
    apply_indexed_delta(raw, lines[i], got.data());
    ASSERT_EQ(got, expected);
  }
}

TEST(Batch, LargestPagesAndSpans) {
  DeltaBatch batch;
  const Bytes whole(kPageBytes, std::byte{1});
  batch.add_difference_from_zero(0, whole.data());
  const PageNumber last = kMaxRegionBytes / kPageBytes - 1;
  batch.add_difference_from_zero(last, whole.data());
  const Bytes raw = encode_delta_batch(batch, 0, 2);
  DeltaBatch back;
  ASSERT_TRUE(decode_delta_batch(raw, back));
  EXPECT_EQ(back.pages()[1].page, last);
  expect_same(batch, 0, back);
}

Bytes bytes_from(std::initializer_list<int> values) {
  Bytes out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

TEST(Batch, RefusesWhatCannotBe) {
  std::vector<DeltaIndexLine> lines(kMaxDeltasPerBatch);
  const auto index = [&](std::initializer_list<int> values) {
    return index_delta_batch(bytes_from(values), lines);
  };
  EXPECT_EQ(index({1, 7, 0, 5, 1, 0xa, 0xb}), 1);  // one page, one span of two bytes at 5
  EXPECT_EQ(index({}), -1);
  EXPECT_EQ(index({0}), -1);                                  // no pages
  EXPECT_EQ(index({1, 7, 0, 5, 1, 0xa}), -1);                 // one byte too few
  EXPECT_EQ(index({1, 7, 0, 5, 1, 0xa, 0xb, 0xc}), -1);       // one byte too many
  EXPECT_EQ(index({1, 7, 0, 0xff, 0x1f, 0, 0xa}), 1);         // one byte at 4095
  EXPECT_EQ(index({1, 7, 0, 0x80, 0x20, 0, 0xa}), -1);        // one byte at 4096
  EXPECT_EQ(index({1, 7, 0, 0xff, 0x1f, 1, 0xa, 0xb}), -1);   // two bytes at 4095
  EXPECT_EQ(index({1, 7, 0, 0x85, 0x80, 0x00, 0, 0xa}), -1);  // a gap of three bytes
  EXPECT_EQ(index({2, 7, 0, 0}), -1);                         // a page without spans
  EXPECT_EQ(index({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}), -1);
  EXPECT_EQ(index({1, 0x80, 0x80, 0x80, 0x80, 0x40, 0, 5, 0, 1}), -1);  // page 2^34
  EXPECT_EQ(index_delta_batch(Bytes(kMaxDeltaBatchRawBytes + 1), lines), -1);
  EXPECT_EQ(index_delta_batch(bytes_from({1, 7, 0, 5, 1, 0xa, 0xb}), {}), -1);  // no room
}

// Composes the deltas between random contents of a page: compose(composer, delta) for each, then
// append(composer, batch, content of the page now).
void expect_the_same_page(unsigned seed, const auto& compose, const auto& append) {
  std::mt19937_64 random(seed);
  DeltaComposer composer;
  for (int i = 0; i < 100; ++i) {
    composer.reset();
    const Bytes start = samples::random_page(random);
    Bytes current = start;
    for (std::uint64_t k = 0; k < 1 + random() % 6; ++k) {
      const Bytes next = mutate(random, current);
      DeltaBatch step;
      if (!step.add_difference(1, current.data(), next.data())) continue;
      compose(composer, step);
      current = next;
    }
    if (current == start) continue;
    DeltaBatch composed;
    append(composer, composed, current);
    ASSERT_EQ(composed.pages()[0].page, 44u);
    Bytes page = start;
    apply_delta(composed.spans_of(composed.pages()[0]), composed.bytes_of(composed.pages()[0]),
                page.data());
    ASSERT_EQ(page, current);
    Bytes again = page;  // applying twice is harmless
    apply_delta(composed.spans_of(composed.pages()[0]), composed.bytes_of(composed.pages()[0]),
                again.data());
    ASSERT_EQ(again, current);
  }
}

TEST(Composer, GivesTheSamePageAsTheDeltasInTurn) {
  expect_the_same_page(
      7,
      [](DeltaComposer& composer, const DeltaBatch& delta) {
        composer.apply(delta.spans_of(delta.pages()[0]), delta.bytes_of(delta.pages()[0]));
      },
      [](const DeltaComposer& composer, DeltaBatch& out, const Bytes&) {
        composer.append_to(out, 44);
      });
}

TEST(Composer, TakesTheBytesFromThePageNow) {
  expect_the_same_page(
      8,
      [](DeltaComposer& composer, const DeltaBatch& delta) {
        composer.touch(delta.spans_of(delta.pages()[0]));
      },
      [](const DeltaComposer& composer, DeltaBatch& out, const Bytes& now) {
        composer.append_to(out, 44, now.data());
      });
}

// The whole page is known there. A gap then costs less than a span.
TEST(Composer, MergesAcrossBytesOfThePageNow) {
  DeltaComposer composer;
  const DeltaSpan spans[] = {{10, 1}, {12, 1}, {13 + kMergeGapBytes + 1, 1}};
  composer.touch(spans);
  DeltaBatch out;
  composer.append_to(out, 1, Bytes(kPageBytes, std::byte{7}).data());
  EXPECT_EQ(spans_of(out), (Spans{{10, 3}, {13 + kMergeGapBytes + 1, 1}}));
}

// Bytes that no delta touched are unknown to the composer. It must not invent them.
TEST(Composer, DoesNotMergeAcrossUntouchedBytes) {
  DeltaComposer composer;
  const Bytes ones(2, std::byte{1});
  const DeltaSpan spans[] = {{10, 1}, {12, 1}};
  composer.apply(spans, ones);
  DeltaBatch out;
  composer.append_to(out, 1);
  EXPECT_EQ(spans_of(out), (Spans{{10, 1}, {12, 1}}));
}

}  // namespace
}  // namespace vellum::format
