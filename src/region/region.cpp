// The handle of a region (vellum/region.hpp).
#include <algorithm>
#include <cassert>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vellum/region.hpp>

#include "base/fail.hpp"
#include "base/threads/fork_count.hpp"
#include "region/call_guards.hpp"
#include "region/region_impl.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum {

using format::PageNumber;
using region::kPageBytes;
using region::ReaderCall;
using region::require_valid;
using region::require_writable;
using region::WriterCall;

Region::Region() noexcept = default;
Region::Region(const Region& other) noexcept = default;
Region::~Region() = default;
Region::Region(Region&&) noexcept = default;
Region& Region::operator=(Region&&) noexcept = default;

bool Region::valid() const noexcept { return impl_ != nullptr && !impl_->closed; }
void* Region::data() const noexcept { return valid() ? impl_->shape.data : nullptr; }
std::uint64_t Region::size_bytes() const noexcept {
  if (!valid()) return 0;
  std::shared_lock inside(impl_->inside, std::defer_lock);
  // A child of fork(2) may have inherited the lock from a thread that it does not have. Its copy of
  // the region does not change.
  if (impl_->owner == base::fork_count()) inside.lock();
  return impl_->closed ? 0 : impl_->memory->size_bytes();
}
std::uint64_t Region::capacity_bytes() const noexcept {
  return valid() ? impl_->shape.capacity_bytes : 0;
}
bool Region::writable() const noexcept { return valid() && impl_->shape.writable; }
void* Region::values(ByteRange first, std::uint64_t count, std::size_t alignment,
                     bool to_write) const {
  const ReaderCall call(impl_);
  const std::uint64_t size = impl_->memory->size_bytes();
  const auto [offset, value_bytes] = first;
  if (to_write && !impl_->shape.writable) {
    fail(Errc::read_only,
         "version '{}' is open read-only: its values are const, as root<const T>()", impl_->name);
  }
  if (offset % alignment != 0) {
    fail(Errc::invalid_argument, "region '{}': offset {} is no multiple of {}, the alignment there",
         impl_->name, offset, alignment);
  }
  if (offset > size || count > (size - offset) / value_bytes) {
    fail(Errc::invalid_argument,
         "region '{}' has {} bytes: {} values of {} bytes do not lie in it from offset {} on",
         impl_->name, size, count, value_bytes, offset);
  }
  return impl_->memory->data() + offset;
}
Engine Region::engine() const noexcept { return valid() ? impl_->shape.engine : Engine::automatic; }
bool Region::serves_system_calls() const noexcept {
  return valid() && impl_->shape.serves_system_calls;
}

std::string Region::name() const {
  require_valid(impl_);
  return impl_->name;
}

std::uint64_t Region::sequence() const {
  require_valid(impl_);
  return impl_->sequence;
}

CommitReport Region::commit(const std::string& message) {
  const WriterCall call(impl_);
  impl_->require_no_transaction("commit()");
  return impl_->commit({}, message);
}

CommitReport Region::commit_ranges(const std::vector<ByteRange>& written,
                                   const std::string& message) {
  const WriterCall call(impl_);
  impl_->require_no_transaction("commit_ranges()");
  const auto pages = impl_->pages_of(written);
  return impl_->commit({}, message, &pages);
}

void Region::drop_copies(const std::vector<ByteRange>& ranges) {
  const WriterCall call(impl_);
  const auto pages = impl_->pages_of(ranges);
  if (auto* const file = impl_->memory->file_behind()) file->drop_copies(pages);
}

CommitReport Region::snapshot(const std::string& name, const std::string& message) {
  const WriterCall call(impl_);
  impl_->require_no_transaction("snapshot()");
  return impl_->commit(store::claim_name(*impl_->core, name), message);
}

std::future<CommitReport> Region::commit_async(const std::string& message) {
  const WriterCall call(impl_);
  impl_->require_no_transaction("commit_async()");
  return impl_->commit_async({}, message);
}

std::future<CommitReport> Region::snapshot_async(const std::string& name,
                                                 const std::string& message) {
  const WriterCall call(impl_);
  impl_->require_no_transaction("snapshot_async()");
  return impl_->commit_async(store::claim_name(*impl_->core, name), message);
}

void Region::rollback() {
  const WriterCall call(impl_);
  if (impl_->transaction == Impl::TransactionState::open)
    impl_->require_no_transaction("rollback()");
  impl_->roll_transaction_back();
}

void Region::grow(std::uint64_t size_bytes) {
  const WriterCall call(impl_);
  impl_->grow(size_bytes);
}

std::uint64_t Region::file_bytes() const noexcept {
  if (!valid()) return 0;
  return impl_->file_bytes().value_or(size_bytes());
}

void Region::resize_file(std::uint64_t bytes, std::uint64_t room_bytes) {
  const WriterCall call(impl_);
  impl_->resize_file(bytes, room_bytes);
}

// An address below the region becomes an offset past every region's end.
ByteRange Region::range_of(const void* address, std::size_t length_bytes) const {
  const ReaderCall call(impl_);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const ByteRange range{at - reinterpret_cast<std::uintptr_t>(impl_->memory->data()), length_bytes};
  impl_->find_pages(range);
  return range;
}

void Region::prefetch(ByteRange range) const {
  const ReaderCall call(impl_);
  const auto [first, count] = impl_->find_backed_pages(range);
  impl_->make_present(first, count);
  impl_->memory->make_huge(first, count);
}

// Nothing is loaded unless all ranges are inside the region.
void Region::prefetch(const std::vector<ByteRange>& ranges) const {
  const ReaderCall call(impl_);
  std::vector<format::PageRange> pages;
  pages.reserve(ranges.size());
  for (const ByteRange& range : ranges) {
    const format::PageRange found = impl_->find_backed_pages(range);
    if (found.count != 0) pages.push_back(found);
  }
  impl_->make_present(pages);
  for (const auto& [first, count] : pages) impl_->memory->make_huge(first, count);
}

void Region::zero(ByteRange range) {
  const ReaderCall call(impl_);
  require_writable(*impl_);
  impl_->find_pages(range);
  std::byte* const memory = impl_->memory->data();
  const std::uint64_t end =
      std::min(range.offset_bytes + range.length_bytes, impl_->end_page() * kPageBytes);
  impl_->zero(memory + range.offset_bytes, memory + end);
}

void Region::advise(ByteRange range, Advice advice) const {
  const ReaderCall call(impl_);
  const auto [first, count] = impl_->find_pages(range);
  if (count != 0) impl_->memory->advise(first, count, advice);
}

MemoryUse Region::memory_use() const {
  const ReaderCall call(impl_);
  return impl_->memory->use();
}

void Region::close() {
  require_valid(impl_);
  const std::lock_guard turn(impl_->mutex);
  require_valid(impl_);
  if (impl_->background) impl_->background->wait_idle();
  impl_->close();
}

void Region::close_and_leave_memory() {
  require_valid(impl_);
  const std::lock_guard turn(impl_->mutex);
  require_valid(impl_);
  if (impl_->shape.engine != Engine::mapped) {
    fail(Errc::unsupported, "region '{}': pages of engine {} are released with the region",
         impl_->name, engine_name(impl_->shape.engine));
  }
  if (impl_->background) impl_->background->wait_idle();
  assert(impl_->memory->file_behind() != nullptr);
  impl_->memory->file_behind()->leave_mapped();
  impl_->close();
}

}  // namespace vellum
