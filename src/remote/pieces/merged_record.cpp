#include "remote/pieces/merged_record.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "format/records/delta.hpp"
#include "store/gc/reach/slot_uses.hpp"
#include "store/packs/encode/block_encoder.hpp"

namespace vellum::remote {
namespace {

using format::DeltaBatch;
using format::kPageBytes;
using format::RecordHeader;
using format::RecordType;
using format::SlotRange;

constexpr int kMergedLevel = 3;  // of zstd, as for packs that gc has recompressed

struct Unpacked {
  RecordHeader header;
  std::vector<std::byte> raw;
};

[[noreturn]] void fail_merge(const store::StoreDirectory& store, const PieceRecord& record,
                             const char* reason) {
  fail(Errc::corrupted, "{}: pack {:016x} at byte {}: {}", store.path(), record.ref.pack,
       record.ref.offset_bytes, reason);
}

Unpacked unpack(const store::StoreDirectory& store, const OwnedRecord& form) {
  Unpacked out;
  const auto opened = opened_record(store, form, out.header);
  out.raw.resize(out.header.raw_bytes);
  const auto stored = format::record_payload(opened, out.header);
  if (!base::Decompressor(out.raw.size()).decompress(out.header.codec, stored, out.raw)) {
    fail_merge(store, form.record, "the record does not decompress");
  }
  return out;
}

// `a` with the slots of `b` that it lacks.
std::vector<std::byte> merged_pages(Unpacked a, const Unpacked& b,
                                    std::span<const SlotRange> missing) {
  for (const SlotRange& range : missing) {
    const auto from = b.raw.begin() + static_cast<std::ptrdiff_t>(range.first * kPageBytes);
    std::copy_n(from, range.count * kPageBytes,
                a.raw.begin() + static_cast<std::ptrdiff_t>(range.first * kPageBytes));
  }
  return std::move(a.raw);
}

// Compares the slots outside `neither`, which has all slots that one of the two lacks.
bool same_pages(const Unpacked& a, const Unpacked& b, std::span<const SlotRange> neither) {
  const std::vector<SlotRange> dropped(neither.begin(), neither.end());
  return std::ranges::all_of(
      store::slots_outside(dropped, a.header.items), [&](const SlotRange& range) {
        const std::size_t from = range.first * kPageBytes, bytes = range.count * kPageBytes;
        return std::ranges::equal(std::span(a.raw).subspan(from, bytes),
                                  std::span(b.raw).subspan(from, bytes));
      });
}

bool same_delta(const DeltaBatch& a, const DeltaBatch& b, std::size_t i) {
  const auto same_span = [](const format::DeltaSpan& x, const format::DeltaSpan& y) {
    return x.offset_bytes == y.offset_bytes && x.length_bytes == y.length_bytes;
  };
  const auto &p = a.pages()[i], &q = b.pages()[i];
  return std::ranges::equal(a.spans_of(p), b.spans_of(q), same_span) &&
         std::ranges::equal(a.bytes_of(p), b.bytes_of(q));
}

bool merge_deltas(const Unpacked& a, const Unpacked& b, std::span<const SlotRange> missing,
                  std::span<const SlotRange> neither, std::vector<std::byte>& raw) {
  DeltaBatch of_a, of_b, out;
  if (!format::decode_delta_batch(a.raw, of_a) || !format::decode_delta_batch(b.raw, of_b) ||
      of_a.pages().size() != of_b.pages().size()) {
    return false;
  }
  for (std::uint32_t i = 0; i < of_a.pages().size(); ++i) {
    if (of_a.pages()[i].page != of_b.pages()[i].page) return false;
    if (!format::any_dropped(neither, i, 1) && !same_delta(of_a, of_b, i)) return false;
    const DeltaBatch& from = format::any_dropped(missing, i, 1) ? of_b : of_a;
    const auto& page = from.pages()[i];
    out.add(page.page, from.spans_of(page), from.bytes_of(page));
  }
  raw = format::encode_delta_batch(out, 0, out.pages().size());
  return true;
}

// The slots that only `a` has dropped, and those that both have dropped.
struct Slots {
  std::vector<SlotRange> missing, dropped;
};
Slots compare(std::span<const SlotRange> a, std::span<const SlotRange> b, std::uint32_t items) {
  const std::vector<SlotRange> of_a(a.begin(), a.end()), of_b(b.begin(), b.end());
  const auto held_by_b = store::slots_outside(of_b, items);
  const auto held_by_a = store::slots_outside(of_a, items);
  return {store::slots_outside(store::slots_in_either(held_by_a, of_b), items),
          store::slots_outside(store::slots_in_either(held_by_a, held_by_b), items)};
}

OwnedRecord encoded(const store::StoreDirectory& store, const format::RecordRef& ref,
                    RecordHeader header, std::vector<std::byte> raw,
                    std::vector<SlotRange> dropped) {
  format::Encoding encoding;
  encoding.compression_level = kMergedLevel;
  encoding.sha256 = header.has_hash;
  base::Compressor compressor;
  const auto payload = header.type == RecordType::pages
                           ? store::BlockEncoder(encoding).encode(compressor, raw)
                           : store::encode_deltas(compressor, encoding, std::move(raw));
  header.codec = payload.codec;
  header.raw_bytes = payload.raw_bytes;
  header.pack = ref.pack;
  header.offset_bytes = ref.offset_bytes;
  format::RecordSeal seal = store.record_seal();
  seal.is_alike = true;  // two merges of the same forms are compared
  OwnedRecord out;
  format::append_record(out.bytes, header, payload.hash, payload.stored, seal);
  out.record = {header.type,
                ref,
                out.bytes.size(),
                {header.pack, header.offset_bytes, header.tag()},
                std::move(dropped)};
  return out;
}

}  // namespace

std::vector<std::byte> opened_record(const store::StoreDirectory& store, const OwnedRecord& owned,
                                     format::RecordHeader& header) {
  auto out = owned.bytes;
  const char* problem = format::decode_record_header(out, header);
  if (problem == nullptr) {
    problem = format::open_record(out, header, owned.record.place, store.record_seal());
  }
  if (problem != nullptr) fail_merge(store, owned.record, problem);
  return out;
}

bool has_slots_of(std::span<const SlotRange> dropped, std::span<const SlotRange> than) {
  return store::slots_in(store::slots_in_either(dropped, than)) == store::slots_in(than);
}

OwnedRecord merged_record(const store::StoreDirectory& store, OwnedRecord a, OwnedRecord b) {
  if (has_slots_of(a.record.dropped, b.record.dropped)) return a;
  Unpacked of_a = unpack(store, a);
  const Unpacked of_b = unpack(store, b);
  RecordHeader header = of_a.header;
  const bool pages = header.type == RecordType::pages;
  if (a.record.ref != b.record.ref || header.type != of_b.header.type ||
      header.items != of_b.header.items || (!pages && header.type != RecordType::deltas) ||
      (pages &&
       (of_a.raw.size() != header.items * kPageBytes || of_b.raw.size() != of_a.raw.size()))) {
    fail_merge(store, a.record, "two forms of the record are not of one record");
  }
  Slots slots = compare(a.record.dropped, b.record.dropped, header.items);
  const auto either = store::slots_in_either(a.record.dropped, b.record.dropped);
  std::vector<std::byte> raw;
  const bool are_of_one =
      pages ? same_pages(of_a, of_b, either) : merge_deltas(of_a, of_b, slots.missing, either, raw);
  if (!are_of_one)
    fail_merge(store, a.record, "two forms of the record do not have the same content");
  if (has_slots_of(b.record.dropped, a.record.dropped)) return b;
  if (pages) raw = merged_pages(std::move(of_a), of_b, slots.missing);
  return encoded(store, a.record.ref, header, std::move(raw), std::move(slots.dropped));
}

}  // namespace vellum::remote
