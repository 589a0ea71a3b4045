// store/packs/remote_packs.hpp: packs that are no files of the store, read record by record.
//
// A store that is opened from a remote has its packs there (remote/lazy/head_packs.hpp), and one that
// was cloned lazily has some of them there (remote/lazy/cloned_packs.hpp).
//
// Threads: all calls from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/version.hpp"
#include "store/packs/record_place.hpp"

namespace vellum::store {

// A record that is elsewhere, without its bytes.
struct RecordAtRemote {
  format::RecordType type = format::RecordType::pages;
  format::RecordRef ref;                   // as versions refer to it
  format::RecordRef place;                 // as its own header has it
  std::uint64_t size_bytes = 0;            // with header and padding
  std::vector<format::SlotRange> dropped;  // slots that were given back
};

class RemotePacks {
 public:
  virtual ~RemotePacks() = default;
  RemotePacks() = default;
  RemotePacks(const RemotePacks&) = delete;
  RemotePacks& operator=(const RemotePacks&) = delete;

  // Whether the store has a directory with packs of its own, too. A pack that is a file there is
  // read there.
  virtual bool is_beside_files() const noexcept = 0;
  // Finds out where the records of a version lie, before any of them is read. Throws what that
  // costs.
  virtual void learn(const format::Version& version) = 0;
  // Looks again at which packs are elsewhere.
  virtual void refresh() = 0;
  // Stands for a pack in messages; null: the pack is not elsewhere. It cannot be read as a whole.
  // Neither allocates nor locks: the fault handler uses it.
  virtual const base::File* find(std::uint64_t pack) const noexcept = 0;
  // The packs that are elsewhere, ascending.
  virtual std::vector<std::uint64_t> list() const = 0;
  // May wait for the record to come here, and for what is set as the longest wait. Allocates nothing
  // and takes no lock, because the fault handler uses it. REQUIRES: the caller holds no lock that
  // another fault may need. A record may be there in several forms, each with slots of its own: what
  // comes has `slots`, if any form has all of them.
  virtual RecordPlace locate(const format::RecordRef& ref,
                             const format::SlotRange& slots) const noexcept = 0;
  // Asks at once for all that these references lead to, as far as it is not here. What comes for
  // them alone stays until the result dies. What fails, or does not fit, is left to locate(). May
  // wait as long as that.
  virtual std::shared_ptr<const void> fetch_early(std::span<const format::RecordRef> refs) = 0;
  // What is known of the record to which references give this offset, without fetching it.
  // Of each form that is there, the one with most slots first. Errc::corrupted: there is none; io:
  // what would tell cannot be had now.
  virtual std::vector<RecordAtRemote> describe(std::uint64_t pack,
                                               std::uint64_t offset_bytes) const = 0;
  // The bytes of a record as it was described; who reads them checks them. Errors as above.
  virtual std::vector<std::byte> fetch(const RecordAtRemote& record) const = 0;
};

}  // namespace vellum::store
