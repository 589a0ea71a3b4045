#include "remote/remote.hpp"

#include <algorithm>
#include <random>

#include "base/fail.hpp"
#include "format/number.hpp"
#include "format/whole_file.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kMaxSuperblockObjectBytes = 64u << 10;
constexpr std::size_t kHeadsListed = 8;  // strangers among them are passed over

// Runs `read` again after damage, which may have come about on the way.
template <typename Read>
auto read_twice(const Read& read) {
  try {
    return read();
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
  }
  return read();
}

void require_content(const std::string& name, std::span<const std::byte> bytes,
                     const base::Sha256& hash) {
  if (base::sha256(bytes) == hash) return;
  fail(Errc::corrupted, "{}: the content does not have the SHA-256 of its name", name);
}

void require_sound(const std::string& name, const char* problem) {
  if (problem == nullptr) return;
  const std::string_view text = problem;
  const Errc code = text == format::kNewerFormat  ? Errc::newer_format
                    : text == format::kOtherStore ? Errc::invalid_argument
                                                  : Errc::corrupted;
  fail(code, "{}: {}", name, problem);
}

}  // namespace

std::vector<std::byte> read_superblock_bytes(ObjectStore& objects) {
  try {
    return objects.get(kSuperblockKey, kMaxSuperblockObjectBytes);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    fail(Errc::not_found, "{}: there is no remote ({})", objects.url(), e.what());
  }
}

format::Superblock read_superblock(ObjectStore& objects) {
  return read_twice([&] {
    format::Superblock out;
    const std::string name = objects.url() + ": " + kSuperblockKey;
    switch (format::decode_superblock(read_superblock_bytes(objects), out)) {
      case format::SuperblockStatus::ok:
        return out;
      case format::SuperblockStatus::newer_format:
        fail(Errc::newer_format, "{}: written by a newer Vellum", name);
      case format::SuperblockStatus::not_a_store:
        fail(Errc::not_a_store, "{}: not the superblock of a Vellum store", name);
      case format::SuperblockStatus::corrupted:
        break;
    }
    fail(Errc::corrupted, "{}: the superblock is corrupted", name);
  });
}

WriteId random_write_id() {
  std::random_device device;
  WriteId id;
  for (auto& b : id) b = static_cast<std::byte>(device());
  return id;
}

// nullopt: there is none of this number.
std::optional<StoredHead> Remote::read_head(std::uint64_t number) const {
  const std::string key = head_key(number);
  return read_twice([&]() -> std::optional<StoredHead> {
    std::vector<std::byte> bytes;
    try {
      bytes = objects_.get(key, kMaxHeadBytes);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
      return std::nullopt;
    }
    StoredHead out;
    require_sound(name_of(key), decode_head(bytes, store_id_, out.head));
    if (out.head.number != number) {
      fail(Errc::corrupted, "{}: this is head {}", name_of(key), out.head.number);
    }
    out.hash = base::sha256(bytes);
    return out;
  });
}

std::optional<std::uint64_t> Remote::newest_number(ObjectStore& objects) {
  for (const ObjectInfo& object : objects.list(kHeadPrefix, kHeadsListed)) {
    const auto number = parse_head_key(object.key);
    if (number.has_value()) return number;
  }
  return std::nullopt;
}

// The newest is never deleted while it is the newest; one that is not there any more was passed.
StoredHead Remote::newest_head(std::optional<std::uint64_t> number) const {
  for (; number.has_value(); number = newest_number(objects_)) {
    if (auto head = read_head(*number)) return std::move(*head);
  }
  return {};
}

// Heads are deleted from the oldest on, so one may have been made again where another stood. It
// counts if it is the newest, or if the next one was made by somebody who had read it.
bool Remote::is_published(std::uint64_t number, const base::Sha256& hash) const {
  for (const ObjectInfo& object : objects_.list(kHeadPrefix, kHeadsListed)) {
    const auto newest = parse_head_key(object.key);
    if (!newest.has_value()) continue;
    if (*newest == number) return true;
    const auto next = read_head(number + 1);
    return next.has_value() && next->head.before == hash;
  }
  return false;
}

bool Remote::publish(const StoredHead& base, Head next) const {
  next.number = base.head.number + 1;
  next.before = base.hash;
  next.write_id = random_write_id();
  const auto bytes = encode_head(next, store_id_);
  if (bytes.size() > kMaxHeadBytes) {
    fail(Errc::invalid_argument, "{}: too many versions: their names take {} bytes", objects_.url(),
         bytes.size());
  }
  Head again;
  require_sound("a new head of " + objects_.url(), decode_head(bytes, store_id_, again));
  if (!objects_.put_if_absent(head_key(next.number), bytes)) return false;
  return is_published(next.number, base::sha256(bytes));
}

VersionPieces Remote::pieces_of(const ListName& name) const {
  if (name.size_bytes == 0) return {};
  const std::string key = list_key(name.name);
  return read_twice([&] {
    VersionPieces out;
    std::vector<std::byte> bytes;
    const bool is_cached = cache_ != nullptr && cache_->get(key, name.name.hash, bytes);
    if (!is_cached) {
      bytes = objects_.get(key, std::min<std::uint64_t>(name.size_bytes, kMaxListBytes));
      require_content(name_of(key), bytes, name.name.hash);
    }
    require_sound(name_of(key), decode_piece_list(bytes, store_id_, out));
    if (cache_ != nullptr && !is_cached) cache_->put(key, bytes);
    return out;
  });
}

// The hash is that of the whole piece. The contents have a checksum, and are compared with the
// records before one of these is used.
std::vector<PieceRecord> Remote::contents(const PieceName& name) const {
  if (auto cached = cached_contents(name)) return std::move(*cached);
  const std::string key = piece_key(name.name);
  return read_twice([&] {
    std::vector<PieceRecord> out;
    const auto bytes = objects_.get_range(key, {0, name.contents_bytes});
    require_sound(name_of(key), decode_contents(bytes, store_id_, out));
    if (cache_ != nullptr) cache_->put(key, bytes);
    return out;
  });
}

std::optional<std::vector<PieceRecord>> Remote::cached_contents(const PieceName& name) const {
  std::vector<std::byte> bytes;
  std::vector<PieceRecord> out;
  if (cache_ == nullptr || !cache_->get(piece_key(name.name), name.contents_bytes, bytes) ||
      decode_contents(bytes, store_id_, out) != nullptr) {
    return std::nullopt;
  }
  return out;
}

Piece Remote::piece(const PieceName& name) const {
  const std::string key = piece_key(name.name);
  return read_twice([&] {
    Piece out;
    out.bytes = objects_.get(key, name.size_bytes);
    if (out.bytes.size() != name.size_bytes) {
      fail(Errc::corrupted, "{}: {} bytes, and not the {} that are expected", name_of(key),
           out.bytes.size(), name.size_bytes);
    }
    require_content(name_of(key), out.bytes, name.name.hash);
    const auto start = std::span(out.bytes).first(static_cast<std::size_t>(name.contents_bytes));
    require_sound(name_of(key), decode_contents(start, store_id_, out.records));
    if (name.contents_bytes + records_bytes(out.records) != out.bytes.size()) {
      fail(Errc::corrupted, "{}: the records are not as long as the contents say", name_of(key));
    }
    if (cache_ != nullptr) cache_->put(key, start);
    return out;
  });
}

}  // namespace vellum::remote
