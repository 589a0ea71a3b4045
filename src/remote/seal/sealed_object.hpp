// remote/seal/sealed_object.hpp: the bytes of an object of an encrypted remote of a plain store.
//
// A header with the object's size and salt, then its chunks, each followed by its authenticator.
// A chunk is authenticated with the header, the object's key in the remote and its own number: it
// opens at its place in its object only, and an object that was cut or lengthened does not open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/crypto/object_keys.hpp"
#include "remote/engine/object_store.hpp"

namespace vellum::remote {

inline constexpr std::size_t kSealedChunkBytes = 16u << 10;
inline constexpr std::size_t kSealedHeaderBytes = 56;
// Objects of a remote are far smaller, and are held in memory.
inline constexpr std::uint64_t kMaxSealableBytes = 1ULL << 32;

struct SealedHeader {
  std::uint64_t size_bytes = 0;  // of the object
  base::ObjectSalt salt{};
};

// The size of a sealed object; UINT64_MAX: too large for one.
std::uint64_t sealed_bytes(std::uint64_t size_bytes) noexcept;
// Its inverse; 0, which no object of a remote has: no sealed object has this size.
std::uint64_t opened_bytes(std::uint64_t sealed_size_bytes) noexcept;

// Whether the bytes begin like a sealed object.
bool is_sealed_object(std::span<const std::byte> bytes) noexcept;

// Errc::invalid_argument: it is too large.
std::vector<std::byte> seal_object(const base::ObjectKeys& keys, const std::string& key,
                                   std::span<const std::byte> bytes);
// nullptr, or a description of the error. These bytes are the whole object.
const char* open_object(const base::ObjectKeys& keys, const std::string& key,
                        std::span<const std::byte> sealed, std::vector<std::byte>& out);

// nullptr, or a description of the error. Nothing of the header is authentic before a chunk opens.
const char* decode_sealed_header(std::span<const std::byte> start, SealedHeader& out) noexcept;
// Where the chunks with this range are. REQUIRES: the object has the range, which is not empty.
ObjectRange chunks_with(const SealedHeader& header, const ObjectRange& range) noexcept;
// nullptr, or a description of the error. `sealed` are the chunks of chunks_with(header, range).
const char* open_chunks(const base::ObjectKeys& keys, const std::string& key,
                        const SealedHeader& header, const ObjectRange& range,
                        std::span<const std::byte> sealed, std::vector<std::byte>& out);

}  // namespace vellum::remote
