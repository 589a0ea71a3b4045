// remote/objects/object_key.hpp: the keys of a remote's objects.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes/sha256.hpp"

namespace vellum::remote {

inline constexpr const char* kSuperblockKey = "store/vellum.store";
inline constexpr const char* kKeySlotsKey = "store/vellum.keys";  // of an encrypted store
inline constexpr const char* kPiecePrefix = "pieces/";
inline constexpr const char* kListPrefix = "lists/";
inline constexpr const char* kNamesPrefix = "names/";
inline constexpr const char* kHeadPrefix = "heads/";
inline constexpr const char* kHoldPrefix = "holds/";
// A copy of the newest head, written after it: a hint, which a listing must confirm.
inline constexpr const char* kNewestKey = "newest/head";

// The duration of the locks of a remote's objects (remote/objects/lock_note.hpp); missing: no
// locks.
inline constexpr const char* kLockNoteKey = "lock/duration";

// The name of an object by its content, with the generation in which it was uploaded.
struct ContentName {
  std::uint32_t generation = 0;
  base::Sha256 hash{};
  auto operator<=>(const ContentName&) const = default;
};

std::string piece_key(const ContentName& name);
std::string list_key(const ContentName& name);
std::string names_key(const ContentName& name);
// Larger numbers have smaller keys: a listing begins with the newest head.
std::string head_key(std::uint64_t number);

// A head's reference to a list of pieces or a table of names.
struct ObjectName {
  ContentName content;
  std::uint64_t size_bytes = 0;  // 0: no such object, since it would be empty
  auto operator<=>(const ObjectName&) const = default;
};

// The list of pieces of a version, and its base.
struct ListName {
  ObjectName base;  // size 0: a whole list
  ObjectName own;   // size 0: the version has no pieces, and no base
  auto operator<=>(const ListName&) const = default;
};

// A list or a piece that is part of a head's object (remote/objects/head.hpp), and perhaps not an
// object of its own.
struct EmbeddedObject {
  std::uint64_t head = 0;     // the number of that head
  std::uint64_t head_id = 0;  // the start of its write id: another head may get the number
  std::uint64_t offset_bytes = 0, size_bytes = 0;
  std::uint64_t hash_start = 0;  // of the content: a reader that knows the name checks all of it
  auto operator<=>(const EmbeddedObject&) const = default;
};
std::uint64_t hash_start(const base::Sha256& hash) noexcept;
inline std::uint64_t end_of(const EmbeddedObject& object) noexcept {
  return object.offset_bytes + object.size_bytes;
}

// nullopt: not such a key.
std::optional<ContentName> parse_content_key(const std::string& key, const std::string& prefix);
std::optional<std::uint64_t> parse_head_key(const std::string& key);

}  // namespace vellum::remote
