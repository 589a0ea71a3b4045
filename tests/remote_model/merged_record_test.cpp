// Merged forms of one record.
#include "remote/pieces/merged_record.hpp"

#include <gtest/gtest.h>

#include "format/records/delta.hpp"
#include "remote_model/stations.hpp"

namespace vellum::remote::meeting {
namespace {

class MergedRecord : public testing::Test {
 protected:
  OwnedRecord form(format::RecordType type, Bytes raw, std::uint32_t items,
                   std::vector<format::SlotRange> dropped) {
    format::RecordHeader header;
    header.type = type;
    header.pack = ref.pack;
    header.offset_bytes = 8 * ++places_ + 640;
    header.raw_bytes = static_cast<std::uint32_t>(raw.size());
    header.items = items;
    OwnedRecord out;
    format::append_record(out.bytes, header, {}, raw, store->checksum_seed());
    out.record = {type,
                  ref,
                  out.bytes.size(),
                  {ref.pack, header.offset_bytes, header.tag()},
                  std::move(dropped)};
    return out;
  }
  OwnedRecord pages(const Bytes& raw, std::vector<format::SlotRange> dropped) {
    return form(format::RecordType::pages, raw,
                static_cast<std::uint32_t>(raw.size() / format::kPageBytes), std::move(dropped));
  }
  // The content of a form's slots.
  Bytes unpacked(const OwnedRecord& owned) {
    format::RecordHeader header;
    EXPECT_EQ(format::decode_record_header(owned.bytes, header), nullptr);
    EXPECT_EQ(check_record(owned.record, owned.bytes, store->checksum_seed()), nullptr);
    Bytes raw(header.raw_bytes);
    EXPECT_TRUE(base::Decompressor(raw.size())
                    .decompress(header.codec, format::record_payload(owned.bytes, header), raw));
    return raw;
  }
  static Bytes without(Bytes raw, std::size_t page) {
    std::fill_n(raw.begin() + static_cast<std::ptrdiff_t>(page * format::kPageBytes),
                format::kPageBytes, std::byte{});
    return raw;
  }

  sim::SimFs fs;
  std::shared_ptr<StoreDirectory> store = StoreDirectory::create(fs, "/s", options());
  const format::RecordRef ref{(3ULL << 32) + 1, 64, 17};
  Texts texts{4};

 private:
  std::uint64_t places_ = 0;
};

TEST_F(MergedRecord, AMergedRecordHasThePagesOfBoth) {
  const Bytes whole = texts.of(4 * format::kPageBytes);
  const auto a = pages(without(without(whole, 0), 1), {{0, 2}});
  const auto b = pages(without(without(whole, 1), 3), {{1, 1}, {3, 1}});
  const OwnedRecord both = merged_record(*store, a, b);
  EXPECT_EQ(both.record.ref, ref);
  EXPECT_EQ(both.record.dropped, (std::vector<format::SlotRange>{{1, 1}}));
  EXPECT_TRUE(unpacked(both) == without(whole, 1));
  EXPECT_TRUE(merged_record(*store, a, b).record == both.record);
}

TEST_F(MergedRecord, AMergedRecordIsTheFormThatHasAllSlots) {
  const Bytes whole = texts.of(4 * format::kPageBytes);
  const auto all = pages(whole, {}), some = pages(without(whole, 2), {{2, 1}});
  EXPECT_TRUE(merged_record(*store, all, some).record == all.record);
  EXPECT_TRUE(merged_record(*store, some, all).record == all.record);
}

// Another store's form with more slots must not change the local slots.
TEST_F(MergedRecord, OtherContentIsRefused) {
  const Bytes whole = texts.of(4 * format::kPageBytes);
  Bytes other = whole;
  other[0] = other[0] ^ std::byte{1};
  const auto here = pages(without(whole, 2), {{2, 1}});
  for (const auto& there : {pages(other, {}), pages(without(other, 1), {{1, 1}}),
                            pages(texts.of(3 * format::kPageBytes), {})}) {
    store::test::error_text(Errc::corrupted, [&] { merged_record(*store, here, there); });
  }
}

TEST_F(MergedRecord, AMergedRecordHasTheDeltasOfBoth) {
  const auto batch = [](std::initializer_list<std::size_t> lengths) {
    format::DeltaBatch out;
    format::PageNumber page = 5;
    for (const std::size_t length : lengths) {
      const Bytes bytes(length, static_cast<std::byte>(page));
      const format::DeltaSpan span{0, static_cast<std::uint16_t>(length)};
      out.add(page, {&span, 1}, bytes);
      page += 3;
    }
    return format::encode_delta_batch(out, 0, out.pages().size());
  };
  const auto type = format::RecordType::deltas;
  const auto a = form(type, batch({20, 1, 30}), 3, {{1, 1}});
  const auto b = form(type, batch({1, 25, 30}), 3, {{0, 1}});
  const OwnedRecord both = merged_record(*store, a, b);
  EXPECT_TRUE(both.record.dropped.empty());
  EXPECT_TRUE(unpacked(both) == batch({20, 25, 30}));
  const auto other = form(type, batch({1, 25, 31}), 3, {{0, 1}});
  store::test::error_text(Errc::corrupted, [&] { merged_record(*store, a, other); });
}

}  // namespace
}  // namespace vellum::remote::meeting
