// store/packs/record/pack_writer.hpp: the writer of a branch's active pack.
//
// Nothing that it appends counts before the caller has synced it and published a reference. An
// abandoned append is therefore just a tail that the next one overwrites.
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

class PackWriter {
 public:
  // Continues where `version` says (active pack, end, next number).
  PackWriter(PackStore& store, std::uint64_t branch_id, const format::Version& version);
  ~PackWriter();

  // Buffers a record; sync() writes it out, or append() when the buffer passes 1 MiB. Starts a new
  // pack when there is none, or when the active one has passed pack_bytes and `may_roll` is true:
  // the old pack gets its index and trailer and is synced first.
  format::RecordRef append(format::RecordType type, base::Codec codec, std::uint32_t raw_bytes,
                           std::span<const std::byte> stored, std::uint32_t items,
                           std::span<const std::byte> hash = {}, bool may_roll = true);
  // The same for blocks of pages; their records come in this order. Where blocks that the writer has
  // appended before resemble one, `may_base` is asked, and the block becomes a record of based pages
  // if the answer is true; `threads` look for such blocks. REQUIRES of a true answer: gc is kept out
  // from then on until the record is published; or it is kept out again before that, and then
  // bases_whole() is asked. Without `may_base` there are no such records.
  std::vector<format::RecordRef> append_pages(std::span<const BlockView> blocks,
                                              const std::function<bool()>& may_base,
                                              EncodingThreads& threads);
  // Whether records since note_committed() have base pages, and whether the pack still has these.
  bool has_bases() const noexcept;
  bool bases_whole() const;
  // Writes out and fdatasyncs the active pack, and syncs the packs directory when the pack is new.
  void sync();
  // Forgets everything appended since the last note_committed() (a failed or rolled-back
  // checkpoint).
  void abandon() noexcept;
  // The published version covers everything appended so far.
  void note_committed() noexcept;

  std::uint64_t active_pack() const noexcept;
  std::uint64_t end_bytes() const noexcept;
  std::uint64_t next_pack_number() const noexcept;
  std::uint64_t bytes_appended() const noexcept;  // over the writer's life, for reports
  bool dirty() const noexcept;                    // something was appended since note_committed()
  base::Compressor& compressor() noexcept;  // for payloads; made once, since it costs a megabyte
  const IoCost& io() const noexcept;
  bool sync_failed() const noexcept;  // the writer must give up

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
