#include "store/gc/record_encoder.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/fail.hpp"
#include "format/records/delta.hpp"
#include "store/packs/encode/block_encoder.hpp"
#include "store/packs/encode/payload.hpp"

namespace vellum::store {

using format::DeltaBatch;
using format::kPageBytes;
using format::RecordType;
using format::SlotRange;

namespace {

std::vector<std::byte> without_pages(std::vector<std::byte> raw,
                                     const std::vector<SlotRange>& dropped) {
  // A translation may list slots past the last page.
  const std::size_t pages = raw.size() / kPageBytes;
  for (const SlotRange& r : dropped) {
    const std::size_t first = std::min<std::size_t>(r.first, pages);
    const std::size_t count = std::min<std::size_t>(r.count, pages - first);
    std::memset(raw.data() + first * kPageBytes, 0, count * kPageBytes);
  }
  return raw;
}

// A dropped delta keeps one byte, the minimum. It keeps its page number, since the pages of a
// batch ascend.
std::vector<std::byte> without_deltas(std::span<const std::byte> raw,
                                      const std::vector<SlotRange>& dropped) {
  DeltaBatch batch, out;
  if (!format::decode_delta_batch(raw, batch)) fail(Errc::corrupted, "the deltas do not parse");
  const format::DeltaSpan least{0, 1};
  const std::byte zero{};
  for (std::uint32_t i = 0; i < batch.pages().size(); ++i) {
    const auto& page = batch.pages()[i];
    if (format::any_dropped(dropped, i, 1)) {
      out.add(page.page, {&least, 1}, {&zero, 1});
    } else {
      out.add(page.page, batch.spans_of(page), batch.bytes_of(page));
    }
  }
  assert(out.pages().size() == batch.pages().size());
  return format::encode_delta_batch(out, 0, out.pages().size());
}

std::vector<std::byte> hash_of(const LoadedRecord& record) {
  const auto hash = format::record_hash(record.bytes, record.header);
  return {hash.begin(), hash.end()};
}

bool same_pages(const LoadedRecord& before, const LoadedRecord& now, const PlannedRecord& plan) {
  const auto needed = slots_outside(plan.dropped, plan.items);
  return before.raw.size() == now.raw.size() &&
         std::all_of(needed.begin(), needed.end(), [&](const SlotRange& r) {
           const std::size_t at = r.first * kPageBytes;
           return std::memcmp(before.raw.data() + at, now.raw.data() + at, r.count * kPageBytes) ==
                  0;
         });
}

bool same_deltas(const LoadedRecord& before, const LoadedRecord& now, const PlannedRecord& plan) {
  DeltaBatch a, b;
  if (!format::decode_delta_batch(before.raw, a) || !format::decode_delta_batch(now.raw, b) ||
      a.pages().size() != b.pages().size()) {
    return false;
  }
  for (std::uint32_t i = 0; i < a.pages().size(); ++i) {
    const auto& p = a.pages()[i];
    const auto& q = b.pages()[i];
    if (p.page != q.page) return false;
    if (format::any_dropped(plan.dropped, i, 1)) continue;
    const auto spans = a.spans_of(p), other = b.spans_of(q);
    const auto same_span = [](const format::DeltaSpan& x, const format::DeltaSpan& y) {
      return x.offset_bytes == y.offset_bytes && x.length_bytes == y.length_bytes;
    };
    if (!std::equal(spans.begin(), spans.end(), other.begin(), other.end(), same_span))
      return false;
    const auto bytes = a.bytes_of(p), others = b.bytes_of(q);
    if (!std::equal(bytes.begin(), bytes.end(), others.begin(), others.end())) return false;
  }
  return true;
}

}  // namespace

EncodedPayload RecordEncoder::encode(const LoadedRecord& record, const PlannedRecord& plan,
                                     int level, bool recompress) {
  assert(level >= 0 && level <= format::kMaxTranslationLevel);
  const auto stored = record.stored();
  EncodedPayload as_it_is{record.header.codec,
                          record.header.raw_bytes,
                          {stored.begin(), stored.end()},
                          hash_of(record)};
  const bool drops = plan.needed() < plan.held;
  if (!plan.has_slots() || (!drops && !recompress)) return as_it_is;
  const bool pages = plan.type == RecordType::pages;
  std::vector<std::byte> raw = !drops  ? record.raw
                               : pages ? without_pages(record.raw, plan.dropped)
                                       : without_deltas(record.raw, plan.dropped);
  format::Encoding encoding;
  encoding.compression_level = static_cast<std::uint8_t>(level);
  encoding.sha256 = record.header.has_hash;
  auto payload = pages ? BlockEncoder(encoding).encode(compressor_, raw)
                       : encode_deltas(compressor_, encoding, std::move(raw));
  return payload.stored.size() < as_it_is.stored.size() ? payload : as_it_is;
}

bool same_content(const LoadedRecord& before, const LoadedRecord& now, const PlannedRecord& plan) {
  if (now.header.type != before.header.type || now.header.items != before.header.items) {
    return false;
  }
  if (plan.type == RecordType::based_pages) {
    return std::ranges::equal(before.stored(), now.stored());  // copied without encoding
  }
  if (plan.dropped.empty()) return before.raw == now.raw;
  return plan.type == RecordType::pages ? same_pages(before, now, plan)
                                        : same_deltas(before, now, plan);
}

}  // namespace vellum::store
