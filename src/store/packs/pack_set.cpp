#include "store/packs/pack_set.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <map>
#include <utility>

#include "base/bytes/mix64.hpp"
#include "base/fail.hpp"
#include "base/files/mapped_file.hpp"
#include "format/wire/superblock.hpp"
#include "store/packs/header_error.hpp"
#include "store/packs/record_file.hpp"

namespace vellum::store {

std::unique_ptr<const format::Translation> read_translation(const base::File& file,
                                                            const format::PackHeader& header) {
  const std::uint64_t at = header.translation_offset_bytes;
  if (at == 0) return nullptr;
  const auto record =
      read_record_at(file, {header.pack, at, header.translation_tag},
                     format::RecordType::translation, format::checksum_seed(header.store_id));
  auto out = std::make_unique<format::Translation>();
  if (!format::decode_translation(record.raw, at, *out) ||
      out->lines.size() != record.header.items) {
    fail(Errc::corrupted, "{} at byte {}: the pack's translation does not parse", file.path(), at);
  }
  return out;
}

// Everything but the pins stays as it was at opening.
struct PackSet::OpenPack {
  std::uint64_t pack;
  std::unique_ptr<PackFile> file;
  std::unique_ptr<PackFile> copy;  // in a cache, or null
  std::size_t descriptors = 0;     // held by both files
  std::unique_ptr<const format::Translation> translation;
  std::mutex mutex;
  std::map<std::uint64_t, int> pins;  // the file counts a byte once, however often it is pinned

  void pin(std::uint64_t offset) {
    const std::lock_guard guard(mutex);
    int& count = pins[offset];
    if (count == 0 && !file->pin_byte(offset)) {
      pins.erase(offset);
      fail(Errc::busy, "{} at byte {}: locked by someone else", file->path(), offset);
    }
    ++count;
  }
  void unpin(std::uint64_t offset) noexcept {
    const std::lock_guard guard(mutex);
    if (--pins[offset] != 0) return;
    pins.erase(offset);
    try {
      file->unpin_byte(offset);
    } catch (...) {
      // The pin goes with the file.
    }
  }
  bool is_pinned() {
    const std::lock_guard guard(mutex);
    return !pins.empty();
  }
  // gc has taken the bytes, not only the name: nothing in the pack will ever be read again.
  bool is_empty() const noexcept {
    std::array<std::byte, format::kPackHeaderBytes> header;
    return file->try_pread(header, 0) != 0;
  }
};

struct PackSet::Table {
  explicit Table(std::size_t capacity) : entries(capacity) {}
  std::vector<std::atomic<const OpenPack*>> entries;  // a power of two, at most half full

  const OpenPack* find(std::uint64_t pack) const noexcept {
    const std::size_t mask = entries.size() - 1;
    for (std::size_t i = base::mix64(pack) & mask;; i = (i + 1) & mask) {
      const OpenPack* p = entries[i].load(std::memory_order_acquire);
      if (p == nullptr || p->pack == pack) return p;
    }
  }
  // Replaces an entry of the same pack, if there is one.
  void insert(const OpenPack* entry) noexcept {
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
                 std::shared_ptr<RemotePacks> elsewhere)
    : fs_(fs),
      places_(fs, std::move(store_path), superblock.store_id),
      elsewhere_(std::move(elsewhere)),
      store_id_(superblock.store_id),
      pack_bytes_(superblock.pack_bytes),
      most_descriptors_(base::descriptor_share()) {
  tables_.push_back(std::make_unique<Table>(64));
  table_.store(tables_.back().get(), std::memory_order_release);
}

PackSet::~PackSet() = default;

void PackSet::learn(const format::Version& version) const {
  if (elsewhere_ != nullptr) elsewhere_->learn(version);
}

const base::File* PackSet::find(std::uint64_t pack) const noexcept {
  const OpenPack* p = table_.load(std::memory_order_acquire)->find(pack);
  if (p == nullptr) return find_elsewhere(pack);
  return p->file.get();
}

const base::File* PackSet::find_elsewhere(std::uint64_t pack) const noexcept {
  return elsewhere_ == nullptr ? nullptr : elsewhere_->find(pack);
}

bool PackSet::is_remote(std::uint64_t pack) const noexcept {
  return table_.load(std::memory_order_acquire)->find(pack) == nullptr &&
         find_elsewhere(pack) != nullptr;
}

std::vector<RecordAtRemote> PackSet::describe(std::uint64_t pack,
                                              std::uint64_t offset_bytes) const {
  return elsewhere_->describe(pack, offset_bytes);
}

std::vector<std::byte> PackSet::fetch(const RecordAtRemote& record) const {
  return elsewhere_->fetch(record);
}

std::vector<std::uint64_t> PackSet::list_with_away() const {
  std::vector<std::uint64_t> here = list();
  if (elsewhere_ == nullptr) return here;
  std::vector<std::uint64_t> out;
  std::ranges::set_union(here, elsewhere_->list(), std::back_inserter(out));
  return out;
}

std::vector<std::uint64_t> PackSet::list_away() const {
  std::vector<std::uint64_t> out =
      elsewhere_ == nullptr ? std::vector<std::uint64_t>() : elsewhere_->list();
  std::erase_if(out, [&](std::uint64_t pack) { return !is_remote(pack); });
  return out;
}

std::shared_ptr<const void> PackSet::fetch_early(std::vector<format::RecordRef> refs) const {
  std::erase_if(refs, [&](const format::RecordRef& ref) { return !is_remote(ref.pack); });
  return refs.empty() ? nullptr : elsewhere_->fetch_early(refs);
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
  if (p == nullptr && find_elsewhere(ref.pack) != nullptr) return elsewhere_->locate(ref, slots);
  if (p == nullptr) return nowhere("the pack is not one that this version names");
  if (p->translation == nullptr) return {nullptr, p->file.get(), ref, {}, p->copy.get(), 0};
  const format::TranslationLine* line = p->translation->find(ref.offset_bytes);
  if (line == nullptr) return nowhere("the record was given back");
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
    entry = current(pack);  // on an old file the pin would go unseen
  }
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
  entry->translation = read_translation(*file, header);
  auto copy = open_copy(pack, bytes, file->size_bytes());
  entry->file = hold(std::move(file), *entry);
  if (copy != nullptr) entry->copy = hold(std::move(copy), *entry);
  return entry;
}

// Holds a file by its descriptor or, when there are many, by a mapping. A page-in cannot open
// files, so everything that a version refers to is held as long as the set lives. An unsealed pack
// grows by at most a record and an index once it has passed pack_bytes.
std::unique_ptr<PackFile> PackSet::hold(std::unique_ptr<base::File> file, OpenPack& entry) const {
  // The share is asked for each time: a program may lower its limit while the store is open.
  if (descriptors_ < std::min(most_descriptors_, base::descriptor_share())) {
    ++descriptors_;
    ++entry.descriptors;
    return std::make_unique<PackFile>(std::move(file));
  }
  constexpr std::uint64_t kMore = 3 * std::uint64_t{format::kMaxRecordRawBytes};
  const std::uint64_t room = std::max(file->size_bytes(), pack_bytes_) + kMore;
  return std::make_unique<PackFile>(base::hold_by_mapping(fs_, std::move(file), room));
}

// The header of a translated pack names its translation by tag, and thereby all of its records.
// Other packs only ever lose bytes that are no longer read. So size and header tell an outdated
// copy from a useful one. Whether its content is right is checked record by record.
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
      if (e.code() == Errc::out_of_memory) throw;  // otherwise: none, or none that can be read
    }
  }
  return nullptr;
}

// If a pack is at home and in an archive, the one at home counts.
bool PackSet::is_current(const OpenPack& entry) const {
  if (entry.file->replaced()) return false;
  return places_.is_home(*entry.file) || !fs_.exists(places_.home_path(entry.pack));
}

// REQUIRES: mutex_ is held, as for the next two.
void PackSet::add(std::shared_ptr<OpenPack> entry) {
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
  retired_.push_back(entry);
  entry = std::move(fresh);
  tables_.back()->insert(entry.get());
}

// A file that is being read is closed another time.
void PackSet::let_go(OpenPack& entry) noexcept {
  const bool copy_gone = entry.copy == nullptr || entry.copy->let_go();
  if (!entry.file->let_go() || !copy_gone) return;
  descriptors_ -= std::exchange(entry.descriptors, 0);
}

bool PackSet::is_open(std::uint64_t pack) const noexcept {
  return table_.load(std::memory_order_acquire)->find(pack) != nullptr;
}

// False: it is elsewhere alone. A pack that has come here gets its name when it is whole.
bool PackSet::has_file(std::uint64_t pack) const {
  if (is_open(pack) || find_elsewhere(pack) == nullptr) return true;
  if (!elsewhere_->is_beside_files()) return false;
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
  if (elsewhere_ != nullptr) {
    elsewhere_->refresh();
    for (const std::uint64_t pack : elsewhere_->list()) open(pack);
  }
  const std::lock_guard guard(mutex_);
  std::exception_ptr failure;
  for (auto& entry : packs_) {
    try {
      if (is_current(*entry)) continue;
      // A pack whose file is gone is named by no version any more.
      if (fs_.exists(path_of(entry->pack))) {
        replace(entry);
      } else if (entry->is_empty() && !entry->is_pinned()) {
        let_go(*entry);
      }
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace vellum::store
