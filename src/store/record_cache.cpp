#include "store/record_cache.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "base/codec.hpp"
#include "store/util.hpp"

namespace vellum::store {

using format::RecordHeader;
using format::RecordRef;
using format::RecordType;

namespace {

constexpr std::size_t kHashBytes = 32;
// Room in front of a slot's raw bytes, so that an uncompressed record is read straight to where it
// stays.
constexpr std::size_t kHeadroomBytes = 4096;
constexpr std::size_t kIndexBytes = format::kMaxDeltasPerBatch * sizeof(format::DeltaIndexLine);
constexpr std::size_t kEntriesBytes = format::kMaxEntriesPerMapBlock * sizeof(format::MapEntry);
constexpr std::size_t kMapRawBytes = format::kMaxMapBlockRawBytes;
constexpr std::size_t kMaxDecoders = 8;
constexpr std::size_t kLargeSlots = 16;
constexpr std::uint64_t kMaxOffsetBytes = 1ULL << 62;

constexpr std::size_t round_up(std::size_t n) { return (n + 4095) & ~std::size_t{4095}; }

}  // namespace

// Control words of a slot; the bytes are in the Reservation. All but `print` and `used` belong to
// who holds `lock`.
struct Slot {
  base::HandlerLock lock;
  std::atomic<std::uint64_t> print{0};  // hash of what the slot holds; 0: nothing
  std::atomic<std::uint64_t> used{0};
  RecordRef ref;
  RecordHeader header;
  std::span<const format::SlotRange> dropped;  // of the record's slots: given back
  std::byte* raw = nullptr;                    // of data slots; kHeadroomBytes lie before it
  std::byte* parsed = nullptr;
  std::size_t parsed_count = 0;
};

namespace {

// Work memory for taking one record apart.
struct Decoder {
  base::HandlerLock lock;
  std::optional<base::Decompressor> decompressor;
  std::byte* stored = nullptr;  // a whole record
  std::byte* raw = nullptr;     // of a map block
};

// Slots of one kind: two places where a record may be, the less recently used one is the victim.
struct SlotClass {
  std::unique_ptr<Slot[]> slots;
  std::size_t count = 0;
  std::atomic<std::uint64_t> clock{0};

  Slot& pick(std::uint64_t print) noexcept {
    const std::size_t first = static_cast<std::size_t>(print % count);
    const std::size_t second = first ^ 1;  // count is even
    if (slots[first].print.load(std::memory_order_relaxed) == print) return slots[first];
    if (slots[second].print.load(std::memory_order_relaxed) == print) return slots[second];
    const bool first_older = slots[first].used.load(std::memory_order_relaxed) <=
                             slots[second].used.load(std::memory_order_relaxed);
    return slots[first_older ? first : second];
  }
  void touch(Slot& slot) noexcept {
    // Not exact under contention, and need not be.
    const std::uint64_t now = clock.load(std::memory_order_relaxed) + 1;
    clock.store(now, std::memory_order_relaxed);
    slot.used.store(now, std::memory_order_relaxed);
  }
};

std::uint64_t print_of(const RecordRef& ref) noexcept {
  const std::uint64_t h =
      mix64(mix64(ref.pack) ^ ref.offset_bytes ^ (std::uint64_t{ref.tag} << 40));
  return h == 0 ? 1 : h;
}

}  // namespace

struct RecordCache::Impl {
  PackSet& packs;
  std::uint64_t seed;
  std::size_t raw_capacity;     // of a data slot
  std::size_t large_capacity;   // of a large one: any block of pages fits
  std::size_t stored_capacity;  // of a decoder
  SlotClass data, large, map;
  std::unique_ptr<Decoder[]> decoders;
  std::size_t decoder_count;
  std::atomic<std::size_t> next_decoder{0};
  base::Reservation memory;

  Impl(PackSet& p, std::uint64_t s, const format::Encoding& encoding, std::size_t budget_bytes);

  Decoder& lock_decoder() noexcept;
  Slot* find(const RecordRef& ref, RecordType type, std::uint64_t print) noexcept;
  const char* load(const RecordRef& ref, RecordType type, std::uint64_t print, Slot*& out,
                   int& os_errno) noexcept;
  SlotClass& class_for(const RecordHeader& h) noexcept;
  const char* load_data(Slot& slot, const base::File& file, const RecordRef& ref,
                        std::span<const std::byte> header, int& os_errno) noexcept;
  const char* load_map(Slot& slot, const base::File& file, const RecordRef& ref,
                       std::span<const std::byte> header, int& os_errno) noexcept;
  const char* read_record(std::byte* at, const base::File& file, const RecordRef& ref,
                          const RecordHeader& h, int& os_errno) const noexcept;
};

RecordCache::Impl::Impl(PackSet& p, std::uint64_t s, const format::Encoding& encoding,
                        std::size_t budget_bytes)
    : packs(p), seed(s) {
  raw_capacity = max_data_raw_bytes(encoding, RecordType::deltas);
  large_capacity = max_data_raw_bytes(encoding, RecordType::pages);
  const std::size_t raw_limit = std::max(large_capacity, kMapRawBytes);
  stored_capacity =
      round_up(format::kRecordHeaderBytes + kHashBytes +
               std::max({base::compress_bound(base::Codec::zstd, raw_limit),
                         base::compress_bound(base::Codec::lz4, raw_limit), raw_limit}));
  const std::size_t data_bytes = kHeadroomBytes + round_up(raw_capacity) + round_up(kIndexBytes);
  const std::size_t map_bytes = round_up(kEntriesBytes);
  // A map block is needed for every page-in and small: it has slots of its own, so data cannot push
  // it out.
  const std::size_t map_budget = budget_bytes / 8;
  data.count = std::clamp<std::size_t>((budget_bytes - map_budget) / data_bytes, 4, 1024) & ~1ul;
  map.count = std::clamp<std::size_t>(map_budget / map_bytes, 4, 1024) & ~1ul;
  // Grown blocks are few. Their slots are address space only until one comes.
  const std::size_t large_bytes = kHeadroomBytes + round_up(large_capacity);
  large.count = large_capacity > raw_capacity ? kLargeSlots : 0;
  data.slots = std::make_unique<Slot[]>(data.count);
  large.slots = std::make_unique<Slot[]>(large.count);
  map.slots = std::make_unique<Slot[]>(map.count);
  decoder_count = std::min(kMaxDecoders, data.count);
  decoders = std::make_unique<Decoder[]>(decoder_count);

  memory =
      base::Reservation(data.count * data_bytes + large.count * large_bytes +
                        map.count * map_bytes + decoder_count * (stored_capacity + kMapRawBytes));
  std::byte* at = memory.data();
  for (std::size_t i = 0; i < data.count; ++i) {
    data.slots[i].raw = at + kHeadroomBytes;
    data.slots[i].parsed = data.slots[i].raw + round_up(raw_capacity);
    at += data_bytes;
  }
  for (std::size_t i = 0; i < large.count; ++i) {
    large.slots[i].raw = at + kHeadroomBytes;
    at += large_bytes;
  }
  for (std::size_t i = 0; i < map.count; ++i) {
    map.slots[i].parsed = at;
    at += map_bytes;
  }
  for (std::size_t i = 0; i < decoder_count; ++i) {
    decoders[i].decompressor.emplace(raw_limit);
    decoders[i].stored = at;
    decoders[i].raw = at + stored_capacity;
    at += stored_capacity + kMapRawBytes;
  }
}

Decoder& RecordCache::Impl::lock_decoder() noexcept {
  const std::size_t start = next_decoder.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < decoder_count; ++i) {
    Decoder& d = decoders[(start + i) % decoder_count];
    if (d.lock.try_lock()) return d;
  }
  Decoder& d = decoders[start % decoder_count];
  d.lock.lock();
  return d;
}

// `at` holds the header already, with room for the rest: reads that, and checks everything.
const char* RecordCache::Impl::read_record(std::byte* at, const base::File& file,
                                           const RecordRef& ref, const RecordHeader& h,
                                           int& os_errno) const noexcept {
  const std::size_t total =
      format::kRecordHeaderBytes + (h.has_hash ? kHashBytes : 0) + h.stored_bytes;
  const std::span<std::byte> bytes(at, total);
  os_errno = file.try_pread(bytes.subspan(format::kRecordHeaderBytes),
                            ref.offset_bytes + format::kRecordHeaderBytes);
  if (os_errno != 0) return "the record cannot be read";
  return format::verify_record(bytes, h, ref, seed);
}

// REQUIRES: the slot is of class_for(slot.header).
const char* RecordCache::Impl::load_data(Slot& slot, const base::File& file, const RecordRef& ref,
                                         std::span<const std::byte> header,
                                         int& os_errno) noexcept {
  const RecordHeader& h = slot.header;
  const std::size_t prefix = format::kRecordHeaderBytes + (h.has_hash ? kHashBytes : 0);
  const std::size_t capacity = h.type == RecordType::pages ? large_capacity : raw_capacity;
  if (h.raw_bytes > capacity) return "the record is larger than the store's blocks";
  if (h.type == RecordType::pages &&
      std::uint64_t{h.raw_bytes} != std::uint64_t{h.items} * format::kPageBytes) {
    return "the record's size does not match its number of pages";
  }
  if (h.codec == base::Codec::none) {
    if (h.stored_bytes != h.raw_bytes) return "the record's sizes do not match";
    std::byte* at = slot.raw - prefix;
    std::memcpy(at, header.data(), header.size());
    if (const char* problem = read_record(at, file, ref, h, os_errno)) return problem;
  } else {
    if (prefix + h.stored_bytes > stored_capacity) return "the record's stored size is impossible";
    Decoder& d = lock_decoder();
    std::memcpy(d.stored, header.data(), header.size());
    const char* problem = read_record(d.stored, file, ref, h, os_errno);
    if (problem == nullptr) {
      const auto stored = format::record_payload({d.stored, prefix + h.stored_bytes}, h);
      if (!d.decompressor->decompress(h.codec, stored, {slot.raw, h.raw_bytes})) {
        problem = "the record does not decompress";
      }
    }
    d.lock.unlock();
    if (problem != nullptr) return problem;
  }
  if (h.type == RecordType::deltas) {
    const std::span lines(reinterpret_cast<format::DeltaIndexLine*>(slot.parsed),
                          format::kMaxDeltasPerBatch);
    const int n = format::index_delta_batch({slot.raw, h.raw_bytes}, lines);
    if (n < 0 || static_cast<std::uint32_t>(n) != h.items) return "the deltas do not parse";
    slot.parsed_count = static_cast<std::size_t>(n);
  }
  return nullptr;
}

const char* RecordCache::Impl::load_map(Slot& slot, const base::File& file, const RecordRef& ref,
                                        std::span<const std::byte> header, int& os_errno) noexcept {
  const RecordHeader& h = slot.header;
  const std::size_t prefix = format::kRecordHeaderBytes + (h.has_hash ? kHashBytes : 0);
  if (h.raw_bytes > kMapRawBytes) return "the map block is too large";
  if (prefix + h.stored_bytes > stored_capacity) return "the record's stored size is impossible";
  Decoder& d = lock_decoder();
  std::memcpy(d.stored, header.data(), header.size());
  const char* problem = read_record(d.stored, file, ref, h, os_errno);
  if (problem == nullptr) {
    auto raw = format::record_payload({d.stored, prefix + h.stored_bytes}, h);
    if (h.codec != base::Codec::none) {
      if (!d.decompressor->decompress(h.codec, raw, {d.raw, h.raw_bytes})) {
        problem = "the record does not decompress";
      }
      raw = {d.raw, h.raw_bytes};
    }
    if (problem == nullptr) {
      const std::span entries(reinterpret_cast<format::MapEntry*>(slot.parsed),
                              format::kMaxEntriesPerMapBlock);
      const int n = format::decode_map_block(raw, entries);
      if (n <= 0 || static_cast<std::uint32_t>(n) != h.items) {
        problem = "the map block does not parse";
      } else {
        slot.parsed_count = static_cast<std::size_t>(n);
      }
    }
  }
  d.lock.unlock();
  return problem;
}

SlotClass& RecordCache::Impl::class_for(const RecordHeader& h) noexcept {
  if (h.type == RecordType::map_block) return map;
  const bool grown = h.type == RecordType::pages && h.raw_bytes > raw_capacity;
  return grown && large.count != 0 ? large : data;
}

// The slot that holds the record, locked; nullptr: none does.
Slot* RecordCache::Impl::find(const RecordRef& ref, RecordType type, std::uint64_t print) noexcept {
  SlotClass* const classes[] = {type == RecordType::map_block ? &map : &data,
                                type == RecordType::pages ? &large : nullptr};
  for (SlotClass* slots : classes) {
    if (slots == nullptr || slots->count == 0) continue;
    Slot& slot = slots->pick(print);
    if (slot.print.load(std::memory_order_relaxed) != print) continue;
    slot.lock.lock();
    if (slot.print.load(std::memory_order_relaxed) == print && slot.ref == ref) {
      slots->touch(slot);
      return &slot;
    }
    slot.lock.unlock();
  }
  return nullptr;
}

// `out` comes back locked, or this says what is wrong.
const char* RecordCache::Impl::load(const RecordRef& ref, RecordType type, std::uint64_t print,
                                    Slot*& out, int& os_errno) noexcept {
  const RecordPlace place = packs.locate(ref);
  if (place.problem != nullptr) return place.problem;
  if (place.record.offset_bytes > kMaxOffsetBytes) return "the record's offset is impossible";
  std::array<std::byte, format::kRecordHeaderBytes> header;  // it says which slots the record fits
  os_errno = place.file->try_pread(header, place.record.offset_bytes);
  if (os_errno != 0) return "the record cannot be read";
  RecordHeader h;
  if (const char* problem = format::decode_record_header(header, h)) return problem;
  if (h.type != type) return "the record is of another type";

  SlotClass& slots = class_for(h);
  Slot& slot = slots.pick(print);
  slot.lock.lock();
  slots.touch(slot);
  const char* problem = nullptr;
  // Another thread may have brought it meanwhile.
  if (slot.print.load(std::memory_order_relaxed) != print || !(slot.ref == ref)) {
    slot.print.store(0, std::memory_order_relaxed);
    slot.header = h;
    slot.parsed_count = 0;
    problem = type == RecordType::map_block
                  ? load_map(slot, *place.file, place.record, header, os_errno)
                  : load_data(slot, *place.file, place.record, header, os_errno);
    if (problem == nullptr) {
      slot.ref = ref;
      slot.dropped = place.dropped;
      slot.print.store(print, std::memory_order_relaxed);
    }
  }
  if (problem == nullptr) {
    out = &slot;
  } else {
    slot.lock.unlock();
  }
  return problem;
}

RecordCache::RecordCache(PackSet& packs, std::uint64_t seed, const format::Encoding& encoding,
                         std::size_t budget_bytes)
    : impl_(new Impl(packs, seed, encoding, budget_bytes)) {}

RecordCache::~RecordCache() { delete impl_; }

bool RecordCache::get(const RecordRef& ref, RecordType type, View& view,
                      ReadFailure& failure) noexcept {
  view.release();
  const char* problem = "the record cannot be of this type";
  int os_errno = 0;
  if (type == RecordType::pages || type == RecordType::deltas || type == RecordType::map_block) {
    const std::uint64_t print = print_of(ref);
    Slot* slot = impl_->find(ref, type, print);
    problem = slot == nullptr             ? impl_->load(ref, type, print, slot, os_errno)
              : slot->header.type == type ? nullptr
                                          : "the record is of another type";
    if (problem == nullptr) {
      view.slot_ = slot;
      return true;
    }
    if (slot != nullptr) slot->lock.unlock();
  }
  failure.reason = problem;
  failure.record = impl_->packs.locate(ref).record;
  failure.os_errno = os_errno;
  return false;
}

void RecordCache::View::release() noexcept {
  if (slot_ != nullptr) slot_->lock.unlock();
  slot_ = nullptr;
}

const RecordHeader& RecordCache::View::header() const noexcept { return slot_->header; }

std::span<const std::byte> RecordCache::View::raw() const noexcept {
  return {slot_->raw, slot_->header.raw_bytes};
}

bool RecordCache::View::holds(std::uint32_t slot, std::uint64_t count) const noexcept {
  return !format::any_dropped(slot_->dropped, slot, count);
}

std::span<const format::DeltaIndexLine> RecordCache::View::deltas() const noexcept {
  return {reinterpret_cast<const format::DeltaIndexLine*>(slot_->parsed), slot_->parsed_count};
}

std::span<const format::MapEntry> RecordCache::View::entries() const noexcept {
  return {reinterpret_cast<const format::MapEntry*>(slot_->parsed), slot_->parsed_count};
}

}  // namespace vellum::store
