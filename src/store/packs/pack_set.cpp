#include "store/packs/pack_set.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <exception>
#include <iterator>
#include <map>
#include <utility>

#include "base/bytes/mix64.hpp"
#include "base/fail.hpp"
#include "base/files/read_only_file.hpp"
#include "format/wire/superblock.hpp"
#include "store/packs/header_error.hpp"
#include "store/packs/record_file.hpp"

namespace vellum::store {

std::unique_ptr<const format::Translation> read_translation(const base::File& file,
                                                            const format::PackHeader& header,
                                                            const format::StoreKeys* keys) {
  const std::uint64_t at = header.translation_offset_bytes;
  if (at == 0) return nullptr;
  const auto record = read_record_at(file, {header.pack, at, header.translation_tag},
                                     format::RecordType::translation,
                                     {format::checksum_seed(header.store_id), keys});
  auto out = std::make_unique<format::Translation>();
  if (!format::decode_translation(record.raw, at, *out) ||
      out->lines.size() != record.header.items) {
    fail(Errc::corrupted, "{} at byte {}: the pack's translation does not parse", file.path(), at);
  }
  return out;
}

// All members but the pins and the descriptor count are constant after opening.
struct PackSet::OpenPack {
  std::uint64_t pack;
  std::unique_ptr<PackFile> file;
  std::unique_ptr<PackFile> copy;  // in a cache, or null
  std::size_t descriptors = 0;     // held by both files
  std::unique_ptr<const format::Translation> translation;
  std::mutex mutex;
  std::map<std::uint64_t, int> pins;  // the file counts a byte once, however often it is pinned

  void pin(std::uint64_t offset) {
    assert(file != nullptr);
    const std::lock_guard guard(mutex);
    int& count = pins[offset];
    if (count == 0 && !file->pin_byte(offset)) {
      pins.erase(offset);
      fail(Errc::busy, "{} at byte {}: locked by another process or store object", file->path(),
           offset);
    }
    ++count;
  }
  void unpin(std::uint64_t offset) noexcept {
    const std::lock_guard guard(mutex);
    assert(pins.contains(offset) && pins[offset] > 0);
    if (--pins[offset] != 0) return;
    pins.erase(offset);
    try {
      file->unpin_byte(offset);
    } catch (...) {
      // Closing the file releases the pin.
    }
  }
  bool is_pinned() {
    const std::lock_guard guard(mutex);
    return !pins.empty();
  }
  // gc removed the bytes, not only the name: no version reads the pack any more.
  bool is_empty() const noexcept {
    std::array<std::byte, format::kPackHeaderBytes> header;
    return file->try_pread(header, 0) != 0;
  }
};

struct PackSet::Table {
  explicit Table(std::size_t capacity) : entries(capacity) {
    assert(std::has_single_bit(capacity));
  }
  std::vector<std::atomic<const OpenPack*>> entries;  // a power of two, at most half full

  const OpenPack* find(std::uint64_t pack) const noexcept {
    const std::size_t mask = entries.size() - 1;
    for (std::size_t i = base::mix64(pack) & mask;; i = (i + 1) & mask) {
      const OpenPack* p = entries[i].load(std::memory_order_acquire);
      if (p == nullptr || p->pack == pack) return p;
    }
  }
  // Replaces the entry of the same pack, if any. REQUIRES: the table has a free entry.
  void insert(const OpenPack* entry) noexcept {
    assert(entry != nullptr && entry->file != nullptr);
    const std::size_t mask = entries.size() - 1;
    std::size_t i = base::mix64(entry->pack) & mask;
    for (;; i = (i + 1) & mask) {
      const OpenPack* p = entries[i].load(std::memory_order_relaxed);
      if (p == nullptr || p->pack == entry->pack) break;
    }
    entries[i].store(entry, std::memory_order_release);
  }
};

PackSet::PackSet(base::Fs& fs, std::string store_path, const format::Superblock& superblock,
                 const format::StoreKeys* keys, std::shared_ptr<RemotePacks> remote)
    : fs_(fs),
      places_(fs, std::move(store_path), {superblock.store_id, keys}),
      remote_(std::move(remote)),
      store_id_(superblock.store_id),
      keys_(keys),
      pack_bytes_(superblock.pack_bytes),
      max_descriptors_(base::descriptor_share()) {
  tables_.push_back(std::make_unique<Table>(64));
  table_.store(tables_.back().get(), std::memory_order_release);
}

PackSet::~PackSet() = default;

void PackSet::learn(const format::Version& version) const {
  if (remote_ != nullptr) remote_->learn(version);
}

const base::File* PackSet::find(std::uint64_t pack) const noexcept {
  const OpenPack* p = table_.load(std::memory_order_acquire)->find(pack);
  if (p == nullptr) return find_remote(pack);
  return p->file.get();
}

const base::File* PackSet::find_remote(std::uint64_t pack) const noexcept {
  return remote_ == nullptr ? nullptr : remote_->find(pack);
}

bool PackSet::is_remote(std::uint64_t pack) const noexcept {
  return table_.load(std::memory_order_acquire)->find(pack) == nullptr &&
         find_remote(pack) != nullptr;
}

std::vector<RecordAtRemote> PackSet::describe(std::uint64_t pack,
                                              std::uint64_t offset_bytes) const {
  assert(remote_ != nullptr);
  return remote_->describe(pack, offset_bytes);
}

std::vector<std::byte> PackSet::fetch(const RecordAtRemote& record) const {
  assert(remote_ != nullptr);
  return remote_->fetch(record);
}

std::vector<std::uint64_t> PackSet::list_with_remote() const {
  std::vector<std::uint64_t> here = list();
  if (remote_ == nullptr) return here;
  std::vector<std::uint64_t> out;
  std::ranges::set_union(here, remote_->list(), std::back_inserter(out));
  return out;
}

std::vector<std::uint64_t> PackSet::list_remote() const {
  std::vector<std::uint64_t> out =
      remote_ == nullptr ? std::vector<std::uint64_t>() : remote_->list();
  std::erase_if(out, [&](std::uint64_t pack) { return !is_remote(pack); });
  return out;
}

std::shared_ptr<const void> PackSet::fetch_early(std::vector<format::RecordRef> refs) const {
  std::erase_if(refs, [&](const format::RecordRef& ref) { return !is_remote(ref.pack); });
  assert(refs.empty() || remote_ != nullptr);
  return refs.empty() ? nullptr : remote_->fetch_early(refs);
}

const format::Translation* PackSet::translation(std::uint64_t pack) const noexcept {
  const OpenPack* p = table_.load(std::memory_order_acquire)->find(pack);
  return p == nullptr ? nullptr : p->translation.get();
}

RecordPlace PackSet::locate(const format::RecordRef& ref,
                            const format::SlotRange& slots) const noexcept {
  const OpenPack* p = table_.load(std::memory_order_acquire)->find(ref.pack);
  const auto nowhere = [&](const char* problem) {
    return RecordPlace{problem, p == nullptr ? nullptr : p->file.get(), ref, {}, nullptr, 0};
  };
  if (p == nullptr && find_remote(ref.pack) != nullptr) return remote_->locate(ref, slots);
  if (p == nullptr) return nowhere("the version does not name the pack");
  assert(p->file != nullptr);
  if (p->translation == nullptr) return {nullptr, p->file.get(), ref, {}, p->copy.get(), 0};
  const format::TranslationLine* line = p->translation->find(ref.offset_bytes);
  if (line == nullptr) return nowhere("the record has been freed");
  if (line->old_tag != ref.tag) return nowhere("stale record");
  return {nullptr,
          p->file.get(),
          {ref.pack, line->new_offset_bytes, line->new_tag},
          p->translation->dropped_of(*line),
          p->copy.get(),
          0};
}

std::shared_ptr<const void> PackSet::pin(std::uint64_t pack, std::uint64_t offset_bytes) {
  if (!has_file(pack)) return std::make_shared<const std::uint64_t>(pack);
  std::shared_ptr<OpenPack> entry;
  {
    const std::lock_guard guard(mutex_);
    entry = current(pack);  // gc would not see a pin on an old file
  }
  assert(entry->pack == pack);
  entry->pin(offset_bytes);
  return {entry.get(), [entry, offset_bytes](const void*) { entry->unpin(offset_bytes); }};
}

std::shared_ptr<PackSet::OpenPack> PackSet::open_file(std::uint64_t pack) const {
  auto entry = std::make_shared<OpenPack>();
  entry->pack = pack;
  auto file = places_.open(pack);
  const std::string& path = file->path();
  std::array<std::byte, format::kPackHeaderBytes> bytes;
  file->pread(bytes, 0);
  format::PackHeader header;
  if (!format::decode_pack_header(bytes, header)) {
    fail_header(path, bytes, format::checksum_seed(store_id_), "the pack's header is corrupted");
  }
  if (header.store_id != store_id_) {
    fail(Errc::corrupted, "{}: the pack belongs to another store", path);
  }
  if (header.pack != pack) {
    fail(Errc::corrupted, "{}: this is pack {:016x} under another name", path, header.pack);
  }
  if (const char* problem = format::check_sealed(header, keys_ != nullptr)) {
    fail(Errc::corrupted, "{}: {}", path, problem);
  }
  entry->translation = read_translation(*file, header, keys_);
  auto copy = open_copy(pack, bytes, file->size_bytes());
  entry->file = hold(std::move(file), *entry);
  if (copy != nullptr) entry->copy = hold(std::move(copy), *entry);
  return entry;
}

// Keeps a file open by its descriptor or, if there are many, by a mapping. A page-in cannot open
// files, so all packs of a version stay open for the lifetime of the set. An unsealed pack grows by
// at most a record and an index once it has exceeded pack_bytes.
std::unique_ptr<PackFile> PackSet::hold(std::unique_ptr<base::File> file, OpenPack& entry) const {
  assert(file != nullptr);
  // The share is read each time: a program may lower its limit while the store is open.
  if (descriptors_ < std::min(max_descriptors_, base::descriptor_share())) {
    ++descriptors_;
    ++entry.descriptors;
    return std::make_unique<PackFile>(std::move(file));
  }
  constexpr std::uint64_t kMore = 3 * std::uint64_t{format::kMaxRecordRawBytes};
  const std::uint64_t room = std::max(file->size_bytes(), pack_bytes_) + kMore;
  return std::make_unique<PackFile>(base::hold_by_mapping(fs_, std::move(file), room));
}

// The header of a translated pack has the tag of its translation, and thereby identifies all its
// records. Other packs only lose bytes that are no longer read. Therefore size and header
// distinguish an outdated copy from a current one. Its content is checked record by record.
std::unique_ptr<base::File> PackSet::open_copy(std::uint64_t pack,
                                               std::span<const std::byte> header,
                                               std::uint64_t size_bytes) const {
  for (const auto& directory : places_.state()->present_paths(format::TierKind::cache)) {
    try {
      auto file = fs_.open(directory + "/" + pack_file_name(pack), base::OpenMode::read_only);
      std::array<std::byte, format::kPackHeaderBytes> found;
      file->pread(found, 0);
      if (!std::ranges::equal(found, header)) continue;
      if (file->size_bytes() == size_bytes) return file;
    } catch (const Error& e) {
      if (e.code() == Errc::out_of_memory) throw;  // otherwise: absent or unreadable
    }
  }
  return nullptr;
}

// If a pack is at home and in an archive, the one at home is valid.
bool PackSet::is_current(const OpenPack& entry) const {
  if (entry.file->replaced()) return false;
  return places_.is_home(*entry.file) || !fs_.exists(places_.home_path(entry.pack));
}

// REQUIRES: mutex_ is held, as for the next two.
void PackSet::add(std::shared_ptr<OpenPack> entry) {
  assert(entry != nullptr && !is_open(entry->pack));
  packs_.push_back(std::move(entry));
  if (packs_.size() * 2 > tables_.back()->entries.size()) {
    auto bigger = std::make_unique<Table>(tables_.back()->entries.size() * 2);
    for (const auto& p : packs_) bigger->insert(p.get());
    tables_.push_back(std::move(bigger));
    table_.store(tables_.back().get(), std::memory_order_release);
  } else {
    tables_.back()->insert(packs_.back().get());
  }
}

std::shared_ptr<PackSet::OpenPack> PackSet::current(std::uint64_t pack) {
  const auto at =
      std::find_if(packs_.begin(), packs_.end(), [&](const auto& p) { return p->pack == pack; });
  if (at == packs_.end()) {
    add(open_file(pack));
    return packs_.back();
  }
  if (!is_current(**at)) replace(*at);
  return *at;
}

void PackSet::replace(std::shared_ptr<OpenPack>& entry) {
  auto fresh = open_file(entry->pack);
  assert(fresh->pack == entry->pack && is_open(entry->pack));
  retired_.push_back(entry);
  entry = std::move(fresh);
  tables_.back()->insert(entry.get());
}

// A file that is being read is closed by a later refresh().
void PackSet::close_unread(OpenPack& entry) noexcept {
  const bool copy_gone = entry.copy == nullptr || entry.copy->try_close();
  if (!entry.file->try_close() || !copy_gone) return;
  assert(descriptors_ >= entry.descriptors);
  descriptors_ -= std::exchange(entry.descriptors, 0);
}

bool PackSet::is_open(std::uint64_t pack) const noexcept {
  return table_.load(std::memory_order_acquire)->find(pack) != nullptr;
}

// False: it is only remote. A fetched pack gets its name when it is complete.
bool PackSet::has_file(std::uint64_t pack) const {
  if (is_open(pack) || find_remote(pack) == nullptr) return true;
  if (!remote_->is_beside_files()) return false;
  const auto is_in = [&](const std::string& directory) {
    return fs_.exists(directory + "/" + pack_file_name(pack));
  };
  return is_in(places_.home()) ||
         std::ranges::any_of(places_.state()->present_paths(format::TierKind::archive), is_in);
}

void PackSet::open(std::uint64_t pack) {
  if (is_open(pack) || !has_file(pack)) return;
  const std::lock_guard guard(mutex_);
  if (!is_open(pack)) add(open_file(pack));
}

void PackSet::refresh(std::uint64_t pack) {
  if (!has_file(pack)) return;
  const std::lock_guard guard(mutex_);
  current(pack);
}

void PackSet::refresh() {
  places_.reload();
  if (remote_ != nullptr) {
    remote_->refresh();
    for (const std::uint64_t pack : remote_->list()) open(pack);
  }
  const std::lock_guard guard(mutex_);
  std::exception_ptr failure;
  for (auto& entry : packs_) {
    try {
      if (is_current(*entry)) continue;
      // No version refers to a pack whose file is removed.
      if (fs_.exists(path_of(entry->pack))) {
        replace(entry);
      } else if (entry->is_empty() && !entry->is_pinned()) {
        close_unread(*entry);
      }
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace vellum::store
