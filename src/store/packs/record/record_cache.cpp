#include "store/packs/record/record_cache.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
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
// The minimum size of a frame for pages: even if blocks are small, slightly grown ones fit.
constexpr std::size_t kMinPagesRawBytes = 128u << 10;
// Limits of a frame for few deltas: enough for a snapshot of some hundred pages.
constexpr std::size_t kFewDeltas = 1024;
constexpr std::size_t kFewDeltasRawBytes = 16u << 10;
constexpr std::size_t kDecoders = 8;
// Classes of frames for grown blocks: twice the size of a frame for pages, four times, and so on.
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
  std::byte* prefix = nullptr;  // its base pages, in the codec's layout
};
constexpr std::size_t kPrefixBytes =
    base::kPrefixZeros + format::kMaxBasePages * format::kPageBytes;

// The bytes in front of a record's payload.
constexpr std::size_t front_bytes(const RecordHeader& h) noexcept {
  return format::kRecordHeaderBytes + (h.has_hash ? format::kHashBytes : 0);
}

// A record of based pages, without its pages.
struct BasedRecord {
  RecordHeader header;
  std::array<format::BasePage, format::kMaxBasePages> bases;
  std::size_t count = 0, list_bytes = 0;
};

// Why a record cannot be loaded. No allocation: the fault handler uses it.
enum class LoadProblem : std::uint8_t {
  none,
  has_base_pages,  // no error by itself: its base pages have to be loaded first
  described,       // by a text of `format` or of PackSet::locate()
  impossible_type,
  another_type,
  impossible_offset,
  impossible_stored_size,
  cannot_be_read,
  too_large,
  map_block_too_large,
  page_count_mismatch,
  size_mismatch,
  does_not_decompress,
  deltas_do_not_parse,
  map_block_does_not_parse,
  base_pages_do_not_parse,
  base_page_lacking,
  base_page_has_base_pages,
};

constexpr const char* text_of(LoadProblem problem) noexcept {
  switch (problem) {
    case LoadProblem::none:
    case LoadProblem::described:
      return nullptr;
    case LoadProblem::has_base_pages:
      return "the record has base pages";
    case LoadProblem::impossible_type:
      return "the record cannot be of this type";
    case LoadProblem::another_type:
      return "the record is of another type";
    case LoadProblem::impossible_offset:
      return "the record's offset is impossible";
    case LoadProblem::impossible_stored_size:
      return "the record's stored size is impossible";
    case LoadProblem::cannot_be_read:
      return "the record cannot be read";
    case LoadProblem::too_large:
      return "the record is larger than the store's blocks";
    case LoadProblem::map_block_too_large:
      return "the map block is too large";
    case LoadProblem::page_count_mismatch:
      return "the record's size does not match its number of pages";
    case LoadProblem::size_mismatch:
      return "the record's sizes do not match";
    case LoadProblem::does_not_decompress:
      return "the record does not decompress";
    case LoadProblem::deltas_do_not_parse:
      return "the deltas do not parse";
    case LoadProblem::map_block_does_not_parse:
      return "the map block does not parse";
    case LoadProblem::base_pages_do_not_parse:
      return "the record's base pages do not parse";
    case LoadProblem::base_page_lacking:
      return "the record lacks a base page";
    case LoadProblem::base_page_has_base_pages:
      return "the record of a base page has base pages";
  }
  return nullptr;
}

std::uint64_t fingerprint_of(const RecordRef& ref) noexcept {
  const std::uint64_t h =
      base::mix64(base::mix64(ref.pack) ^ ref.offset_bytes ^ (std::uint64_t{ref.tag} << 40));
  return h == 0 ? 1 : h;
}

}  // namespace

struct RecordCache::Impl {
  PackSet& packs;
  format::RecordSeal seal;
  std::size_t raw_capacity;     // of a frame for pages
  std::size_t large_capacity;   // of the largest frame: any block of pages fits
  std::size_t stored_capacity;  // of a decoder
  FrameClass pages, deltas, few_deltas, map;
  std::array<FrameClass, kMaxGrown> grown;  // ascending by size; unused classes have no frames
  std::array<Decoder, kDecoders> decoders;
  std::array<Front, kDecoders> fronts;
  std::array<Assembly, kDecoders> assemblies;
  FrontLength pages_front;
  base::Reservation memory;

  Impl(PackSet& p, const format::RecordSeal& s, const format::Encoding& encoding,
       std::size_t budget_bytes);

  void lay_out(std::size_t budget_bytes);
  FrameClass& class_for(const RecordHeader& h) noexcept;
};

// One look-up of a record, from get() to its frame.
// Lock order: an assembly, a front, a frame, a decoder.
struct RecordCache::Load {
  Impl& cache;

  // The request.
  const RecordRef ref;
  const RecordType type;
  DirectPages direct;       // empty: into a frame, whatever its size
  format::SlotRange slots;  // that must not be dropped, if there is such a form
  const std::uint64_t fingerprint;

  // The result: a locked frame; without a problem and a frame, the pages are at `direct`.
  CacheFrame* frame = nullptr;
  RecordPlace place;
  int os_errno = 0;
  const char* description = nullptr;  // of LoadProblem::described

  // The file that is being read, the first bytes of the record in it, and its header.
  const base::File* file = nullptr;
  std::span<const std::byte> front;
  RecordHeader header;

  Load(Impl& c, const RecordRequest& r) noexcept
      : cache(c),
        ref(r.ref),
        type(r.type),
        direct(r.direct),
        slots(r.slots),
        fingerprint(fingerprint_of(r.ref)) {
    place.record = ref;
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  LoadProblem load() noexcept;
  LoadProblem load_based() noexcept;
  const char* reason(LoadProblem problem) const noexcept {
    return problem == LoadProblem::described ? description : text_of(problem);
  }

 private:
  LoadProblem find() noexcept;
  CacheFrame* find_among(FrameClass& frames) const noexcept;
  LoadProblem load_from(const base::File& from) noexcept;
  LoadProblem read_front(Front& bytes) noexcept;
  LoadProblem fill_frame() noexcept;
  LoadProblem fill_data(CacheFrame& target) noexcept;
  LoadProblem fill_map(CacheFrame& target) noexcept;
  LoadProblem unpack(std::span<std::byte> out, std::size_t offset_bytes) noexcept;
  LoadProblem read_record(std::byte* at) noexcept;
  LoadProblem read_based(Assembly& assembly, BasedRecord& record) noexcept;
  LoadProblem read_whole(const base::File& from, Assembly& assembly) noexcept;
  LoadProblem gather(Assembly& assembly, const BasedRecord& record) noexcept;
  LoadProblem unpack_based(const Assembly& assembly, const BasedRecord& record) noexcept;
  LoadProblem check_sizes() const noexcept;
  bool goes_direct() const noexcept;
  bool is_loaded(const CacheFrame& in) const noexcept;
  void publish(CacheFrame& target, const RecordPlace& at) const noexcept;
  // The frames have room for a seal only in an encrypted store.
  LoadProblem decode_header(std::span<const std::byte> bytes) noexcept {
    const char* problem = format::decode_record_header(bytes, header);
    return described(problem != nullptr ? problem : format::check_sealed(header, cache.seal));
  }
  LoadProblem described(const char* text) noexcept {
    description = text;
    return text == nullptr ? LoadProblem::none : LoadProblem::described;
  }
};

RecordCache::Impl::Impl(PackSet& p, const format::RecordSeal& s, const format::Encoding& encoding,
                        std::size_t budget_bytes)
    : packs(p), seal(s) {
  raw_capacity = std::max<std::size_t>(encoding.block_bytes, kMinPagesRawBytes);
  large_capacity = max_data_raw_bytes(encoding, RecordType::pages);
  const std::size_t raw_limit = std::max(large_capacity, kMapRawBytes);
  stored_capacity = whole_pages(format::kRecordHeaderBytes + format::kHashBytes +
                                base::max_compress_bound(raw_limit) + format::kSealBytes);
  lay_out(budget_bytes);
}

// Each kind of record has its own frames. Every page-in needs a map block, and many need a record
// of deltas. Blocks of pages, which a sequential reader needs only once, must not evict these.
// Measurements of the shares: docs/decisions/encoding.md.
void RecordCache::Impl::lay_out(std::size_t budget_bytes) {
  constexpr std::size_t kLineBytes = sizeof(format::DeltaIndexLine);
  const auto make = [&](FrameClass& frames, std::size_t sixteenths, const FrameShape& shape) {
    const std::size_t fit = budget_bytes / 16 * sixteenths / shape.frame_bytes();
    frames.make(shape, std::clamp<std::size_t>(fit, 4, 1024));
  };
  // An uncompressed record is read into its frame, with its seal.
  const std::size_t sealed = format::seal_bytes(seal.keys != nullptr);
  make(pages, 2, {raw_capacity + sealed, 0, 0});
  make(deltas, 6,
       {format::kMaxDeltaBatchRawBytes + sealed, format::kMaxDeltasPerBatch, kLineBytes});
  make(few_deltas, 3, {kFewDeltasRawBytes + sealed, kFewDeltas, kLineBytes});
  make(map, 5, {0, format::kMaxEntriesPerMapBlock, sizeof(format::MapEntry)});
  // These frames are only address space until a grown block is loaded.
  std::size_t largest = raw_capacity;
  for (std::size_t i = 0; i < kMaxGrown && largest < large_capacity; ++i) {
    largest = i + 1 == kMaxGrown ? large_capacity : std::min(2 * largest, large_capacity);
    make(grown[i], kMaxGrown + 1 - i, {largest + sealed, 0, 0});
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
  assert(at == memory.data() + total_bytes);
}

namespace {

// The one that this processor used last: its memory is in the processor's cache.
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

// Loads the record unless a frame holds it. has_base_pages: load_based() can load it.
LoadProblem RecordCache::Load::load() noexcept {
  if (const LoadProblem problem = find(); frame != nullptr) return problem;
  place = cache.packs.locate(ref, slots);
  os_errno = place.os_errno;
  if (place.problem != nullptr) return described(place.problem);
  if (place.record.offset_bytes > kMaxOffsetBytes) return LoadProblem::impossible_offset;
  assert(place.file != nullptr);
  // A copy may lack the record. Its bytes are checked like those of the pack, and a failure is not
  // reported.
  if (place.copy != nullptr && load_from(*place.copy) == LoadProblem::none) {
    return LoadProblem::none;
  }
  return load_from(*place.file);
}

// Locks the frame that holds the record with the slots, if one does.
LoadProblem RecordCache::Load::find() noexcept {
  if (type == RecordType::map_block) {
    frame = find_among(cache.map);
  } else if (type == RecordType::deltas) {
    frame = find_among(cache.few_deltas);
    if (frame == nullptr) frame = find_among(cache.deltas);
  } else {
    frame = find_among(cache.pages);
    for (auto next = cache.grown.begin(); frame == nullptr && next != cache.grown.end(); ++next) {
      frame = find_among(*next);
    }
  }
  if (frame == nullptr) return LoadProblem::none;
  const RecordType found = frame->header.type;
  if (type == RecordType::pages && format::holds_pages(found)) return LoadProblem::none;
  return found == type ? LoadProblem::none : LoadProblem::another_type;
}

CacheFrame* RecordCache::Load::find_among(FrameClass& frames) const noexcept {
  CacheFrame* const found = frames.find(fingerprint);
  if (found == nullptr) return nullptr;
  found->lock.lock();
  if (is_loaded(*found)) {
    frames.touch(*found);
    return found;
  }
  found->lock.unlock();
  return nullptr;
}

// REQUIRES: the frame is locked.
bool RecordCache::Load::is_loaded(const CacheFrame& in) const noexcept {
  return in.fingerprint.load(std::memory_order_relaxed) == fingerprint && in.ref == ref &&
         !format::any_dropped(in.dropped, slots.first, slots.count);
}

LoadProblem RecordCache::Load::load_from(const base::File& from) noexcept {
  file = &from;
  Front& bytes = lock_one(cache.fronts);
  LoadProblem problem = read_front(bytes);
  if (problem == LoadProblem::none) {
    front = bytes.read();
    problem = decode_header(front.first(format::kRecordHeaderBytes));
  }
  if (problem == LoadProblem::none && header.type != type) {
    problem = header.type == RecordType::based_pages && type == RecordType::pages
                  ? LoadProblem::has_base_pages
                  : LoadProblem::another_type;
  }
  if (problem == LoadProblem::none) {
    if (header.type == RecordType::pages) {
      cache.pages_front.note(format::kRecordHeaderBytes + format::kHashBytes + header.stored_bytes +
                             format::seal_bytes(header.sealed));
    }
    if (!goes_direct()) {
      problem = fill_frame();
    } else if (problem = check_sizes(); problem == LoadProblem::none) {
      problem = unpack(direct.out, direct.slot * format::kPageBytes);
    }
  }
  front = {};
  bytes.lock.unlock();
  return problem;
}

// Reads at least the header. A longer read may fail, because the bytes behind the record may be
// past the end of the file or unreadable.
LoadProblem RecordCache::Load::read_front(Front& bytes) noexcept {
  const std::uint64_t at = place.record.offset_bytes;
  bytes.length = type == RecordType::pages ? cache.pages_front.from(at) : 0;
  if (bytes.length > format::kRecordHeaderBytes &&
      file->try_pread({bytes.bytes, bytes.length}, at) == 0) {
    os_errno = 0;
    return LoadProblem::none;
  }
  bytes.length = format::kRecordHeaderBytes;
  os_errno = file->try_pread({bytes.bytes, bytes.length}, at);
  return os_errno == 0 ? LoadProblem::none : LoadProblem::cannot_be_read;
}

// Whether the pages of this record are decoded to `direct`.
bool RecordCache::Load::goes_direct() const noexcept {
  constexpr std::size_t kSmallPart = 4;  // a quarter
  if (direct.out.empty() || !place.dropped.empty()) return false;
  if (direct.slot == 0 && header.raw_bytes == direct.out.size()) return true;
  return direct.alone && direct.out.size() * kSmallPart <= header.raw_bytes &&
         direct.slot * format::kPageBytes + direct.out.size() <= header.raw_bytes;
}

LoadProblem RecordCache::Load::fill_frame() noexcept {
  FrameClass& frames = cache.class_for(header);
  CacheFrame& target = frames.pick(fingerprint);
  target.lock.lock();
  frames.touch(target);
  LoadProblem problem = LoadProblem::none;
  if (!is_loaded(target)) {  // another thread may have loaded it meanwhile
    target.fingerprint.store(0, std::memory_order_relaxed);
    target.header = header;
    target.parsed_count = 0;
    problem = header.type == RecordType::map_block ? fill_map(target) : fill_data(target);
    if (problem == LoadProblem::none) publish(target, place);
  }
  if (problem == LoadProblem::none) {
    frame = &target;
  } else {
    target.lock.unlock();
  }
  return problem;
}

// The frame's content is complete. REQUIRES: the frame is locked.
void RecordCache::Load::publish(CacheFrame& target, const RecordPlace& at) const noexcept {
  assert(target.fingerprint.load(std::memory_order_relaxed) == 0);
  target.ref = ref;
  target.dropped = at.dropped;
  target.fingerprint.store(fingerprint, std::memory_order_relaxed);
}

// Of a record of pages or deltas.
LoadProblem RecordCache::Load::check_sizes() const noexcept {
  const RecordHeader& h = header;
  const std::size_t capacity =
      format::holds_pages(h.type) ? cache.large_capacity : format::kMaxDeltaBatchRawBytes;
  if (h.raw_bytes > capacity) return LoadProblem::too_large;
  if (format::holds_pages(h.type) &&
      std::uint64_t{h.raw_bytes} != std::uint64_t{h.items} * format::kPageBytes) {
    return LoadProblem::page_count_mismatch;
  }
  if (h.codec == base::Compression::none && h.stored_bytes != h.raw_bytes) {
    return LoadProblem::size_mismatch;
  }
  return LoadProblem::none;
}

// REQUIRES: the frame is locked, and of class_for(header).
LoadProblem RecordCache::Load::fill_data(CacheFrame& target) noexcept {
  const RecordHeader& h = header;
  if (const LoadProblem problem = check_sizes(); problem != LoadProblem::none) return problem;
  assert(h.raw_bytes <= cache.class_for(h).shape.raw_bytes);
  assert(target.raw != nullptr);
  // The header and the hash of an uncompressed record are read into the headroom.
  const LoadProblem problem = h.codec == base::Compression::none
                                  ? read_record(target.raw - front_bytes(h))
                                  : unpack({target.raw, h.raw_bytes}, 0);
  if (problem != LoadProblem::none || h.type != RecordType::deltas) return problem;
  const std::span lines(reinterpret_cast<format::DeltaIndexLine*>(target.parsed),
                        cache.class_for(h).shape.items);
  const int n = format::index_delta_batch({target.raw, h.raw_bytes}, lines);
  if (n < 0 || static_cast<std::uint32_t>(n) != h.items) return LoadProblem::deltas_do_not_parse;
  target.parsed_count = static_cast<std::size_t>(n);
  return LoadProblem::none;
}

// REQUIRES: the frame is locked, and of the class for map blocks.
LoadProblem RecordCache::Load::fill_map(CacheFrame& target) noexcept {
  const RecordHeader& h = header;
  assert(h.type == RecordType::map_block && target.parsed != nullptr);
  const std::size_t total = format::record_body_bytes(h);
  if (h.raw_bytes > kMapRawBytes) return LoadProblem::map_block_too_large;
  if (total > cache.stored_capacity) return LoadProblem::impossible_stored_size;
  Decoder& d = lock_one(cache.decoders);
  LoadProblem problem = read_record(d.stored);
  if (problem == LoadProblem::none) {
    auto raw = format::record_payload({d.stored, total}, h);
    if (h.codec != base::Compression::none) {
      if (!d.decompressor->decompress(h.codec, raw, {d.raw, h.raw_bytes})) {
        problem = LoadProblem::does_not_decompress;
      }
      raw = {d.raw, h.raw_bytes};
    }
    if (problem == LoadProblem::none) {
      const std::span entries(reinterpret_cast<format::MapEntry*>(target.parsed),
                              cache.map.shape.items);
      const int n = format::decode_map_block(raw, entries);
      if (n <= 0 || static_cast<std::uint32_t>(n) != h.items) {
        problem = LoadProblem::map_block_does_not_parse;
      } else {
        target.parsed_count = static_cast<std::size_t>(n);
      }
    }
  }
  d.lock.unlock();
  return problem;
}

// Reads the record into a decoder, and unpacks its payload from `offset_bytes` on to `out`.
LoadProblem RecordCache::Load::unpack(std::span<std::byte> out, std::size_t offset_bytes) noexcept {
  const RecordHeader& h = header;
  assert(offset_bytes + out.size() <= h.raw_bytes);
  const std::size_t total = format::record_body_bytes(h);
  if (total > cache.stored_capacity) return LoadProblem::impossible_stored_size;
  Decoder& d = lock_one(cache.decoders);
  LoadProblem problem = read_record(d.stored);
  if (problem == LoadProblem::none) {
    const auto stored = format::record_payload({d.stored, total}, h);
    const bool ok =
        out.size() == h.raw_bytes
            ? d.decompressor->decompress(h.codec, stored, out)
            : d.decompressor->decompress_part(h.codec, stored, h.raw_bytes, offset_bytes, out);
    if (!ok) problem = LoadProblem::does_not_decompress;
  }
  d.lock.unlock();
  return problem;
}

// Assembles the record at `at` from `front` and the file, and checks everything.
LoadProblem RecordCache::Load::read_record(std::byte* at) noexcept {
  assert(file != nullptr && at != nullptr);
  assert(front.size() <= kFrontBytes + format::kPageBytes);
  const std::span<std::byte> bytes(at, format::record_body_bytes(header));
  const std::size_t known = std::min(bytes.size(), front.size());
  std::memcpy(at, front.data(), known);
  os_errno = known == bytes.size()
                 ? 0
                 : file->try_pread(bytes.subspan(known), place.record.offset_bytes + known);
  if (os_errno != 0) return LoadProblem::cannot_be_read;
  return described(format::open_record(bytes, header, place.record, cache.seal));
}

// Loads a record of based pages into a frame. REQUIRES: load() returned has_base_pages.
LoadProblem RecordCache::Load::load_based() noexcept {
  assert(frame == nullptr && type == RecordType::pages);
  direct = {};
  slots = {};
  BasedRecord record;
  Assembly* assembly = &lock_one(cache.assemblies);
  LoadProblem problem = read_based(*assembly, record);
  if (problem == LoadProblem::none && cache.packs.is_remote(ref.pack)) {
    // No lock is held during the wait for the remote.
    assembly->lock.unlock();
    for (std::size_t i = 0; i < record.count; ++i) {
      const format::BasePage& b = record.bases[i];
      cache.packs.locate({ref.pack, b.offset_bytes, b.tag}, {b.slot, 1});
    }
    assembly = &lock_one(cache.assemblies);
    problem = read_based(*assembly, record);
  }
  if (problem == LoadProblem::none) problem = gather(*assembly, record);
  if (problem == LoadProblem::none) problem = unpack_based(*assembly, record);
  assembly->lock.unlock();
  return problem;
}

// Reads the record with its list of base pages. The rest of the payload stays in the assembly.
LoadProblem RecordCache::Load::read_based(Assembly& assembly, BasedRecord& record) noexcept {
  LoadProblem problem = LoadProblem::has_base_pages;
  if (place.copy != nullptr) problem = read_whole(*place.copy, assembly);
  if (problem != LoadProblem::none) problem = read_whole(*place.file, assembly);
  if (problem != LoadProblem::none) return problem;
  record.header = header;
  const auto stored =
      format::record_payload({assembly.stored, front_bytes(header) + header.stored_bytes}, header);
  record.count =
      format::decode_base_pages(stored, ref.offset_bytes, record.bases, record.list_bytes);
  return record.count == 0 ? LoadProblem::base_pages_do_not_parse : LoadProblem::none;
}

LoadProblem RecordCache::Load::read_whole(const base::File& from, Assembly& assembly) noexcept {
  std::array<std::byte, format::kRecordHeaderBytes> head;
  os_errno = from.try_pread(head, place.record.offset_bytes);
  if (os_errno != 0) return LoadProblem::cannot_be_read;
  LoadProblem problem = decode_header(head);
  if (problem != LoadProblem::none) return problem;
  if (header.type != RecordType::based_pages) return LoadProblem::another_type;
  if (problem = check_sizes(); problem != LoadProblem::none) return problem;
  if (format::record_body_bytes(header) > cache.stored_capacity) {
    return LoadProblem::impossible_stored_size;
  }
  file = &from;
  front = head;
  problem = read_record(assembly.stored);
  front = {};
  return problem;
}

// Copies the base pages into the assembly. If a record of base pages is to blame, `place` becomes
// that record's place.
LoadProblem RecordCache::Load::gather(Assembly& assembly, const BasedRecord& record) noexcept {
  // A translation gives the header another place; references have the same pack.
  const std::uint64_t pack = record.header.pack;
  assert(record.count != 0 && record.count <= record.bases.size());
  std::byte* to = assembly.prefix;
  std::memset(to, 0, base::kPrefixZeros);
  to += base::kPrefixZeros;
  CacheFrame* base_frame = nullptr;
  LoadProblem problem = LoadProblem::none;
  for (std::size_t i = 0; problem == LoadProblem::none && i < record.count;
       ++i, to += format::kPageBytes) {
    const format::BasePage& b = record.bases[i];
    if (base_frame == nullptr || base_frame->ref.offset_bytes != b.offset_bytes ||
        format::any_dropped(base_frame->dropped, b.slot, 1)) {
      if (base_frame != nullptr) base_frame->lock.unlock();
      Load base(cache, {{pack, b.offset_bytes, b.tag}, RecordType::pages, {}, {b.slot, 1}});
      problem = base.load();
      base_frame = base.frame;
      os_errno = base.os_errno;
      if (problem == LoadProblem::has_base_pages ||
          (problem == LoadProblem::none && base_frame->header.type != RecordType::pages)) {
        problem = LoadProblem::base_page_has_base_pages;
      }
      if (problem != LoadProblem::none) {
        description = base.description;
        if (base.place.file != nullptr) place = base.place;
        break;
      }
    }
    if (b.slot >= base_frame->header.items || format::any_dropped(base_frame->dropped, b.slot, 1)) {
      problem = LoadProblem::base_page_lacking;
    } else {
      std::memcpy(to, base_frame->raw + b.slot * format::kPageBytes, format::kPageBytes);
    }
  }
  if (base_frame != nullptr) base_frame->lock.unlock();
  return problem;
}

LoadProblem RecordCache::Load::unpack_based(const Assembly& assembly,
                                            const BasedRecord& record) noexcept {
  const RecordHeader& h = record.header;
  FrameClass& frames = cache.class_for(h);
  CacheFrame& target = frames.pick(fingerprint);
  target.lock.lock();
  frames.touch(target);
  if (!is_loaded(target)) {  // another thread may have loaded it meanwhile
    assert(h.raw_bytes <= frames.shape.raw_bytes);
    target.fingerprint.store(0, std::memory_order_relaxed);
    target.header = h;
    target.parsed_count = 0;
    const auto stored =
        format::record_payload({assembly.stored, front_bytes(h) + h.stored_bytes}, h);
    const std::size_t prefix_bytes = base::kPrefixZeros + record.count * format::kPageBytes;
    Decoder& d = lock_one(cache.decoders);
    const bool ok =
        d.decompressor->decompress_on({assembly.prefix, prefix_bytes},
                                      stored.subspan(record.list_bytes), {target.raw, h.raw_bytes});
    d.lock.unlock();
    if (!ok) {
      target.lock.unlock();
      return LoadProblem::does_not_decompress;
    }
    publish(target, place);
  }
  frame = &target;
  return LoadProblem::none;
}

RecordCache::RecordCache(PackSet& packs, const format::RecordSeal& seal,
                         const format::Encoding& encoding, std::size_t budget_bytes)
    : impl_(new Impl(packs, seal, encoding, budget_bytes)) {}

RecordCache::~RecordCache() { delete impl_; }

bool RecordCache::get(const RecordRequest& request, View& view, ReadFailure& failure) noexcept {
  view.release();
  Load load(*impl_, request);
  const RecordType type = request.type;
  LoadProblem problem = LoadProblem::impossible_type;
  if (type == RecordType::pages || type == RecordType::deltas || type == RecordType::map_block) {
    problem = load.load();
    if (problem == LoadProblem::has_base_pages) problem = load.load_based();
    if (problem == LoadProblem::none) {
      view.frame_ = load.frame;
      return true;
    }
    if (load.frame != nullptr) {
      load.frame->lock.unlock();  // locate() may wait
      load.place = impl_->packs.locate(request.ref, request.slots);
    }
  }
  failure.reason = load.reason(problem);
  failure.record = load.place.record;
  failure.os_errno = load.os_errno;
  failure.file = load.place.file;
  return false;
}

void RecordCache::View::release() noexcept {
  if (frame_ != nullptr) frame_->lock.unlock();
  frame_ = nullptr;
}

const RecordHeader& RecordCache::View::header() const noexcept {
  assert(!empty());
  return frame_->header;
}

std::span<const std::byte> RecordCache::View::raw() const noexcept {
  assert(!empty());
  return {frame_->raw, frame_->header.raw_bytes};
}

bool RecordCache::View::holds(std::uint32_t slot, std::uint64_t count) const noexcept {
  assert(!empty());
  return !format::any_dropped(frame_->dropped, slot, count);
}

std::span<const format::DeltaIndexLine> RecordCache::View::deltas() const noexcept {
  assert(!empty() && frame_->header.type == RecordType::deltas);
  return {reinterpret_cast<const format::DeltaIndexLine*>(frame_->parsed), frame_->parsed_count};
}

std::span<const format::MapEntry> RecordCache::View::entries() const noexcept {
  assert(!empty() && frame_->header.type == RecordType::map_block);
  return {reinterpret_cast<const format::MapEntry*>(frame_->parsed), frame_->parsed_count};
}

}  // namespace vellum::store
