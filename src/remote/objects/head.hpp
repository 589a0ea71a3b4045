// remote/objects/head.hpp: a head of a remote: the versions that have changed since its name table.
//
// The object of a head may also have small lists and pieces, after the frame: a small commit then
// takes one put. RemoteVersion::embedded names them, in this head and in later ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "remote/objects/remote_version.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxHeadBytes = 64u << 20;

// Which head it is, without its content.
struct HeadId {
  std::uint64_t number = 0;  // 0: none
  WriteId write_id{};
  bool operator==(const HeadId&) const = default;
};

// gc deletes heads in rounds, which their numbers select. A round begins when all heads of the
// earlier ones are deleted; within a round the order is any.
inline constexpr std::uint64_t kDeletionRounds = 8;
constexpr std::uint64_t deletion_round(std::uint64_t number) noexcept {
  return number % kDeletionRounds;
}

struct Head {
  std::uint64_t number = 0;  // from 1; 0: the remote is empty
  std::uint32_t generation = 0;
  WriteId write_id{};
  base::Sha256 before{};  // of the frame of the head before
  // gc deletes the witness before any later head: as long as it exists, none of these was deleted.
  // A head that is a witness itself names the one before it here. None: an older Vellum has written
  // the head.
  bool is_witness = false;
  HeadId earlier_witness;
  // The number of the next head, if that is not the following one. A store that has seen a loss of
  // heads leaves out their numbers: if an older copy of the remote is put back beside it, the newest
  // of its heads stays the newest. 0: `number` + 1.
  std::uint64_t continues_at = 0;
  WriteId only_writer{};                // the only store that may push; zeros: any store may push
  ObjectName table;                     // of older names (remote/objects/name_table.hpp)
  std::vector<RemoteVersion> versions;  // ascending by name; they override those of the table
  std::vector<std::string> gone;        // names of the table that are forgotten; ascending
  bool operator==(const Head&) const = default;

  HeadId id() const noexcept { return {number, write_id}; }
  std::uint64_t next_number() const noexcept {
    return continues_at != 0 ? continues_at : number + 1;
  }
  // Of the next head.
  HeadId witness() const noexcept { return is_witness ? id() : earlier_witness; }
  const RemoteVersion* find(const std::string& name) const noexcept;
};

// REQUIRES: decode_head() would accept it.
std::vector<std::byte> encode_head(const Head& head, const format::FileSeal& seal);
// The same, followed by `objects`. The versions' embedded objects that name this head have offsets
// in `objects`; on return, in the result.
std::vector<std::byte> encode_head_with(Head& head, std::span<const std::byte> objects,
                                        const format::FileSeal& seal);
// Whether the objects that the head itself embeds are intact. `bytes`: the whole object of the head.
bool has_sound_objects(const Head& head, std::span<const std::byte> bytes);
// The bytes without embedded objects. Not checked. The head's hash is that of these: its checksum and
// its hash say nothing about the objects, which the versions' tables do.
std::span<const std::byte> frame_of_head(std::span<const std::byte> bytes) noexcept;
// The id at the start of a head, of which these are the first kHeadStartBytes bytes. They are
// clear in an encrypted remote, too.
inline constexpr std::size_t kHeadStartBytes = 60;
HeadId head_id_at_start(std::span<const std::byte> bytes);
// nullptr, or a description of the error.
const char* decode_head(std::span<const std::byte> bytes, const format::FileSeal& seal, Head& out);

// The copy of the newest head: its bytes, then lists of pieces that its readers need first. All of
// it is a hint: a reader checks the head like one that it has listed, and a list by its hash.
inline constexpr std::uint32_t kMaxNewestCopyBytes = 256u << 10;
inline constexpr std::size_t kMaxCopiedLists = 2;  // a version's own, and its base
struct NewestCopy {
  std::vector<std::byte> head;
  std::vector<std::vector<std::byte>> lists;  // at most kMaxCopiedLists
};
std::vector<std::byte> encode_newest_copy(const NewestCopy& copy);
// `head_bytes`: the size of the listed head. Lists after a malformed one are left out.
NewestCopy decode_newest_copy(std::span<const std::byte> bytes, std::uint64_t head_bytes);

}  // namespace vellum::remote
