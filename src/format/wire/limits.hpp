// format/wire/limits.hpp: the sizes and bounds of the format.
//
// Decoders refuse anything beyond them. No number from a file therefore decides how much memory is
// allocated.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vellum::format {

inline constexpr std::size_t kPageBytes = 4096;  // the unit of tracking
constexpr std::uint64_t pages_in(std::uint64_t region_bytes) noexcept {
  return (region_bytes + kPageBytes - 1) / kPageBytes;
}
// The number in the files of a plain store, and in those of an encrypted one: format 1.1.
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kSealedFormatVersion = 1u << 16 | 1;
// 1.2: of the superblock and the objects of an encrypted remote of a plain store. No file of a store
// has it.
inline constexpr std::uint32_t kObjectsFormatVersion = 2u << 16 | 1;
constexpr std::uint32_t format_version(bool sealed) noexcept {
  return sealed ? kSealedFormatVersion : kFormatVersion;
}
// 64 TiB, which x86-64 user space can hold.
inline constexpr std::uint64_t kMaxRegionBytes = 1ULL << 46;
inline constexpr std::uint32_t kMaxRecordRawBytes = 128u << 20;  // the largest block
inline constexpr std::uint32_t kMaxDeltaBatchRawBytes = 64u << 10;
inline constexpr std::uint32_t kMaxDeltasPerBatch = 4096;
inline constexpr std::uint32_t kMaxEntriesPerMapBlock = 1024;
inline constexpr std::uint32_t kMaxRunsPerVersion = 256;
inline constexpr std::uint32_t kMaxMapBlockRawBytes = 64u << 10;
inline constexpr std::uint32_t kMaxVersionBytes = 14u << 10;  // of an encoded Version
inline constexpr std::uint64_t kMaxPackOffsetBytes = 1ULL << 48;
inline constexpr std::uint32_t kMaxNameBytes = 200;  // a branch or snapshot name
inline constexpr std::uint32_t kMaxMessageBytes = 4096;

// Packs and records.
inline constexpr std::size_t kPackHeaderBytes = 64;
// The SHA-256 that may follow a record's header.
inline constexpr std::size_t kHashBytes = 32;
inline constexpr std::size_t kRecordHeaderBytes = 56;
inline constexpr std::size_t kRecordAlignBytes = 8;
inline constexpr std::size_t kPackTrailerBytes = 32;
inline constexpr std::uint64_t kMinPackBytes = 4u << 10;
inline constexpr std::uint64_t kMaxPackBytes = 1ULL << 40;
inline constexpr std::uint32_t kMaxPageHashes = 1u << 16;         // of one record
inline constexpr std::uint32_t kMaxTranslatedRecords = 1u << 20;  // of one pack
inline constexpr std::uint32_t kMaxTranslationRawBytes = 32u << 20;
inline constexpr std::uint32_t kMinTranslationLineBytes = 11;
inline constexpr std::uint8_t kMaxTranslationLevel = 22;

// Journals.
inline constexpr std::size_t kFrameHeaderBytes = 40;
inline constexpr std::uint32_t kMinJournalHalfBytes = 16u << 10;  // any base frame fits
inline constexpr std::uint32_t kMaxJournalHalfBytes = 1u << 30;

}  // namespace vellum::format
