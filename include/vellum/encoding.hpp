// vellum/encoding.hpp: how changed pages are stored.
//
// A store has its own way (StoreOptions); a branch may have another, from when it is made on, and
// one opening of it yet another (RegionOptions::encoding). Readers take all of them. The defaults
// suit: they adapt to the data block by block. The switches are there to measure what each part is
// worth, and to rebuild what other systems do: fixed blocks, whole pages and plain zstd are the way
// of Privateer (Youssef et al., HPEC 2022).
#ifndef VELLUM_ENCODING_HPP
#define VELLUM_ENCODING_HPP

#include <cstdint>

namespace vellum {

struct Encoding {
  enum class Compression { none, lz4, zstd };
  Compression compression = Compression::zstd;
  int compression_level = 1;  // zstd 1..19
  // Pages compressed together: 4 KiB..128 MiB, a power of two. In RegionOptions at most 1 MiB or
  // the store's own, whichever is more.
  std::uint32_t block_bytes = 64u << 10;
  // Where pages compress to little, blocks grow to as much as 1 MiB.
  bool grow_blocks = true;
  // Byte planes or differences of 8-byte words before compression, for each block where a sample of
  // it gets smaller.
  bool filters = true;
  // A page that the store holds already refers to it.
  bool dedup = true;
  // A page is stored as the bytes that changed, where that is less.
  bool deltas = true;
  // A hash of the content, kept with every block of pages and every batch of deltas, beside the
  // checksum that all data has (XXH3, 64 bits). The checksum finds what goes wrong; whoever can
  // write to the store can make another content with the same one. A SHA-256 cannot be met on
  // purpose; and it is a name that other tools know, by which content can be looked up or compared
  // without this library. It is computed when a block is written, and checked whenever a record is
  // read whole: by verify with data, by recompression, where dedup looks; not by a page fault. What
  // is in a journal only has none yet. The price: 32 bytes a block, and hashing all that is
  // written, 0.75 s of one core a GiB where the processor has instructions for it.
  enum class Hash { none, sha256 };
  Hash hash = Hash::none;
};

}  // namespace vellum

#endif  // VELLUM_ENCODING_HPP
