// region/region_impl.hpp: the object behind a Region handle.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>
#include <vellum/region.hpp>

#include "base/threads/background.hpp"
#include "format/working_set.hpp"
#include "memory/memory.hpp"
#include "memory/statistics/counters.hpp"
#include "region/background_gc.hpp"
#include "region/card_tracker.hpp"
#include "region/encode/encoder.hpp"
#include "store/branch/branch_writer.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum {

struct Region::Impl {
  using PageNumber = format::PageNumber;

  Impl();
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // See region::RegionAccess.
  static std::shared_ptr<Impl> open_branch(std::shared_ptr<store::StoreDirectory> core,
                                           const std::string& branch, const RegionOptions& options);
  static std::shared_ptr<Impl> open_version(std::shared_ptr<store::StoreDirectory> core,
                                            const std::string& name, const RegionOptions& options);

  // commit(), or with a claimed name snapshot(). REQUIRES for these and the next two: `mutex` is
  // held and no task runs in the background. `known`: the pages that have been stored to,
  // ascending; null: the call finds them.
  CommitReport commit(std::optional<store::NameLock> snapshot, const std::string& message,
                      const std::vector<PageNumber>* known = nullptr);
  std::future<CommitReport> commit_async(std::optional<store::NameLock> snapshot,
                                         const std::string& message);
  void rollback();
  // The ends of a transaction: by commit(), by rollback(), and by its destruction. REQUIRES: as
  // above, and a transaction is open (not for roll_transaction_back()).
  CommitReport commit_transaction(const std::string& message);
  void roll_transaction_back();
  void abandon_transaction() noexcept;
  // Throws while a transaction is open (Errc::busy) or could not be rolled back (Errc::poisoned).
  void require_no_transaction(const char* call) const;
  void grow(std::uint64_t size_bytes);
  void resize_file(std::uint64_t bytes, std::uint64_t room_bytes);
  // With engine mapped: the bytes since the end of the last commit are in the image when this
  // returns true, and a kill does not lose them; the next commit takes them. False: nothing has
  // changed. `from_bytes`: the lowest offset stored to since the last such call or commit. REQUIRES:
  // as for commit(); no thread stores to these bytes meanwhile.
  bool write_tail(std::uint64_t from_bytes);
  // Sets a range to zero. REQUIRES: it is inside the region; with engine mapped, inside the image.
  void zero(std::byte* from, const std::byte* end);
  // The pages that a range touches. Throws Errc::invalid_argument when it is not inside the region.
  format::PageRange find_pages(const ByteRange& range) const;
  // Those of them that may be touched; see end_page().
  format::PageRange find_backed_pages(const ByteRange& range) const;
  // All pages of these ranges, ascending.
  std::vector<PageNumber> pages_of(const std::vector<ByteRange>& ranges) const;
  void make_present(PageNumber first, std::size_t count);
  void make_present(std::span<const format::PageRange> ranges);
  [[noreturn]] void raise(const store::ReadFailure& failure) const;
  // The size of the plain file behind the region; no value: all of the region.
  std::optional<std::uint64_t> file_bytes() const noexcept;
  void set_file_bytes(std::optional<std::uint64_t> bytes) noexcept;
  // The first page that must not be touched: with engine mapped it is past the end of the file.
  PageNumber end_page() const noexcept;
  // The bytes of the region that may be touched: with a file behind it, those inside the file.
  std::uint64_t backed_bytes() const noexcept;
  // Releases all members below. REQUIRES: `mutex` is held and no task runs in the background.
  void close();
  // Records the facts that no longer change, before the region is published.
  void note_shape() noexcept;

  const std::uint32_t owner;  // the process (base::fork_count()); a child has no part in the region
  std::atomic<bool> closed{false};
  // Held shared by ReaderCalls while they use the memory; held exclusively by close(). Lock order:
  // `mutex` before `inside`.
  mutable std::shared_mutex inside;
  // Facts about the memory. Any thread may read them, also while another thread closes the region.
  struct Shape {
    void* data = nullptr;
    std::uint64_t capacity_bytes = 0;
    Engine engine = Engine::automatic;
    bool writable = false;
    bool serves_system_calls = false;
  } shape;
  std::shared_ptr<store::StoreDirectory> core;
  std::string name;
  std::mutex mutex;                             // held by WriterCalls and by close()
  std::unique_ptr<store::BranchWriter> writer;  // null when read-only
  std::shared_ptr<store::PageSource> source;    // content of a read-only region
  std::atomic<std::uint64_t> sequence{0};
  std::uint64_t committed_bytes = 0;  // region size of the last commit
  std::optional<std::uint64_t> committed_file_bytes;
  std::uint64_t remembered_address = 0;
  std::optional<format::WorkingSetOwner>
      remembered_as;                           // of its working set; no value: not recorded
  std::unique_ptr<region::CardTracker> cards;  // null: only the page tracker
  std::unique_ptr<region::Counters> counters;
  // Declared after all members that faults use, so it is unmapped first.
  std::unique_ptr<region::RegionMemory> memory;
  std::unique_ptr<region::Encoder> encoder;
  std::vector<format::PageNumber>
      pending;  // dirty pages that a failed commit has taken from the tracker
  std::vector<format::PageNumber> taken;  // from the spill file, by commits that are durable
  bool committed_before = false;          // this branch has at least one commit
  bool commit_failed = false;             // the last commit failed
  bool base_copies_lost = false;          // a failed commit could not be undone in memory
  // stuck: it was destroyed without a commit, and could not be rolled back.
  enum class TransactionState { none, open, stuck };
  TransactionState transaction = TransactionState::none;
  // Runs asynchronous commits; while it is busy, it owns all members above. Created with the
  // region; null when read-only.
  std::unique_ptr<base::Background> background;
  std::unique_ptr<region::BackgroundGc> space;  // null: read-only, or disabled

 private:
  struct CommitInProgress;
  void take_turn(CommitInProgress& c);
  bool makes_room_after(const Error& error);
  CommitReport commit_once(const std::optional<store::NameLock>& snapshot,
                           const std::string& message, const std::vector<PageNumber>* known);
  void remember(const RegionOptions& options, const format::WorkingSetOwner& of,
                region::MemoryOptions& memory_options);
  void write_working_set() noexcept;
  void finish() noexcept;
  std::vector<PageNumber> take_dirty(const std::vector<PageNumber>* known = nullptr);
  void extend_file(std::uint64_t bytes);
  void follow_stores_past_file_end(std::span<const PageNumber> dirty);
  void require_base_copies() const;
  void reload_base_copies(std::span<const PageNumber> pages);
  void accept_commit() noexcept;
  void undo_commit(std::vector<PageNumber> dirty);
  void begin_commit(CommitInProgress& c, bool capture);
  store::CommitCost write_commit(CommitInProgress& c);
  void end_commit(CommitInProgress& c);
  static constexpr std::uint64_t kNoFile = UINT64_MAX;
  std::atomic<std::uint64_t> file_bytes_{kNoFile};
};

// The access of the library and its tests to a region's implementation.
struct region::RegionAccess {
  using Impl = Region::Impl;

  // A branch, for writing: takes the branch's lock.
  static Region open_branch(std::shared_ptr<store::StoreDirectory> core, const std::string& branch,
                            const RegionOptions& options) {
    return Region(Impl::open_branch(std::move(core), branch, options));
  }
  // A version, read-only.
  static Region open_version(std::shared_ptr<store::StoreDirectory> core, const std::string& name,
                             const RegionOptions& options) {
    return Region(Impl::open_version(std::move(core), name, options));
  }
  static Impl& impl_of(const Region& region) { return *region.impl_; }
  // See Impl.
  static bool write_tail(const Region& region, std::uint64_t from_bytes);
  // Whether another process waits for the branch of a region with a tail.
  static bool is_asked_for(const Region& region);
};

}  // namespace vellum
