// format/wire/magic.hpp: the first bytes of each file and structure, and the flag bits.
#pragma once

#include <cstdint>

namespace vellum::format {

inline constexpr char kSuperblockMagic[] = "VELLUM\r\n";
inline constexpr char kPackMagic[] = "VLMPACK\n";
inline constexpr char kPackTrailerMagic[] = "VLMPEND\n";
inline constexpr char kJournalMagic[] = "VLMJRNL\n";
inline constexpr char kSnapshotMagic[] = "VLMSNAP\n";
inline constexpr char kSignedSnapshotMagic[] = "VLMSNP2\n";
inline constexpr char kSnapshotOrderMagic[] = "VLMORDR\n";
inline constexpr char kNewestSnapshotsMagic[] = "VLMNEWS\n";
inline constexpr char kSnapshotNoteMagic[] = "VLMNAMG\n";
inline constexpr char kGcCensusMagic[] = "VLMCENS\n";
inline constexpr char kSpaceNoteMagic[] = "VLMSPCE\n";
inline constexpr char kWorkingSetMagic[] = "VLMWSET\n";
inline constexpr char kTiersMagic[] = "VLMTIER\n";
inline constexpr char kTierIdMagic[] = "VLMTDIR\n";
inline constexpr char kKeySlotsMagic[] = "VLMKEYS\n";
inline constexpr char kSignersMagic[] = "VLMSIGN\n";
inline constexpr char kGroupMagic[] = "VLMGRUP\n";
inline constexpr char kGroupRecordMagic[] = "VLMGVER\n";
inline constexpr std::uint32_t kRecordMagic = 0x43455256;  // "VREC"
inline constexpr std::uint32_t kFrameMagic = 0x4d524656;   // "VFRM"
inline constexpr std::uint32_t kProofMagic = 0x31504c56;   // "VLP1"

inline constexpr std::uint16_t kRecordFlagHash = 1;
inline constexpr std::uint16_t kRecordFlagSealed = 2;
inline constexpr std::uint8_t kFrameFlagSealed = 1;
// A store without flags uses this Vellum's defaults.
inline constexpr std::uint16_t kSuperblockFlagFixedBlocks = 1;
inline constexpr std::uint16_t kSuperblockFlagNoFilters = 2;
inline constexpr std::uint16_t kSuperblockFlagNoDedup = 4;
inline constexpr std::uint16_t kSuperblockFlagNoDeltas = 8;
inline constexpr std::uint16_t kSuperblockFlagSha256 = 16;

}  // namespace vellum::format
