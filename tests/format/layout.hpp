// tests/format/layout.hpp: the fixed structures, numbers and limits of the format as tables.
//
// docs/format.md has the same tables. Tests compare the document and the encoders with these, hence
// none of the three can change without the others. No code uses these tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes/codec.hpp"
#include "format/gc_census.hpp"
#include "format/group.hpp"
#include "format/journal.hpp"
#include "format/key_slots.hpp"
#include "format/newest_snapshots.hpp"
#include "format/records/delta.hpp"
#include "format/records/page_map.hpp"
#include "format/records/record.hpp"
#include "format/records/translation.hpp"
#include "format/space_note.hpp"
#include "format/tiers.hpp"
#include "format/version.hpp"
#include "format/wire/limits.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/types.hpp"
#include "format/working_set.hpp"

namespace vellum::format {

struct Field {
  const char* name;
  std::size_t offset_bytes;
  std::size_t bytes;
};

inline constexpr Field kSuperblockFields[] = {
    {"magic", 0, 8},       {"format_version", 8, 4},      {"length", 12, 4},
    {"store_id", 16, 16},  {"created_ns", 32, 8},         {"block_bytes", 40, 4},
    {"codec", 44, 1},      {"codec_level", 45, 1},        {"flags", 46, 2},
    {"pack_bytes", 48, 8}, {"journal_half_bytes", 56, 4}, {"reserved", 60, 4},
    {"checksum", 64, 8},
};
inline constexpr Field kPackHeaderFields[] = {
    {"magic", 0, 8},
    {"format_version", 8, 4},
    {"translation_tag", 12, 4},
    {"store_id", 16, 16},
    {"pack", 32, 8},
    {"branch_id", 40, 8},
    {"translation_offset_bytes", 48, 8},
    {"checksum", 56, 8},
};
inline constexpr Field kRecordHeaderFields[] = {
    {"magic", 0, 4},  {"type", 4, 1},          {"codec", 5, 1},      {"flags", 6, 2},
    {"pack", 8, 8},   {"offset_bytes", 16, 8}, {"raw_bytes", 24, 4}, {"stored_bytes", 28, 4},
    {"items", 32, 4}, {"reserved", 36, 4},     {"reserved", 40, 8},  {"checksum", 48, 8},
};
inline constexpr Field kPackTrailerFields[] = {
    {"magic", 0, 8},
    {"pack", 8, 8},
    {"index_offset_bytes", 16, 8},
    {"checksum", 24, 8},
};
inline constexpr Field kJournalHeaderFields[] = {
    {"magic", 0, 8},       {"format_version", 8, 4}, {"half_bytes", 12, 4}, {"store_id", 16, 16},
    {"branch_id", 32, 8},  {"created_ns", 40, 8},    {"name_bytes", 48, 4}, {"reserved", 52, 4},
    {"name", 56, 200},     {"block_bytes", 256, 4},  {"codec", 260, 1},     {"codec_level", 261, 1},
    {"flags", 262, 2},     {"reserved", 264, 248},   {"seal", 512, 28},     {"reserved", 540, 3548},
    {"checksum", 4088, 8},
};
inline constexpr Field kFrameHeaderFields[] = {
    {"magic", 0, 4},          {"type", 4, 1},      {"flags", 5, 1},
    {"reserved", 6, 2},       {"epoch", 8, 8},     {"sequence", 16, 8},
    {"payload_bytes", 24, 4}, {"reserved", 28, 4}, {"checksum", 32, 8},
};
// Of snapshot refs, the file of their order, the census, working sets, tiers and states of images:
// whole_file.hpp.
inline constexpr Field kWholeFileHeaderFields[] = {
    {"magic", 0, 8},
    {"format_version", 8, 4},
    {"length", 12, 4},
    {"store_id", 16, 16},
};
inline constexpr Field kTierIdFields[] = {
    {"magic", 0, 8},      {"format_version", 8, 4}, {"kind", 12, 1},  {"reserved", 13, 3},
    {"store_id", 16, 16}, {"id", 32, 16},           {"inode", 48, 8}, {"born_ns", 56, 8},
};

struct Number {
  const char* name;
  std::uint64_t value;
};

inline constexpr Number kRecordTypeNumbers[] = {
    {"pages", static_cast<std::uint64_t>(RecordType::pages)},
    {"deltas", static_cast<std::uint64_t>(RecordType::deltas)},
    {"map_block", static_cast<std::uint64_t>(RecordType::map_block)},
    {"run_root", static_cast<std::uint64_t>(RecordType::run_root)},
    {"version", static_cast<std::uint64_t>(RecordType::version)},
    {"index", static_cast<std::uint64_t>(RecordType::index)},
    {"hashes", static_cast<std::uint64_t>(RecordType::hashes)},
    {"translation", static_cast<std::uint64_t>(RecordType::translation)},
    {"based_pages", static_cast<std::uint64_t>(RecordType::based_pages)},
};
inline constexpr Number kFrameTypeNumbers[] = {
    {"base", static_cast<std::uint64_t>(FrameType::base)},
    {"commit", static_cast<std::uint64_t>(FrameType::commit)},
    {"commit_marker", static_cast<std::uint64_t>(FrameType::commit_marker)},
    {"base_with_commits", static_cast<std::uint64_t>(FrameType::base_with_commits)},
};
inline constexpr Number kPartTypeNumbers[] = {
    {"pages", static_cast<std::uint64_t>(PartType::pages)},
    {"deltas", static_cast<std::uint64_t>(PartType::deltas)},
    {"zeros", static_cast<std::uint64_t>(PartType::zeros)},
};
inline constexpr Number kPageKindNumbers[] = {
    {"zero", static_cast<std::uint64_t>(PageKind::zero)},
    {"base", static_cast<std::uint64_t>(PageKind::base)},
    {"delta", static_cast<std::uint64_t>(PageKind::delta)},
};
inline const std::vector<Number> kCodecNumbers = [] {
  std::vector<Number> numbers;
  for (const auto& [name, codec] : base::codecs()) numbers.push_back({name, numbers.size()});
  return numbers;
}();
inline constexpr Number kRecordFlagNumbers[] = {
    {"has_hash", kRecordFlagHash},
    {"sealed", kRecordFlagSealed},
};
inline constexpr Number kSuperblockFlagNumbers[] = {
    {"fixed_blocks", kSuperblockFlagFixedBlocks},
    {"no_filters", kSuperblockFlagNoFilters},
    {"no_dedup", kSuperblockFlagNoDedup},
    {"no_deltas", kSuperblockFlagNoDeltas},
    {"sha256", kSuperblockFlagSha256},
};
inline constexpr Number kTierKindNumbers[] = {
    {"archive", static_cast<std::uint64_t>(TierKind::archive)},
    {"cache", static_cast<std::uint64_t>(TierKind::cache)},
};
inline constexpr Number kLimitNumbers[] = {
    {"kPageBytes", kPageBytes},
    {"kFormatVersion", kFormatVersion},
    {"kSealedFormatVersion", kSealedFormatVersion},
    {"kSealBytes", kSealBytes},
    {"kMaxKeySlots", kMaxKeySlots},
    {"kMaxKeyLabelBytes", kMaxKeyLabelBytes},
    {"kMaxKeySlotsBytes", kMaxKeySlotsBytes},
    {"kMaxArgon2Passes", base::kMaxArgon2Passes},
    {"kMaxArgon2MemoryKib", base::kMaxArgon2MemoryKib},
    {"kMaxRegionBytes", kMaxRegionBytes},
    {"kMaxRecordRawBytes", kMaxRecordRawBytes},
    {"kMaxDeltaBatchRawBytes", kMaxDeltaBatchRawBytes},
    {"kMaxDeltasPerBatch", kMaxDeltasPerBatch},
    {"kMaxEntriesPerMapBlock", kMaxEntriesPerMapBlock},
    {"kMaxMapBlockRawBytes", kMaxMapBlockRawBytes},
    {"kMaxRunsPerVersion", kMaxRunsPerVersion},
    {"kMaxVersionBytes", kMaxVersionBytes},
    {"kMaxPackOffsetBytes", kMaxPackOffsetBytes},
    {"kMaxTranslatedRecords", kMaxTranslatedRecords},
    {"kMaxTranslationRawBytes", kMaxTranslationRawBytes},
    {"kMaxNameBytes", kMaxNameBytes},
    {"kMaxMessageBytes", kMaxMessageBytes},
    {"kMaxSnapshotRefBytes", kMaxSnapshotRefBytes},
    {"kMaxNewestSnapshots", kMaxNewestSnapshots},
    {"kMaxNewestSnapshotsBytes", kMaxNewestSnapshotsBytes},
    {"kMaxGcCensusBytes", kMaxGcCensusBytes},
    {"kMaxSpaceNoteBytes", kMaxSpaceNoteBytes},
    {"kMaxWorkingSetBytes", kMaxWorkingSetBytes},
    {"kMaxWorkingSetRanges", kMaxWorkingSetRanges},
    {"kMinBlockBytes", kMinBlockBytes},
    {"kMaxBlockBytes", kMaxBlockBytes},
    {"kMaxGrownBlockBytes", kMaxGrownBlockBytes},
    {"kMinPackBytes", kMinPackBytes},
    {"kMaxPackBytes", kMaxPackBytes},
    {"kMinJournalHalfBytes", kMinJournalHalfBytes},
    {"kMaxJournalHalfBytes", kMaxJournalHalfBytes},
    {"kMergeGapBytes", kMergeGapBytes},
    {"kRecordAlignBytes", kRecordAlignBytes},
    {"kFrameAlignBytes", kFrameAlignBytes},
    {"kMaxTierDirectories", kMaxTierDirectories},
    {"kMaxTierPathBytes", kMaxTierPathBytes},
    {"kMaxTiersBytes", kMaxTiersBytes},
    {"kMaxGroupPartitions", kMaxGroupPartitions},
    {"kMaxGroupRecordBytes", kMaxGroupRecordBytes},
    {"kMaxGroupPathBytes", kMaxGroupPathBytes},
    {"kMaxGroupHostBytes", kMaxGroupHostBytes},
};

}  // namespace vellum::format
