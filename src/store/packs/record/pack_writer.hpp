// store/packs/record/pack_writer.hpp: the writer of a branch's active pack.
//
// An appended record is valid only after the caller has synced it and published a reference.
// Therefore an abandoned append is only a tail that the next append overwrites.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/files/file.hpp"
#include "format/records/record.hpp"
#include "format/wire/types.hpp"
#include "store/packs/encode/based_block.hpp"
#include "store/packs/io_cost.hpp"

namespace vellum::store {

class EncodingThreads;
class PackStore;

// A record to append.
struct NewRecord {
  format::RecordType type;
  base::Codec codec;
  std::uint32_t raw_bytes;
  std::span<const std::byte> stored;
  std::uint32_t items;
  std::span<const std::byte> hash = {};  // SHA-256 of the raw payload; empty: none
};

class PackWriter {
 public:
  // Continues at the end of the active pack of `version`.
  PackWriter(PackStore& store, std::uint64_t branch_id, const format::Version& version);
  ~PackWriter();

  // Buffers a record; sync() writes it, or append() when the buffer exceeds 1 MiB. Starts a new
  // pack if there is none, or if the active one exceeds pack_bytes and `may_roll` is true: the old
  // pack gets its index and trailer, and is synced, first. REQUIRES: the hash is empty or has 32
  // bytes.
  format::RecordRef append(const NewRecord& record, bool may_roll = true);
  // The same for blocks of pages, in this order. If a block resembles blocks that this writer has
  // appended before, and allow_based() is true, it becomes a record of based pages; `threads`
  // search for resembling blocks. Without `allow_based` there are no records of based pages.
  // REQUIRES: if allow_based() returns true, gc is excluded from then until the record is
  // published; or gc is excluded again before that, and bases_whole() is then checked.
  std::vector<format::RecordRef> append_pages(std::span<const BlockView> blocks,
                                              const std::function<bool()>& allow_based,
                                              EncodingThreads& threads);
  // Whether records since note_committed() have base pages, and whether the pack still has these.
  bool has_bases() const noexcept;
  bool bases_whole() const;
  // Writes and fdatasyncs the active pack, and syncs the packs directory if the pack is new.
  void sync();
  // Drops everything appended since the last note_committed() (a failed or rolled-back checkpoint).
  void abandon() noexcept;
  // The published version covers everything appended so far.
  void note_committed() noexcept;

  std::uint64_t active_pack() const noexcept;
  std::uint64_t end_bytes() const noexcept;
  std::uint64_t next_pack_number() const noexcept;
  std::uint64_t bytes_appended() const noexcept;  // since construction, for reports
  bool dirty() const noexcept;                    // something was appended since note_committed()
  base::Compressor& compressor() noexcept;        // for payloads; it takes a megabyte
  const IoCost& io() const noexcept;
  bool sync_failed() const noexcept;  // the branch writer must not continue

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
