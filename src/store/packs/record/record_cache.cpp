#include "store/packs/record/record_cache.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes/codec.hpp"
#include "base/bytes/mix64.hpp"
#include "format/records/based_pages.hpp"
#include "store/packs/record/record_frames.hpp"
#include "store/packs/record/record_front.hpp"

namespace vellum::store {

using format::RecordHeader;
using format::RecordRef;
using format::RecordType;

namespace {

constexpr std::size_t kMapRawBytes = format::kMaxMapBlockRawBytes;
// Least size of a frame for pages: even where blocks are small, some that have grown a little fit.
constexpr std::size_t kMinPagesRawBytes = 128u << 10;
// Limits of a frame for few deltas: those that a snapshot of some hundred pages leaves.
constexpr std::size_t kFewDeltas = 1024;
constexpr std::size_t kFewDeltasRawBytes = 16u << 10;
constexpr std::size_t kDecoders = 8;
// Classes of frames for blocks that have grown: of twice the size of a frame for pages, and so on.
constexpr std::size_t kMaxGrown = 3;
constexpr std::uint64_t kMaxOffsetBytes = 1ULL << 62;

// Work memory for decoding one record.
struct Decoder {
  base::HandlerLock lock;
  std::optional<base::Decompressor> decompressor;
  std::byte* stored = nullptr;  // a whole record
  std::byte* raw = nullptr;     // for a map block
};

// Work memory for a record of based pages.
struct Assembly {
  base::HandlerLock lock;
  std::byte* stored = nullptr;  // the whole record
  std::byte* prefix = nullptr;  // its base pages, as the codec wants them
};
constexpr std::size_t kPrefixBytes =
    base::kPrefixZeros + format::kMaxBasePages * format::kPageBytes;

// What stands in front of a record's payload.
constexpr std::size_t front_bytes(const RecordHeader& h) noexcept {
  return format::kRecordHeaderBytes + (h.has_hash ? format::kHashBytes : 0);
}

// A record of based pages, without its pages.
struct BasedRecord {
  RecordHeader header;
  std::array<format::BasePage, format::kMaxBasePages> bases;
  std::size_t count = 0, list_bytes = 0;
};

// Says that a record has base pages, which have to be read first. It is no message.
constexpr char kIsBased[] = "the record has base pages";

// What a call of get() asks for.
struct Wanted {
  const RecordRef& ref;
  RecordType type;
  std::uint64_t fingerprint;
  DirectPages direct;            // empty: into a frame, whatever its size
  format::SlotRange slots = {};  // that must not have been given back, if there is such a form

  // Whether pages of this record go there.
  bool takes(const RecordHeader& h) const noexcept {
    constexpr std::size_t kSmallPart = 4;  // a quarter
    if (direct.out.empty()) return false;
    if (direct.slot == 0 && h.raw_bytes == direct.out.size()) return true;
    return direct.alone && direct.out.size() * kSmallPart <= h.raw_bytes &&
           direct.slot * format::kPageBytes + direct.out.size() <= h.raw_bytes;
  }
};

std::uint64_t fingerprint_of(const RecordRef& ref) noexcept {
  const std::uint64_t h =
      base::mix64(base::mix64(ref.pack) ^ ref.offset_bytes ^ (std::uint64_t{ref.tag} << 40));
  return h == 0 ? 1 : h;
}

}  // namespace

struct RecordCache::Impl {
  PackSet& packs;
  std::uint64_t seed;
  std::size_t raw_capacity;     // of a frame for pages
  std::size_t large_capacity;   // of the largest frame: any block of pages fits
  std::size_t stored_capacity;  // of a decoder
  FrameClass pages, deltas, few_deltas, map;
  std::array<FrameClass, kMaxGrown> grown;  // from small to large; those behind have no frames
  std::array<Decoder, kDecoders> decoders;
  std::array<Front, kDecoders> fronts;
  std::array<Assembly, kDecoders> assemblies;
  FrontLength pages_front;
  base::Reservation memory;

  Impl(PackSet& p, std::uint64_t s, const format::Encoding& encoding, std::size_t budget_bytes);

  void lay_out(std::size_t budget_bytes);
  Decoder& lock_decoder() noexcept;
  Front& lock_front() noexcept;
  int read_front(const base::File& file, const RecordRef& ref, RecordType type,
                 Front& front) noexcept;
  CacheFrame* find(const Wanted& wanted) noexcept;
  const char* load(const Wanted& wanted, CacheFrame*& out, RecordPlace& place,
                   int& os_errno) noexcept;
  const char* load_from(const base::File& file, const RecordPlace& place, const Wanted& wanted,
                        CacheFrame*& out, int& os_errno) noexcept;
  const char* load_read(const Front& front, const base::File& file, const RecordPlace& place,
                        const Wanted& wanted, CacheFrame*& out, int& os_errno) noexcept;
  const char* load_into_frame(const Front& front, const RecordHeader& h, const base::File& file,
                              const RecordPlace& place, const Wanted& wanted, CacheFrame*& out,
                              int& os_errno) noexcept;
  const char* load_plain(const Wanted& wanted, CacheFrame*& out, RecordPlace& place,
                         int& os_errno) noexcept;
  const char* load_based(const Wanted& wanted, CacheFrame*& out, RecordPlace& place,
                         int& os_errno) noexcept;
  const char* read_based(Assembly& assembly, const Wanted& wanted, const RecordPlace& place,
                         BasedRecord& out, int& os_errno) const noexcept;
  const char* gather(Assembly& assembly, const BasedRecord& record, RecordPlace& place,
                     int& os_errno) noexcept;
  const char* unpack_based(const Assembly& assembly, const BasedRecord& record,
                           const Wanted& wanted, CacheFrame*& out,
                           const RecordPlace& place) noexcept;
  const char* check_sizes(const RecordHeader& h) const noexcept;
  const char* decode(std::span<std::byte> out, std::size_t offset_bytes, const RecordHeader& h,
                     const base::File& file, const RecordRef& ref, std::span<const std::byte> front,
                     int& os_errno) noexcept;
  FrameClass& class_for(const RecordHeader& h) noexcept;
  const char* load_data(CacheFrame& frame, const base::File& file, const RecordRef& ref,
                        std::span<const std::byte> front, int& os_errno) noexcept;
  const char* load_map(CacheFrame& frame, const base::File& file, const RecordRef& ref,
                       std::span<const std::byte> front, int& os_errno) noexcept;
  const char* read_record(std::byte* at, const base::File& file, const RecordRef& ref,
                          const RecordHeader& h, std::span<const std::byte> front,
                          int& os_errno) const noexcept;
};

RecordCache::Impl::Impl(PackSet& p, std::uint64_t s, const format::Encoding& encoding,
                        std::size_t budget_bytes)
    : packs(p), seed(s) {
  raw_capacity = std::max<std::size_t>(encoding.block_bytes, kMinPagesRawBytes);
  large_capacity = max_data_raw_bytes(encoding, RecordType::pages);
  const std::size_t raw_limit = std::max(large_capacity, kMapRawBytes);
  stored_capacity =
      whole_pages(format::kRecordHeaderBytes + format::kHashBytes +
                  std::max({base::compress_bound(base::Codec::zstd, raw_limit),
                            base::compress_bound(base::Codec::lz4, raw_limit), raw_limit}));
  lay_out(budget_bytes);
}

// Each kind of record has frames of its own. Every page-in needs a map block and many need a record
// of deltas. Blocks of pages, which a sequential reader needs only once, must not push them out.
// docs/decisions/encoding.md has the measurements behind the shares.
void RecordCache::Impl::lay_out(std::size_t budget_bytes) {
  constexpr std::size_t kLineBytes = sizeof(format::DeltaIndexLine);
  const auto make = [&](FrameClass& frames, std::size_t sixteenths, const FrameShape& shape) {
    const std::size_t fit = budget_bytes / 16 * sixteenths / shape.frame_bytes();
    frames.make(shape, std::clamp<std::size_t>(fit, 4, 1024));
  };
  make(pages, 2, {raw_capacity, 0, 0});
  make(deltas, 6, {format::kMaxDeltaBatchRawBytes, format::kMaxDeltasPerBatch, kLineBytes});
  make(few_deltas, 3, {kFewDeltasRawBytes, kFewDeltas, kLineBytes});
  make(map, 5, {0, format::kMaxEntriesPerMapBlock, sizeof(format::MapEntry)});
  // Their frames are only address space until a grown block comes.
  std::size_t largest = raw_capacity;
  for (std::size_t i = 0; i < kMaxGrown && largest < large_capacity; ++i) {
    largest = i + 1 == kMaxGrown ? large_capacity : std::min(2 * largest, large_capacity);
    make(grown[i], kMaxGrown + 1 - i, {largest, 0, 0});
  }

  std::vector<FrameClass*> classes{&pages, &deltas, &few_deltas, &map};
  for (FrameClass& frames : grown) classes.push_back(&frames);
  constexpr std::size_t kFrontRoom = whole_pages(kFrontBytes) + whole_pages(1);
  const std::size_t assembly_bytes = stored_capacity + whole_pages(kPrefixBytes);
  std::size_t total_bytes =
      kDecoders * (stored_capacity + kMapRawBytes + kFrontRoom + assembly_bytes);
  for (const FrameClass* frames : classes) total_bytes += frames->bytes();
  memory = base::Reservation(total_bytes);
  std::byte* at = memory.data();
  for (FrameClass* frames : classes) at = frames->place(at);
  for (Decoder& d : decoders) {
    d.decompressor.emplace(std::max(large_capacity, kMapRawBytes));
    d.stored = at;
    d.raw = at + stored_capacity;
    at += stored_capacity + kMapRawBytes;
  }
  for (Front& front : fronts) {
    front.bytes = at;
    at += kFrontRoom;
  }
  for (Assembly& assembly : assemblies) {
    assembly.stored = at;
    assembly.prefix = at + stored_capacity;
    at += assembly_bytes;
  }
}

namespace {

// The one that this processor has used last, whose memory is in its cache.
template <typename Lockable>
Lockable& lock_one(std::array<Lockable, kDecoders>& of) noexcept {
  const auto start = static_cast<std::size_t>(sched_getcpu());
  for (std::size_t i = 0; i < kDecoders; ++i) {
    Lockable& one = of[(start + i) % kDecoders];
    if (one.lock.try_lock()) return one;
  }
  Lockable& one = of[start % kDecoders];
  one.lock.lock();
  return one;
}

}  // namespace

// Locking order: an assembly, a front, a frame, a decoder.
Decoder& RecordCache::Impl::lock_decoder() noexcept { return lock_one(decoders); }
Front& RecordCache::Impl::lock_front() noexcept { return lock_one(fronts); }

// Reads at least the header. Returns 0 or errno. A longer read may fail, because the bytes behind
// the record may lie past the end of the file or be unreadable.
int RecordCache::Impl::read_front(const base::File& file, const RecordRef& ref, RecordType type,
                                  Front& front) noexcept {
  front.length = type == RecordType::pages ? pages_front.from(ref.offset_bytes) : 0;
  if (front.length > format::kRecordHeaderBytes &&
      file.try_pread({front.bytes, front.length}, ref.offset_bytes) == 0) {
    return 0;
  }
  front.length = format::kRecordHeaderBytes;
  return file.try_pread({front.bytes, front.length}, ref.offset_bytes);
}

// Assembles the record at `at` and checks everything.
const char* RecordCache::Impl::read_record(std::byte* at, const base::File& file,
                                           const RecordRef& ref, const RecordHeader& h,
                                           std::span<const std::byte> front,
                                           int& os_errno) const noexcept {
  const std::size_t total = front_bytes(h) + h.stored_bytes;
  const std::span<std::byte> bytes(at, total);
  const std::size_t here = std::min(total, front.size());
  std::memcpy(at, front.data(), here);
  os_errno = here == total ? 0 : file.try_pread(bytes.subspan(here), ref.offset_bytes + here);
  if (os_errno != 0) return "the record cannot be read";
  return format::verify_record(bytes, h, ref, seed);
}

// Of a record of pages or deltas.
const char* RecordCache::Impl::check_sizes(const RecordHeader& h) const noexcept {
  const std::size_t capacity =
      format::holds_pages(h.type) ? large_capacity : format::kMaxDeltaBatchRawBytes;
  if (h.raw_bytes > capacity) return "the record is larger than the store's blocks";
  if (format::holds_pages(h.type) &&
      std::uint64_t{h.raw_bytes} != std::uint64_t{h.items} * format::kPageBytes) {
    return "the record's size does not match its number of pages";
  }
  if (h.codec == base::Codec::none && h.stored_bytes != h.raw_bytes) {
    return "the record's sizes do not match";
  }
  return nullptr;
}

// Reads the record into a decoder, and its payload, unpacked, from `offset_bytes` on, to `out`.
const char* RecordCache::Impl::decode(std::span<std::byte> out, std::size_t offset_bytes,
                                      const RecordHeader& h, const base::File& file,
                                      const RecordRef& ref, std::span<const std::byte> front,
                                      int& os_errno) noexcept {
  const std::size_t prefix = front_bytes(h);
  if (prefix + h.stored_bytes > stored_capacity) return "the record's stored size is impossible";
  Decoder& d = lock_decoder();
  const char* problem = read_record(d.stored, file, ref, h, front, os_errno);
  if (problem == nullptr) {
    const auto stored = format::record_payload({d.stored, prefix + h.stored_bytes}, h);
    const bool ok =
        out.size() == h.raw_bytes
            ? d.decompressor->decompress(h.codec, stored, out)
            : d.decompressor->decompress_part(h.codec, stored, h.raw_bytes, offset_bytes, out);
    if (!ok) problem = "the record does not decompress";
  }
  d.lock.unlock();
  return problem;
}

// REQUIRES: the frame is of class_for(frame.header).
const char* RecordCache::Impl::load_data(CacheFrame& frame, const base::File& file,
                                         const RecordRef& ref, std::span<const std::byte> front,
                                         int& os_errno) noexcept {
  const RecordHeader& h = frame.header;
  if (const char* problem = check_sizes(h)) return problem;
  const std::size_t prefix = front_bytes(h);
  const char* const problem =
      h.codec == base::Codec::none
          ? read_record(frame.raw - prefix, file, ref, h, front, os_errno)
          : decode({frame.raw, h.raw_bytes}, 0, h, file, ref, front, os_errno);
  if (problem != nullptr) return problem;
  if (h.type == RecordType::deltas) {
    const std::span lines(reinterpret_cast<format::DeltaIndexLine*>(frame.parsed),
                          class_for(h).shape.items);
    const int n = format::index_delta_batch({frame.raw, h.raw_bytes}, lines);
    if (n < 0 || static_cast<std::uint32_t>(n) != h.items) return "the deltas do not parse";
    frame.parsed_count = static_cast<std::size_t>(n);
  }
  return nullptr;
}

const char* RecordCache::Impl::load_map(CacheFrame& frame, const base::File& file,
                                        const RecordRef& ref, std::span<const std::byte> front,
                                        int& os_errno) noexcept {
  const RecordHeader& h = frame.header;
  const std::size_t prefix = front_bytes(h);
  if (h.raw_bytes > kMapRawBytes) return "the map block is too large";
  if (prefix + h.stored_bytes > stored_capacity) return "the record's stored size is impossible";
  Decoder& d = lock_decoder();
  const char* problem = read_record(d.stored, file, ref, h, front, os_errno);
  if (problem == nullptr) {
    auto raw = format::record_payload({d.stored, prefix + h.stored_bytes}, h);
    if (h.codec != base::Codec::none) {
      if (!d.decompressor->decompress(h.codec, raw, {d.raw, h.raw_bytes})) {
        problem = "the record does not decompress";
      }
      raw = {d.raw, h.raw_bytes};
    }
    if (problem == nullptr) {
      const std::span entries(reinterpret_cast<format::MapEntry*>(frame.parsed), map.shape.items);
      const int n = format::decode_map_block(raw, entries);
      if (n <= 0 || static_cast<std::uint32_t>(n) != h.items) {
        problem = "the map block does not parse";
      } else {
        frame.parsed_count = static_cast<std::size_t>(n);
      }
    }
  }
  d.lock.unlock();
  return problem;
}

FrameClass& RecordCache::Impl::class_for(const RecordHeader& h) noexcept {
  if (h.type == RecordType::map_block) return map;
  if (h.type == RecordType::deltas) {
    return h.items <= kFewDeltas && h.raw_bytes <= kFewDeltasRawBytes ? few_deltas : deltas;
  }
  if (h.raw_bytes <= raw_capacity) return pages;
  const auto fits = [&](const FrameClass& f) { return h.raw_bytes <= f.shape.raw_bytes; };
  const auto found = std::find_if(grown.begin(), grown.end(), fits);
  return found == grown.end() ? pages : *found;  // none: check_sizes() refuses the record
}

// The frame that holds the record with the slots, locked; nullptr if none does.
CacheFrame* RecordCache::Impl::find(const Wanted& wanted) noexcept {
  const auto among = [&](FrameClass& frames) noexcept -> CacheFrame* {
    CacheFrame* const frame = frames.find(wanted.fingerprint);
    if (frame == nullptr) return nullptr;
    frame->lock.lock();
    if (frame->fingerprint.load(std::memory_order_relaxed) == wanted.fingerprint &&
        frame->ref == wanted.ref &&
        !format::any_dropped(frame->dropped, wanted.slots.first, wanted.slots.count)) {
      frames.touch(*frame);
      return frame;
    }
    frame->lock.unlock();
    return nullptr;
  };
  if (wanted.type == RecordType::map_block) return among(map);
  if (wanted.type == RecordType::deltas) {
    CacheFrame* const frame = among(few_deltas);
    return frame != nullptr ? frame : among(deltas);
  }
  CacheFrame* frame = among(pages);
  for (auto next = grown.begin(); frame == nullptr && next != grown.end(); ++next) {
    frame = among(*next);
  }
  return frame;
}

// Returns null and `out` locked, or what is wrong.
const char* RecordCache::Impl::load(const Wanted& wanted, CacheFrame*& out, RecordPlace& place,
                                    int& os_errno) noexcept {
  place = packs.locate(wanted.ref, wanted.slots);
  os_errno = place.os_errno;
  if (place.problem != nullptr) return place.problem;
  if (place.record.offset_bytes > kMaxOffsetBytes) return "the record's offset is impossible";
  // A copy may lack the record. Its bytes are checked like those of the pack, and a failure is not
  // reported.
  if (place.copy != nullptr && load_from(*place.copy, place, wanted, out, os_errno) == nullptr) {
    return nullptr;
  }
  return load_from(*place.file, place, wanted, out, os_errno);
}

const char* RecordCache::Impl::load_from(const base::File& file, const RecordPlace& place,
                                         const Wanted& wanted, CacheFrame*& out,
                                         int& os_errno) noexcept {
  Front& front = lock_front();
  os_errno = read_front(file, place.record, wanted.type, front);
  const char* const problem = os_errno != 0 ? "the record cannot be read"
                                            : load_read(front, file, place, wanted, out, os_errno);
  front.lock.unlock();
  return problem;
}

const char* RecordCache::Impl::load_read(const Front& front, const base::File& file,
                                         const RecordPlace& place, const Wanted& wanted,
                                         CacheFrame*& out, int& os_errno) noexcept {
  RecordHeader h;  // tells which frames the record fits
  const auto header = front.read().first(format::kRecordHeaderBytes);
  if (const char* problem = format::decode_record_header(header, h)) return problem;
  if (h.type == RecordType::based_pages && wanted.type == RecordType::pages) return kIsBased;
  if (h.type != wanted.type) return "the record is of another type";
  if (h.type == RecordType::pages) {
    pages_front.note(format::kRecordHeaderBytes + format::kHashBytes + h.stored_bytes);
  }
  if (wanted.takes(h) && place.dropped.empty()) {
    if (const char* problem = check_sizes(h)) return problem;
    return decode(wanted.direct.out, wanted.direct.slot * format::kPageBytes, h, file, place.record,
                  front.read(), os_errno);
  }
  return load_into_frame(front, h, file, place, wanted, out, os_errno);
}

const char* RecordCache::Impl::load_into_frame(const Front& front, const RecordHeader& h,
                                               const base::File& file, const RecordPlace& place,
                                               const Wanted& wanted, CacheFrame*& out,
                                               int& os_errno) noexcept {
  FrameClass& frames = class_for(h);
  CacheFrame& frame = frames.pick(wanted.fingerprint);
  frame.lock.lock();
  frames.touch(frame);
  const char* problem = nullptr;
  // Another thread may have loaded it meanwhile.
  if (frame.fingerprint.load(std::memory_order_relaxed) != wanted.fingerprint ||
      !(frame.ref == wanted.ref) ||
      format::any_dropped(frame.dropped, wanted.slots.first, wanted.slots.count)) {
    frame.fingerprint.store(0, std::memory_order_relaxed);
    frame.header = h;
    frame.parsed_count = 0;
    problem = h.type == RecordType::map_block
                  ? load_map(frame, file, place.record, front.read(), os_errno)
                  : load_data(frame, file, place.record, front.read(), os_errno);
    if (problem == nullptr) {
      frame.ref = wanted.ref;
      frame.dropped = place.dropped;
      frame.fingerprint.store(wanted.fingerprint, std::memory_order_relaxed);
    }
  }
  if (problem == nullptr) {
    out = &frame;
  } else {
    frame.lock.unlock();
  }
  return problem;
}

// As get() does it, for a record that may have base pages but is not one.
const char* RecordCache::Impl::load_plain(const Wanted& wanted, CacheFrame*& out,
                                          RecordPlace& place, int& os_errno) noexcept {
  out = find(wanted);
  if (out == nullptr) return load(wanted, out, place, os_errno);
  const RecordType found = out->header.type;
  if (wanted.type == RecordType::pages && format::holds_pages(found)) return nullptr;
  return found == wanted.type ? nullptr : "the record is of another type";
}

// The record with its list of base pages; the rest of the payload stays in the assembly.
const char* RecordCache::Impl::read_based(Assembly& assembly, const Wanted& wanted,
                                          const RecordPlace& place, BasedRecord& out,
                                          int& os_errno) const noexcept {
  std::array<std::byte, format::kRecordHeaderBytes> head;
  const auto read_from = [&](const base::File& file) noexcept -> const char* {
    os_errno = file.try_pread(head, place.record.offset_bytes);
    if (os_errno != 0) return "the record cannot be read";
    RecordHeader& h = out.header;
    if (const char* problem = format::decode_record_header(head, h)) return problem;
    if (h.type != RecordType::based_pages) return "the record is of another type";
    if (const char* problem = check_sizes(h)) return problem;
    const std::size_t front = front_bytes(h);
    if (front + h.stored_bytes > stored_capacity) return "the record's stored size is impossible";
    return read_record(assembly.stored, file, place.record, h, head, os_errno);
  };
  const char* problem = kIsBased;
  if (place.copy != nullptr) problem = read_from(*place.copy);
  if (problem != nullptr) problem = read_from(*place.file);
  if (problem != nullptr) return problem;
  const RecordHeader& h = out.header;
  const std::size_t front = front_bytes(h);
  const auto stored = format::record_payload({assembly.stored, front + h.stored_bytes}, h);
  out.count = format::decode_base_pages(stored, wanted.ref.offset_bytes, out.bases, out.list_bytes);
  return out.count == 0 ? "the record's base pages do not parse" : nullptr;
}

// Puts the base pages together. `place` comes with the place of the record; it leaves with that of a
// record of base pages where such a one is to blame.
const char* RecordCache::Impl::gather(Assembly& assembly, const BasedRecord& record,
                                      RecordPlace& place, int& os_errno) noexcept {
  const std::uint64_t pack = record.header.pack;
  std::byte* to = assembly.prefix;
  std::memset(to, 0, base::kPrefixZeros);
  to += base::kPrefixZeros;
  CacheFrame* frame = nullptr;
  const char* problem = nullptr;
  for (std::size_t i = 0; problem == nullptr && i < record.count; ++i, to += format::kPageBytes) {
    const format::BasePage& b = record.bases[i];
    if (frame == nullptr || frame->ref.offset_bytes != b.offset_bytes ||
        format::any_dropped(frame->dropped, b.slot, 1)) {
      if (frame != nullptr) frame->lock.unlock();
      frame = nullptr;
      RecordPlace at;
      const RecordRef ref{pack, b.offset_bytes, b.tag};
      problem = load_plain({ref, RecordType::pages, fingerprint_of(ref), {}, {b.slot, 1}}, frame,
                           at, os_errno);
      if (problem == nullptr && frame->header.type != RecordType::pages) problem = kIsBased;
      if (problem == kIsBased) problem = "a base page lies in a record that has base pages";
      if (problem != nullptr) {
        if (at.file != nullptr) place = at;
        break;
      }
    }
    if (b.slot >= frame->header.items || format::any_dropped(frame->dropped, b.slot, 1)) {
      problem = "the record lacks a base page";
    } else {
      std::memcpy(to, frame->raw + b.slot * format::kPageBytes, format::kPageBytes);
    }
  }
  if (frame != nullptr) frame->lock.unlock();
  return problem;
}

const char* RecordCache::Impl::unpack_based(const Assembly& assembly, const BasedRecord& record,
                                            const Wanted& wanted, CacheFrame*& out,
                                            const RecordPlace& place) noexcept {
  const RecordHeader& h = record.header;
  FrameClass& frames = class_for(h);
  CacheFrame& frame = frames.pick(wanted.fingerprint);
  frame.lock.lock();
  frames.touch(frame);
  out = &frame;
  // Another thread may have loaded it meanwhile.
  if (frame.fingerprint.load(std::memory_order_relaxed) == wanted.fingerprint &&
      frame.ref == wanted.ref) {
    return nullptr;
  }
  frame.fingerprint.store(0, std::memory_order_relaxed);
  frame.header = h;
  frame.parsed_count = 0;
  const std::size_t front = front_bytes(h);
  const auto stored = format::record_payload({assembly.stored, front + h.stored_bytes}, h);
  const std::size_t prefix_bytes = base::kPrefixZeros + record.count * format::kPageBytes;
  Decoder& d = lock_decoder();
  const bool ok = d.decompressor->decompress_on(
      {assembly.prefix, prefix_bytes}, stored.subspan(record.list_bytes), {frame.raw, h.raw_bytes});
  d.lock.unlock();
  if (!ok) {
    frame.lock.unlock();
    out = nullptr;
    return "the record does not decompress";
  }
  frame.ref = wanted.ref;
  frame.dropped = place.dropped;
  frame.fingerprint.store(wanted.fingerprint, std::memory_order_relaxed);
  return nullptr;
}

const char* RecordCache::Impl::load_based(const Wanted& wanted, CacheFrame*& out,
                                          RecordPlace& place, int& os_errno) noexcept {
  BasedRecord record;
  Assembly* assembly = &lock_one(assemblies);
  const char* problem = read_based(*assembly, wanted, place, record, os_errno);
  if (problem == nullptr && packs.is_remote(wanted.ref.pack)) {
    // What has to come here is waited for without a lock.
    assembly->lock.unlock();
    for (std::size_t i = 0; i < record.count; ++i) {
      const format::BasePage& b = record.bases[i];
      packs.locate({wanted.ref.pack, b.offset_bytes, b.tag}, {b.slot, 1});
    }
    assembly = &lock_one(assemblies);
    problem = read_based(*assembly, wanted, place, record, os_errno);
  }
  const RecordPlace own = place;
  // A translation gives the header another place; references use the pack's id alone.
  if (problem == nullptr) problem = gather(*assembly, record, place, os_errno);
  if (problem == nullptr) problem = unpack_based(*assembly, record, wanted, out, own);
  assembly->lock.unlock();
  return problem;
}

RecordCache::RecordCache(PackSet& packs, std::uint64_t seed, const format::Encoding& encoding,
                         std::size_t budget_bytes)
    : impl_(new Impl(packs, seed, encoding, budget_bytes)) {}

RecordCache::~RecordCache() { delete impl_; }

bool RecordCache::get(const RecordRef& ref, RecordType type, View& view, ReadFailure& failure,
                      const DirectPages& direct, const format::SlotRange& slots) noexcept {
  view.release();
  const char* problem = "the record cannot be of this type";
  int os_errno = 0;
  RecordPlace place;
  place.record = ref;
  if (type == RecordType::pages || type == RecordType::deltas || type == RecordType::map_block) {
    CacheFrame* frame = nullptr;
    const Wanted wanted{ref, type, fingerprint_of(ref), direct, slots};
    problem = impl_->load_plain(wanted, frame, place, os_errno);
    if (problem == kIsBased) {
      problem = impl_->load_based({ref, type, wanted.fingerprint, {}}, frame, place, os_errno);
    }
    if (problem == nullptr) {
      view.frame_ = frame;
      return true;
    }
    if (frame != nullptr) {
      frame->lock.unlock();  // locate() may wait
      place = impl_->packs.locate(ref, slots);
    }
  }
  failure.reason = problem;
  failure.record = place.record;
  failure.os_errno = os_errno;
  failure.file = place.file;
  return false;
}

void RecordCache::View::release() noexcept {
  if (frame_ != nullptr) frame_->lock.unlock();
  frame_ = nullptr;
}

const RecordHeader& RecordCache::View::header() const noexcept { return frame_->header; }

std::span<const std::byte> RecordCache::View::raw() const noexcept {
  return {frame_->raw, frame_->header.raw_bytes};
}

bool RecordCache::View::holds(std::uint32_t slot, std::uint64_t count) const noexcept {
  return !format::any_dropped(frame_->dropped, slot, count);
}

std::span<const format::DeltaIndexLine> RecordCache::View::deltas() const noexcept {
  return {reinterpret_cast<const format::DeltaIndexLine*>(frame_->parsed), frame_->parsed_count};
}

std::span<const format::MapEntry> RecordCache::View::entries() const noexcept {
  return {reinterpret_cast<const format::MapEntry*>(frame_->parsed), frame_->parsed_count};
}

}  // namespace vellum::store
