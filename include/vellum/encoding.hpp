// vellum/encoding.hpp: how changed pages are stored.
//
// A store has its own encoding (StoreOptions); a branch may have another, given when it is created,
// and one opening of it yet another (RegionOptions::encoding). Readers accept all of them. The
// defaults adapt to the data block by block and need no tuning. The switches serve to measure each
// part, and to reproduce other systems: fixed blocks, whole pages and plain zstd are the encoding
// of Privateer (Youssef et al., HPEC 2022).
#ifndef VELLUM_ENCODING_HPP
#define VELLUM_ENCODING_HPP

#include <cstdint>

namespace vellum {

struct Encoding {
  enum class Compression { none, lz4, zstd };
  Compression compression = Compression::zstd;
  int compression_level = 1;  // zstd 1..19; deltas take at least 4
  // Pages compressed together: 4 KiB..128 MiB, a power of two. In RegionOptions at most 1 MiB or
  // the store's own, whichever is more.
  std::uint32_t block_bytes = 64u << 10;
  // Where pages compress little, blocks grow to as much as 1 MiB.
  bool grow_blocks = true;
  // Byte planes (as in Blosc's shuffle filter) or differences of 8-byte words before compression,
  // for each block whose sample becomes smaller by them.
  bool filters = true;
  // Duplicate pages are stored as references; similar pages as compressed differences.
  bool dedup = true;
  // A page is stored as its changed bytes, where that is less.
  bool deltas = true;
  // A hash of the content, stored with every block of pages and every batch of deltas, in addition
  // to the checksum that all data has (XXH3, 64 bits). The checksum detects errors, but an attacker
  // who can write to the store can construct other content with the same checksum. SHA-256 resists
  // that, and other tools can look content up by it without this library. It is computed when a
  // block is written, and verified whenever a record is read whole: by verify with data, by
  // recompression, by dedup; not by a page fault. Data that is only in a journal has no hash yet.
  // The cost: 32 bytes per block, and hashing all written data, 0.75 s of one core per GiB where
  // the processor has instructions for it.
  enum class Hash { none, sha256 };
  Hash hash = Hash::none;
};

}  // namespace vellum

#endif  // VELLUM_ENCODING_HPP
