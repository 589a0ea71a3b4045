#include "store/packs/record/record_io.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/bytes/codec.hpp"
#include "base/fail.hpp"

namespace vellum::store {

std::string record_place(PackStore& store, std::uint64_t pack, std::uint64_t offset_bytes) {
  const base::File* const file = store.packs().find(pack);
  return fmt::format("{} at byte {}", file != nullptr ? file->path() : store.packs().path_of(pack),
                     offset_bytes);
}

std::string record_place(PackStore& store, const format::RecordRef& ref) {
  return record_place(store, ref.pack, store.packs().locate(ref).record.offset_bytes);
}

format::RecordHeader read_record_header(PackStore& store, std::uint64_t pack,
                                        std::uint64_t offset_bytes) {
  store.packs().open(pack);
  std::array<std::byte, format::kRecordHeaderBytes> bytes;
  store.packs().find(pack)->pread(bytes, offset_bytes);
  format::RecordHeader h;
  const char* problem = format::decode_record_header(bytes, h);
  if (problem == nullptr) problem = format::check_sealed(h, store.record_seal());
  if (problem == nullptr && (h.pack != pack || h.offset_bytes != offset_bytes)) {
    problem = "misdirected record";
  }
  if (problem != nullptr) {
    fail(Errc::corrupted, "{}: {}", record_place(store, pack, offset_bytes), problem);
  }
  return h;
}

LoadedRecord load_record_at(PackStore& store, const format::RecordRef& place,
                            format::RecordType type) {
  store.packs().open(place.pack);
  return read_record_at(*store.packs().find(place.pack), place, type, store.record_seal());
}

LoadedRecord load_cached_record(PackStore& store, const format::RecordRef& ref,
                                format::RecordType type) {
  store.packs().open(ref.pack);
  const RecordPlace place = store.packs().locate(ref);
  if (place.problem == nullptr && place.copy != nullptr) {
    try {
      return read_record_at(*place.copy, place.record, type, store.record_seal());
    } catch (const Error& e) {
      if (e.code() == Errc::out_of_memory) throw;  // otherwise the pack is read
    }
  }
  return load_record(store, ref, type);
}

namespace {

RecordPlace located(PackStore& store, const format::RecordRef& ref,
                    const format::SlotRange& slots = {}) {
  store.packs().open(ref.pack);
  RecordPlace place = store.packs().locate(ref, slots);
  if (place.problem != nullptr) {
    const std::string name = place.file != nullptr
                                 ? place.file->path()
                                 : record_place(store, ref.pack, ref.offset_bytes);
    fail(place.os_errno != 0 ? Errc::io : Errc::corrupted, "{}: {}", name, place.problem);
  }
  assert(place.file != nullptr);
  return place;
}

std::shared_ptr<const LoadedRecord> keep(const format::RecordRef& ref, LoadedRecord&& record,
                                         RecentPages* recent) {
  auto out = std::make_shared<const LoadedRecord>(std::move(record));
  if (recent != nullptr) recent->note(ref, out);
  return out;
}

// `recent` may have another form of a remote record.
std::shared_ptr<const LoadedRecord> load_base(PackStore& store, const format::RecordRef& ref,
                                              const RecordPlace& at, RecentPages* recent) {
  if (store.packs().is_remote(ref.pack)) recent = nullptr;
  if (recent != nullptr) {
    if (auto known = recent->find(ref)) return known;
  }
  return keep(ref,
              read_record_at(*at.file, at.record, format::RecordType::pages, store.record_seal()),
              recent);
}

// The prefix of the pages for the codec.
std::vector<std::byte> read_prefix(PackStore& store, std::uint64_t pack,
                                   std::span<const format::BasePage> bases, RecentPages* recent) {
  std::vector<std::byte> out(base::kPrefixZeros);
  std::shared_ptr<const LoadedRecord> record;
  RecordPlace place;
  std::uint64_t last_offset_bytes = 0;
  for (const format::BasePage& b : bases) {
    const format::RecordRef ref{pack, b.offset_bytes, b.tag};
    if (ref.offset_bytes != last_offset_bytes || format::any_dropped(place.dropped, b.slot, 1)) {
      last_offset_bytes = ref.offset_bytes;
      place = located(store, ref, {b.slot, 1});
      record = load_base(store, ref, place, recent);
    }
    if (b.slot >= record->header.items || format::any_dropped(place.dropped, b.slot, 1)) {
      fail(Errc::corrupted, "{} at byte {}: the record lacks a base page", place.file->path(),
           place.record.offset_bytes);
    }
    const auto page =
        std::span(record->raw).subspan(b.slot * format::kPageBytes, format::kPageBytes);
    out.insert(out.end(), page.begin(), page.end());
  }
  return out;
}

}  // namespace

LoadedRecord load_record(PackStore& store, const format::RecordRef& ref, format::RecordType type) {
  const RecordPlace place = located(store, ref);
  return read_record_at(*place.file, place.record, type, store.record_seal());
}

std::vector<format::BasePage> base_pages_of(const LoadedRecord& record,
                                            const format::RecordRef& ref, const std::string& place,
                                            std::size_t& list_bytes) {
  assert(record.header.type == format::RecordType::based_pages);
  std::vector<format::BasePage> out(format::kMaxBasePages);
  out.resize(format::decode_base_pages(record.stored(), ref.offset_bytes, out, list_bytes));
  if (out.empty()) fail(Errc::corrupted, "{}: the base pages do not parse", place);
  return out;
}

std::shared_ptr<const LoadedRecord> RecentPages::find(const format::RecordRef& ref) const {
  const std::lock_guard guard(mutex_);
  const auto at = std::ranges::find(records_, ref, &RecentRecord::ref);
  return at == records_.end() ? nullptr : at->record;
}

void RecentPages::note(const format::RecordRef& ref, std::shared_ptr<const LoadedRecord> record) {
  const std::lock_guard guard(mutex_);
  assert(record != nullptr);
  raw_bytes_ += record->raw.size();
  records_.push_back({ref, std::move(record)});
  while (raw_bytes_ > kMaxBytes) {
    assert(raw_bytes_ >= records_.front().record->raw.size());
    raw_bytes_ -= records_.front().record->raw.size();
    records_.pop_front();
  }
}

std::shared_ptr<const LoadedRecord> load_pages(PackStore& store, const format::RecordRef& ref,
                                               RecentPages* recent) {
  if (recent != nullptr) {
    if (auto known = recent->find(ref)) return known;
  }
  const RecordPlace at = located(store, ref);
  LoadedRecord out = read_pages_at(*at.file, at.record, store.record_seal());
  if (out.header.type == format::RecordType::pages) return keep(ref, std::move(out), recent);
  const std::string place = fmt::format("{} at byte {}", at.file->path(), at.record.offset_bytes);
  std::size_t list_bytes = 0;
  const auto bases = base_pages_of(out, ref, place, list_bytes);
  const auto prefix = read_prefix(store, ref.pack, bases, recent);
  out.raw.resize(out.header.raw_bytes);
  if (!base::Decompressor(0).decompress_on(prefix, out.stored().subspan(list_bytes), out.raw)) {
    fail(Errc::corrupted, "{}: the record does not decompress", place);
  }
  if (!has_its_hash(out)) fail(Errc::corrupted, "{}: {}", place, kNotItsHash);
  return std::make_shared<const LoadedRecord>(std::move(out));
}

}  // namespace vellum::store
