#include "store/branch/checkpoint/dedup.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>

#include "base/bytes/checksum.hpp"
#include "base/try_to.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/reach/roots.hpp"
#include "store/packs/record/pack_extents.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;
using format::RecordRef;
using format::RecordType;

namespace {

constexpr std::size_t kMaxKnown = 1u << 19;  // about 30 MiB, for 32 GiB of pages
// Commits of fewer pages do not load the hashes of earlier writers, which takes milliseconds.
constexpr std::size_t kPagesWorthLoading = 256;
// A page smaller than this in its block is not worth an entry of its own in the page map.
constexpr std::size_t kMinStoredBytes = 256;

// Whether the index has pages with this content; also computes the hash.
bool noted_hash(const std::byte* page, std::uint32_t& hash) noexcept {
  const std::uint64_t sum = base::checksum64({page, kPageBytes});
  hash = static_cast<std::uint32_t>(sum >> 32);
  return (sum & 15) == 0;
}

}  // namespace

// The record in which pages are being found; then the record that follows it in the pack. Both are
// read from the pack's current file, since the new version will refer to it.
class Dedup::Stretch {
 public:
  explicit Stretch(const Dedup& dedup) : dedup_(dedup), store_(dedup.store_) {}

  // False: the record is missing or not whole. The page then counts as not found, and is stored.
  bool open(const RecordRef& record) {
    if (opened_ && record == record_) return whole_;
    opened_ = true;
    record_ = record;
    return whole_ = base::try_to([&] {
             store_.packs().refresh(record.pack);
             loaded_ = load_pages(store_, record);
             dropped_ = store_.packs().locate(record).dropped;
           });
  }
  // Also false in a pack that was rewritten: the record that follows there is not the one that
  // followed in the original file.
  bool open_next() {
    if (store_.packs().translation(record_.pack) != nullptr) return false;
    std::optional<RecordRef> next;
    base::try_to([&] {
      const std::uint64_t at = record_.offset_bytes + format::record_extent_bytes(loaded_->header);
      next = RecordRef{record_.pack, at, read_record_header(store_, record_.pack, at).tag()};
    });
    return next.has_value() && dedup_.is_reached(*next) && open(*next);
  }
  bool holds(std::size_t slot, const std::byte* page) const {
    return slot < loaded_->header.items &&
           !format::any_dropped(dropped_, static_cast<std::uint32_t>(slot), 1) &&
           std::memcmp(loaded_->raw.data() + slot * kPageBytes, page, kPageBytes) == 0;
  }
  std::size_t slots() const {
    assert(whole_);
    return loaded_->header.items;
  }
  const RecordRef& record() const { return record_; }

 private:
  const Dedup& dedup_;
  StoreDirectory& store_;
  bool opened_ = false, whole_ = false;
  RecordRef record_;
  std::shared_ptr<const LoadedRecord> loaded_;
  std::span<const format::SlotRange> dropped_;  // owned by the pack
};

Dedup::Dedup(StoreDirectory& store) : store_(store), gc_lock_(store) {}

bool Dedup::enter(const format::Version& head) {
  head_ = head;
  own_packs_.clear();
  for (const std::uint64_t pack : store_.packs().list()) {
    if (is_own(pack)) own_packs_.push_back(pack);
  }
  appended_ = {};
  return active_ = keep_gc_out();
}

void Dedup::leave(bool published) noexcept {
  const std::lock_guard guard(mutex_);
  if (!published) {
    for (const auto& noted : noted_) {
      const auto at = known_.find(noted.hash);
      if (at != known_.end() && at->second.record == noted.record) known_.erase(at);
    }
  }
  noted_.clear();
  appended_ = {};
  active_ = false;
  gc_lock_.release();
}

bool Dedup::is_own(std::uint64_t pack) const noexcept { return pack >> 32 == head_.branch_id; }

// In the writer's own packs, these bytes are reached:
// - all of a sealed pack, which has a successor (the number after an unfinished pack is skipped),
// - the active pack up to the end that the head states,
// - the bytes appended since, including the last record.
// The tail of a failed commit may follow them. The next append overwrites it.
//
// A record that starts at a published end belongs to such a tail. No lookup asks for one: a lookup
// finds a record by a later hash record, or after a record of pages in the same checkpoint, and a
// published checkpoint ends with a copy of its version.
bool Dedup::is_reached(const RecordRef& record) const {
  if (!is_own(record.pack)) {
    const auto at = reached_bytes_.find(record.pack);
    return at != reached_bytes_.end() && record.offset_bytes < at->second;
  }
  const std::lock_guard guard(appended_mutex_);
  if (record.pack == appended_.pack) return record.offset_bytes <= appended_.offset_bytes;
  if (record.pack == head_.active_pack) return record.offset_bytes < head_.active_pack_end_bytes;
  return record.pack < head_.active_pack &&
         std::binary_search(own_packs_.begin(), own_packs_.end(), record.pack + 1);
}

// Loads the hashes of earlier writers, newest packs first.
void Dedup::load() const {
  std::vector<std::uint64_t> packs;
  try {
    const NamesShared names(store_);
    Roots roots = read_roots(store_);
    roots.note_reached(head_);
    packs = roots.packs;
    for (const std::uint64_t pack : packs) reached_bytes_[pack] = roots.reached_bytes(pack);
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return;  // other calls report the error
  }
  for (auto pack = packs.rbegin(); pack != packs.rend(); ++pack) {
    const std::uint64_t reached = reached_bytes_.at(*pack);
    if (reached == 0) continue;
    for (const auto& line : hash_records(store_, *pack)) {
      const RecordRef ref{*pack, line.offset_bytes, line.tag};
      if (ref.offset_bytes >= reached) continue;
      try {
        std::vector<format::PageHash> hashes;
        if (!format::decode_page_hashes(load_record_at(store_, ref, RecordType::hashes).raw,
                                        hashes)) {
          continue;
        }
        const std::lock_guard guard(mutex_);
        if (known_.size() + hashes.size() > kMaxKnown) return;
        for (const auto& h : hashes) {
          if (is_reached(h.record)) known_.try_emplace(h.hash, Place{h.record, h.slot});
        }
      } catch (const Error& e) {
        if (e.code() == Errc::out_of_memory) throw;  // else these hashes are left out
      }
    }
  }
}

bool Dedup::look_up(std::uint32_t hash, Place& out) const {
  const std::lock_guard guard(mutex_);
  const auto at = known_.find(hash);
  if (at == known_.end()) return false;
  out = at->second;
  return true;
}

void Dedup::find(std::vector<PageNumber>& pages, const ContentFn& content,
                 std::vector<PageRef>& found) const {
  assert(active_);
  if (pages.size() >= kPagesWorthLoading) std::call_once(loaded_, [this] { load(); });
  Stretch stretch(*this);
  std::vector<bool> taken(pages.size());
  const auto take = [&](std::size_t i, std::size_t slot) {
    assert(!taken[i]);
    found.push_back({pages[i], stretch.record(), static_cast<std::uint32_t>(slot)});
    taken[i] = true;
  };
  const std::size_t first_found = found.size();
  for (std::size_t i = 0; i < pages.size(); ++i) {
    std::uint32_t hash = 0;
    Place place;
    if (!noted_hash(content(i), hash) || !look_up(hash, place)) continue;
    if (!stretch.open(place.record) || !stretch.holds(place.slot, content(i))) continue;
    std::size_t slot = place.slot;
    for (std::size_t back = 1; back <= std::min<std::size_t>(i, slot); ++back) {
      if (taken[i - back] || !stretch.holds(slot - back, content(i - back))) break;
      take(i - back, slot - back);
    }
    take(i, slot);
    while (i + 1 < pages.size()) {
      if (++slot == stretch.slots()) {
        if (!stretch.open_next()) break;
        slot = 0;
      }
      if (!stretch.holds(slot, content(i + 1))) break;
      take(++i, slot);
    }
  }
  if (found.size() == first_found) return;
  std::sort(found.begin() + static_cast<std::ptrdiff_t>(first_found), found.end(),
            [](const PageRef& a, const PageRef& b) { return a.page < b.page; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (!taken[i]) pages[kept++] = pages[i];
  }
  assert(kept + (found.size() - first_found) == pages.size());
  pages.resize(kept);
}

std::vector<NotedPage> Dedup::worth_noting(std::span<const std::byte> raw,
                                           std::size_t stored_bytes) {
  std::vector<NotedPage> out;
  assert(raw.size() % kPageBytes == 0);
  const std::size_t pages = raw.size() / kPageBytes;
  if (stored_bytes < pages * kMinStoredBytes) return out;
  for (std::size_t slot = 0; slot < pages; ++slot) {
    std::uint32_t hash = 0;
    if (noted_hash(raw.data() + slot * kPageBytes, hash)) {
      out.push_back({static_cast<std::uint32_t>(slot), hash});
    }
  }
  return out;
}

void Dedup::note(const RecordRef& record, std::span<const NotedPage> pages) {
  {
    const std::lock_guard guard(appended_mutex_);
    appended_ = record;
  }
  if (pages.empty()) return;
  const std::lock_guard guard(mutex_);
  for (const NotedPage& p : pages) {
    noted_.push_back({record, p.slot, p.hash});
    if (known_.size() < kMaxKnown) known_[p.hash] = {record, p.slot};
  }
}

std::vector<format::PageHash> Dedup::noted() const {
  const std::lock_guard guard(mutex_);
  return noted_;
}

}  // namespace vellum::store
