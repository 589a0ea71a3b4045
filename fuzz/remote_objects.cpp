// The objects of a remote, and a server's listing.
#include "decoder_targets.hpp"
#include "remote/objects/head.hpp"
#include "remote/objects/hold.hpp"
#include "remote/objects/lock_note.hpp"
#include "remote/objects/name_table.hpp"
#include "remote/objects/piece.hpp"
#include "remote/objects/piece_list.hpp"
#include "remote/objects/remote_file.hpp"
#include "remote/remote_samples.hpp"
#include "remote/s3/s3_replies.hpp"
#include "remote/seal/remote_superblock.hpp"
#include "remote/seal/sealed_object.hpp"
#include "seal.hpp"

namespace vellum::fuzz {
namespace {

constexpr std::size_t kIdAt = 16, kFrameLengthAt = 12;

const base::StoreKeys& keys_of_remotes() {
  static const base::StoreKeys out(base::Secret::random(base::kKeyBytes));
  return out;
}

// Unchanged, and as from a forger: with the right length and checksum.
template <typename Value, typename Decode, typename Encode>
void check_frame(View input, const Decode& decode, const Encode& encode) {
  Bytes sealed(input.begin(), input.end());
  if (sealed.size() >= kFrameLengthAt + 4) {
    const auto length = static_cast<std::uint32_t>(sealed.size());
    std::memcpy(sealed.data() + kFrameLengthAt, &length, sizeof length);
    seal_end(sealed, format::checksum_seed(uuid_at(sealed, kIdAt)));
  }
  for (const View bytes : {input, View(sealed)}) {
    const format::Uuid id = uuid_at(bytes, kIdAt);
    Value value, again;
    if (decode(bytes, id, value) != nullptr) continue;
    require(decode(encode(value, id), id, again) == nullptr && value == again,
            "an object of a remote decodes to itself");
    const format::FileSeal seal(id, &keys_of_remotes());
    require(decode(encode(value, seal), seal, again) == nullptr && value == again,
            "an object of an encrypted remote decodes to itself");
  }
}

}  // namespace

void fuzz_head(View input) {
  check_frame<remote::Head>(input, remote::decode_head, remote::encode_head);
}

void fuzz_name_table(View input) {
  const auto encode = [](const std::vector<remote::RemoteVersion>& names,
                         const format::FileSeal& seal) {
    return remote::encode_name_table(names, UINT32_MAX, seal);
  };
  check_frame<std::vector<remote::RemoteVersion>>(input, remote::decode_name_table, encode);
}

void fuzz_hold(View input) {
  check_frame<std::chrono::seconds>(input, remote::decode_lock_note, remote::encode_lock_note);
  check_frame<remote::Hold>(input, remote::decode_hold, remote::encode_hold);
}

// A forger has no key: what opens was sealed with it, under that name, and as it is.
void fuzz_sealed_object(View input) {
  static const base::ObjectKeys keys{base::Secret(Bytes(base::kKeyBytes))};
  Bytes out;
  if (remote::open_object(keys, "heads/1", input, out) == nullptr) {
    require(remote::sealed_bytes(out.size()) == input.size(), "an object has its size");
  }
  const Bytes sealed = remote::seal_object(keys, "heads/1", input);
  require(remote::opened_bytes(sealed.size()) == input.size() &&
              remote::open_object(keys, "heads/1", sealed, out) == nullptr &&
              std::ranges::equal(out, input),
          "a sealed object opens");
  require(remote::open_object(keys, "heads/2", sealed, out) != nullptr, "under its name only");
  Bytes with_checksum(input.begin(), input.end());
  if (with_checksum.size() >= 8) seal_end(with_checksum, 0);
  for (const View bytes : {input, View(with_checksum)}) {
    remote::RemoteSuperblock superblock;
    if (remote::decode_remote_superblock(bytes, superblock) != format::SuperblockStatus::ok) {
      continue;
    }
    require(remote::encode_remote_superblock(superblock) == Bytes(bytes.begin(), bytes.end()),
            "the superblock of a remote encodes to itself");
  }
}

void fuzz_piece_list(View input) {
  check_frame<remote::VersionPieces>(input, remote::decode_piece_list, remote::encode_piece_list);
}

// The base is that of the seed; an input with another hash is refused at once.
void fuzz_list_on_base(View input) {
  static const remote::BaseList base = remote::samples::sample_base();
  const auto decode = [](View bytes, const format::FileSeal& seal, remote::VersionPieces& out) {
    return remote::decode_list_on_base(bytes, seal, base, out);
  };
  const auto encode = [](const remote::VersionPieces& pieces, const format::FileSeal& seal) {
    return remote::encode_list_on_base(pieces, base, seal);
  };
  check_frame<remote::VersionPieces>(input, decode, encode);
}

void fuzz_piece(View input) {
  check_frame<std::vector<remote::PieceRecord>>(input, remote::decode_piece_index,
                                                remote::encode_piece_index);
}

void fuzz_remote_file(View input) {
  check_frame<remote::RemoteFile>(input, remote::decode_remote_file, remote::encode_remote_file);
}

void fuzz_s3_listing(View input) {
  remote::S3Versions versions;
  if (remote::parse_s3_versions(input, versions)) {
    std::size_t bytes = versions.next.key.size() + versions.next.id.size();
    for (const remote::ObjectVersion& version : versions.versions) {
      bytes += version.name.key.size() + version.name.id.size();
    }
    require(bytes <= input.size(), "a listing of versions holds no more than the server has sent");
  }
  remote::S3Retention retention;
  remote::parse_s3_retention(input, retention);
  remote::S3Listing listing;
  if (!remote::parse_s3_listing(input, listing)) return;
  std::size_t bytes = listing.next.size();
  for (const remote::ObjectInfo& object : listing.objects) bytes += object.key.size();
  require(bytes <= input.size(), "a listing holds no more than the server has sent");
}

}  // namespace vellum::fuzz
