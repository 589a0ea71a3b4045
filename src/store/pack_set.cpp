#include "store/pack_set.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <map>

#include "format/superblock.hpp"
#include "store/record_io.hpp"
#include "store/util.hpp"

namespace vellum::store {

namespace {
constexpr std::string_view kSuffix = ".pack";
constexpr std::size_t kHexDigits = 16;

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}
}  // namespace

std::string pack_file_name(std::uint64_t pack) { return fmt::format("{:016x}{}", pack, kSuffix); }

bool parse_pack_file_name(const std::string& name, std::uint64_t& pack) {
  if (name.size() != kHexDigits + kSuffix.size() || !name.ends_with(kSuffix)) return false;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kHexDigits; ++i) {
    const int digit = hex_value(name[i]);
    if (digit < 0) return false;
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  pack = value;
  return true;
}

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
    fail(Errc::damaged, "{} at byte {}: the pack's translation does not parse", file.path(), at);
  }
  return out;
}

// Everything but the marks is as it was when it was opened.
struct PackSet::OpenPack {
  std::uint64_t pack;
  std::unique_ptr<base::File> file;
  std::unique_ptr<const format::Translation> translation;
  std::mutex mutex;
  std::map<std::uint64_t, int> marks;  // the file counts a byte once, however often it is marked

  void mark(std::uint64_t offset) {
    const std::lock_guard guard(mutex);
    int& count = marks[offset];
    if (count == 0 && !file->mark_byte(offset)) {
      marks.erase(offset);
      fail(Errc::busy, "{} at byte {}: locked by someone else", file->path(), offset);
    }
    ++count;
  }
  void unmark(std::uint64_t offset) noexcept {
    const std::lock_guard guard(mutex);
    if (--marks[offset] != 0) return;
    marks.erase(offset);
    try {
      file->unmark_byte(offset);
    } catch (...) {
      // It goes with the file.
    }
  }
};

struct PackSet::Table {
  explicit Table(std::size_t capacity) : slots(capacity) {}
  std::vector<std::atomic<const OpenPack*>> slots;  // a power of two, at most half full

  const OpenPack* find(std::uint64_t pack) const noexcept {
    const std::size_t mask = slots.size() - 1;
    for (std::size_t i = mix64(pack) & mask;; i = (i + 1) & mask) {
      const OpenPack* p = slots[i].load(std::memory_order_acquire);
      if (p == nullptr || p->pack == pack) return p;
    }
  }
  // In place of an entry of the same pack, if there is one.
  void insert(const OpenPack* entry) noexcept {
    const std::size_t mask = slots.size() - 1;
    std::size_t i = mix64(entry->pack) & mask;
    for (;; i = (i + 1) & mask) {
      const OpenPack* p = slots[i].load(std::memory_order_relaxed);
      if (p == nullptr || p->pack == entry->pack) break;
    }
    slots[i].store(entry, std::memory_order_release);
  }
};

PackSet::PackSet(base::Fs& fs, std::string directory, const format::Uuid& store_id)
    : fs_(fs), directory_(std::move(directory)), store_id_(store_id) {
  tables_.push_back(std::make_unique<Table>(64));
  table_.store(tables_.back().get(), std::memory_order_release);
}

PackSet::~PackSet() = default;

std::string PackSet::path_of(std::uint64_t pack) const {
  return directory_ + "/" + pack_file_name(pack);
}

const base::File* PackSet::find(std::uint64_t pack) const noexcept {
  const OpenPack* p = table_.load(std::memory_order_acquire)->find(pack);
  return p == nullptr ? nullptr : p->file.get();
}

const format::Translation* PackSet::translation(std::uint64_t pack) const noexcept {
  const OpenPack* p = table_.load(std::memory_order_acquire)->find(pack);
  return p == nullptr ? nullptr : p->translation.get();
}

RecordPlace PackSet::locate(const format::RecordRef& ref) const noexcept {
  const OpenPack* p = table_.load(std::memory_order_acquire)->find(ref.pack);
  if (p == nullptr) return {"the pack is not one that this version names", nullptr, ref, {}};
  if (p->translation == nullptr) return {nullptr, p->file.get(), ref, {}};
  const format::TranslationLine* line = p->translation->find(ref.offset_bytes);
  if (line == nullptr) return {"the record was given back", p->file.get(), ref, {}};
  if (line->old_tag != ref.tag) return {"stale record", p->file.get(), ref, {}};
  return {nullptr,
          p->file.get(),
          {ref.pack, line->new_offset_bytes, line->new_tag},
          p->translation->dropped_of(*line)};
}

std::shared_ptr<const void> PackSet::mark(std::uint64_t pack, std::uint64_t offset_bytes) {
  std::shared_ptr<OpenPack> entry;
  {
    const std::lock_guard guard(mutex_);
    entry = current(pack);  // on an old file nobody would see it
  }
  entry->mark(offset_bytes);
  return {entry.get(), [entry, offset_bytes](const void*) { entry->unmark(offset_bytes); }};
}

std::shared_ptr<PackSet::OpenPack> PackSet::open_file(std::uint64_t pack) const {
  const std::string path = path_of(pack);
  auto entry = std::make_shared<OpenPack>();
  entry->pack = pack;
  try {
    entry->file = fs_.open(path, base::OpenMode::read_only);
  } catch (const Error& e) {
    if (e.code() == Errc::not_found) fail(Errc::damaged, "{}: the pack is missing", path);
    throw;
  }
  std::array<std::byte, format::kPackHeaderBytes> bytes;
  entry->file->pread(bytes, 0);
  format::PackHeader header;
  if (!format::decode_pack_header(bytes, header)) {
    fail(Errc::damaged, "{}: the pack's header is damaged", path);
  }
  if (header.store_id != store_id_) {
    fail(Errc::damaged, "{}: the pack belongs to another store", path);
  }
  if (header.pack != pack) {
    fail(Errc::damaged, "{}: this is pack {:016x} under another name", path, header.pack);
  }
  entry->translation = read_translation(*entry->file, header);
  return entry;
}

// REQUIRES: mutex_ is held, as for the two that follow.
void PackSet::add(std::shared_ptr<OpenPack> entry) {
  packs_.push_back(std::move(entry));
  if (packs_.size() * 2 > tables_.back()->slots.size()) {
    auto bigger = std::make_unique<Table>(tables_.back()->slots.size() * 2);
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
  if ((*at)->file->replaced()) replace(*at);
  return *at;
}

void PackSet::replace(std::shared_ptr<OpenPack>& entry) {
  auto fresh = open_file(entry->pack);
  retired_.push_back(entry);
  entry = std::move(fresh);
  tables_.back()->insert(entry.get());
}

void PackSet::open(std::uint64_t pack) {
  if (find(pack) != nullptr) return;
  const std::lock_guard guard(mutex_);
  if (find(pack) == nullptr) add(open_file(pack));
}

void PackSet::refresh(std::uint64_t pack) {
  const std::lock_guard guard(mutex_);
  current(pack);
}

void PackSet::refresh() {
  const std::lock_guard guard(mutex_);
  std::exception_ptr failure;
  for (auto& entry : packs_) {
    try {
      // A pack that is gone is one that nothing names any more.
      if (entry->file->replaced() && fs_.exists(entry->file->path())) replace(entry);
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

std::vector<std::uint64_t> PackSet::list() const {
  std::vector<std::uint64_t> out;
  for (const base::DirEntry& entry : fs_.list(directory_)) {
    std::uint64_t pack = 0;
    if (parse_pack_file_name(entry.name, pack)) out.push_back(pack);
  }
  return out;  // hexadecimal names sort like their numbers
}

}  // namespace vellum::store
