// format/wire/whole_file.hpp: the header and checksum of files that are replaced as a whole.
//
// These are snapshot refs, the census, working sets, tiers, and the state of an image. Each is a
// header, a body, and a checksum over both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::size_t kWholeFileHeaderBytes = 32;

struct WholeFileKind {
  const char* magic;  // 8 bytes
  std::uint32_t max_bytes;
  const char* not_this;   // error text for a file with another magic
  const char* too_large;  // error text for a file larger than max_bytes
  // In an encrypted store: the bytes at the start of the body that stay clear, and are authenticated.
  std::uint32_t clear_bytes = 0;
  // The file is named by a hash of its bytes: the same body has the same bytes when it is sealed.
  bool is_named_by_hash = false;
};

// The first problem of a frame, in the order of the checks.
enum class FrameProblem : std::uint8_t {
  none,
  truncated,
  newer_format,  // of a sound frame
  malformed,
  checksum_mismatch,
  other_store,  // of a sound frame
};

std::vector<std::byte> encode_whole_file(const WholeFileKind& kind, std::span<const std::byte> body,
                                         const FileSeal& seal);
// Of a plain store: returns nullptr and sets `body`, or returns a description of the error.
const char* open_whole_file(const WholeFileKind& kind, std::span<const std::byte> bytes,
                            const Uuid& store_id, std::span<const std::byte>& body) noexcept;
// Of any store. The body is in `bytes` or, decrypted, in `opened`.
const char* open_whole_file(const WholeFileKind& kind, std::span<const std::byte> bytes,
                            const FileSeal& seal, std::vector<std::byte>& opened,
                            std::span<const std::byte>& body);

// Checks the frame only: not its size limit and not its magic, which depend on the kind.
FrameProblem check_frame(std::span<const std::byte> bytes, const Uuid& store_id) noexcept;

inline constexpr std::size_t kWholeFileMagicBytes = 8;
// Whether the file begins like one of this kind. Not checked further.
bool has_magic(const WholeFileKind& kind, std::span<const std::byte> bytes) noexcept;

// Whether the header is of a sealed file. Not checked.
bool is_sealed_file(std::span<const std::byte> bytes) noexcept;

// The id in the header, of the store or group that the file belongs to. Zeros if the file is too
// short.
Uuid id_of_whole_file(std::span<const std::byte> bytes) noexcept;

}  // namespace vellum::format
