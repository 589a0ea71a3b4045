// store/packs/remote_packs.hpp: packs at a remote, read record by record.
//
// All packs of a store that is opened from a remote are there (remote/lazy/head_packs.hpp), and
// some packs of a lazy clone (remote/lazy/cloned_packs.hpp).
//
// Threads: all calls from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/files/file.hpp"
#include "format/records/record.hpp"
#include "format/records/translation.hpp"
#include "format/version.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

// The location to which a reference resolves.
struct RecordPlace {
  const char* problem = nullptr;               // static text; the reason why there is none, or null
  const base::File* file = nullptr;            // valid as long as the set, like `dropped`
  format::RecordRef record;                    // in that file, as in its own header
  std::span<const format::SlotRange> dropped;  // slots of the record that gc freed
  const base::File* copy = nullptr;            // in a cache; may have the record at the same offset
  int os_errno = 0;                            // with `problem`: the cause, if it is a system error
};

// A record of a remote pack, without its bytes.
struct RecordAtRemote {
  format::RecordType type = format::RecordType::pages;
  format::RecordRef ref;                   // in versions
  format::RecordRef place;                 // in its own header
  std::uint64_t size_bytes = 0;            // with header and padding
  std::vector<format::SlotRange> dropped;  // slots that gc freed
};

class RemotePacks {
 public:
  virtual ~RemotePacks() = default;
  RemotePacks() = default;
  RemotePacks(const RemotePacks&) = delete;
  RemotePacks& operator=(const RemotePacks&) = delete;

  // Whether the store also has local packs. A pack that is a local file is read locally.
  virtual bool is_beside_files() const noexcept = 0;
  // Fetches the locations of a version's records, before any of them is read. Throws the remote's
  // errors.
  virtual void learn(const format::Version& version) = 0;
  // Reads the list of remote packs again.
  virtual void refresh() = 0;
  // Represents a remote pack in messages; null: the pack is not remote. It cannot be read as a
  // whole. Neither allocates nor locks: the fault handler uses it.
  virtual const base::File* find(std::uint64_t pack) const noexcept = 0;
  // The remote packs, ascending.
  virtual std::vector<std::uint64_t> list() const = 0;
  // May wait until the record is fetched, up to the timeout of the remote. Allocates nothing and
  // takes no lock: the fault handler uses it. REQUIRES: the caller holds no lock that another fault
  // may need. A record may exist in several forms, each with its own slots: the result has `slots`,
  // if any form has all of them.
  virtual RecordPlace locate(const format::RecordRef& ref,
                             const format::SlotRange& slots) const noexcept = 0;
  // Requests the missing records of these references at once. Data fetched only for them is kept
  // until the result is destroyed. Records that fail, or do not fit, are left to locate(). May wait
  // as long as locate().
  virtual std::shared_ptr<const void> fetch_early(std::span<const format::RecordRef> refs) = 0;
  // Describes the record that references have at this offset, without fetching it: all its forms,
  // the one with most slots first. Errc::corrupted: there is none; io: the description cannot be
  // fetched now.
  virtual std::vector<RecordAtRemote> describe(std::uint64_t pack,
                                               std::uint64_t offset_bytes) const = 0;
  // The bytes of a described record; the caller checks them. Errors as above.
  virtual std::vector<std::byte> fetch(const RecordAtRemote& record) const = 0;
};

}  // namespace vellum::store
