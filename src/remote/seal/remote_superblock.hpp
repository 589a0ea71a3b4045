// remote/seal/remote_superblock.hpp: the superblock of a remote: that of the store whose versions it
// has and, if its objects are encrypted as wholes, the fingerprint of its data key.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "format/wire/superblock.hpp"
#include "store/catalog/key_file.hpp"

namespace vellum::remote {

struct RemoteSuperblock : format::Superblock {
  std::optional<store::KeyFingerprint> objects_key;  // of an encrypted remote of a plain store
  bool operator==(const RemoteSuperblock&) const = default;
  // Whether it has key slots.
  bool has_keys() const noexcept { return encrypted || objects_key.has_value(); }
};

// Without a fingerprint, the bytes are those of the store's file.
std::vector<std::byte> encode_remote_superblock(const RemoteSuperblock& superblock);
// Whether only the number of the format is damaged: with a known one, the checksum fits.
bool has_damaged_number(std::span<const std::byte> bytes);
format::SuperblockStatus decode_remote_superblock(std::span<const std::byte> bytes,
                                                  RemoteSuperblock& out) noexcept;

}  // namespace vellum::remote
