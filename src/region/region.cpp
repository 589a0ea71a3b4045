#include <algorithm>
#include <bit>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>
#include <vellum/region.hpp>

#include "base/fail.hpp"
#include "base/fork_count.hpp"
#include "base/round_up.hpp"
#include "region/encoding.hpp"
#include "region/engine/engine.hpp"
#include "region/region_impl.hpp"
#include "store/catalog/kept_version.hpp"
#include "store/catalog/store_core.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/lock/version_pin.hpp"

namespace vellum {
namespace {

using base::round_up;
using format::PageNumber;
using region::kPageBytes;
using region::kTableBytes;
using Impl = region::RegionAccess::Impl;

std::size_t encode_threads(const RegionOptions& options) {
  if (options.encode_threads >= 0) return static_cast<std::size_t>(options.encode_threads);
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  return std::min(processors - 1, 7U);
}

// The region must lie in the caller's reservation, with no byte beyond it.
void require_reservation(const RegionOptions& options, std::uint64_t needed_bytes) {
  if (options.base_address == 0 || options.base_address % kPageBytes != 0 ||
      options.capacity_bytes % kPageBytes != 0 || options.fixed_address) {
    fail(Errc::invalid_argument,
         "over_reservation needs base_address and capacity_bytes, multiples of 4096, and does not "
         "go with fixed_address");
  }
  if (needed_bytes > options.capacity_bytes) {
    fail(Errc::invalid_argument, "a region of {} bytes does not fit into a reservation of {}",
         needed_bytes, options.capacity_bytes);
  }
}

region::MemoryOptions memory_options(const RegionOptions& options, std::uint64_t size_bytes,
                                     std::uint64_t remembered, bool writable) {
  region::MemoryOptions memory;
  memory.size_bytes = size_bytes;
  memory.writable = writable;
  std::uint64_t capacity = options.capacity_bytes;
  if (capacity == 0)
    capacity = writable ? std::max(4 * size_bytes, std::uint64_t{64} << 30) : size_bytes;
  capacity = std::min(std::max(capacity, size_bytes), format::kMaxRegionBytes);
  memory.over_reservation = options.over_reservation;
  memory.capacity_bytes = round_up(std::max(capacity, std::uint64_t{1}),
                                   options.over_reservation ? kPageBytes : kTableBytes);
  memory.address_required = options.fixed_address;
  memory.memory_limit_bytes = options.memory_limit_bytes;
  memory.huge_pages = options.huge_pages;
  if (options.fault_bytes != 0) memory.chunk_bytes = options.fault_bytes;
  if (!std::has_single_bit(memory.chunk_bytes) || memory.chunk_bytes < kPageBytes ||
      memory.chunk_bytes > region::kMostChunkPages * kPageBytes) {
    fail(Errc::invalid_argument, "fault_bytes must be a power of two from 4096 to 262144, not {}",
         options.fault_bytes);
  }
  memory.wanted_address = options.base_address != 0 ? options.base_address : remembered;
  if (options.over_reservation) {
    require_reservation(options, memory.capacity_bytes);
  } else if (memory.wanted_address % kTableBytes != 0) {
    fail(Errc::invalid_argument, "base_address must be a multiple of 2 MiB");
  }
  return memory;
}

void require_valid(const std::shared_ptr<Impl>& impl) {
  if (impl == nullptr || impl->closed)
    fail(Errc::invalid_argument, "this Region is closed, or was never opened");
  if (impl->owner != base::fork_count()) {
    fail(Errc::invalid_argument, "region '{}' belongs to the process that opened it, not to a fork",
         impl->name);
  }
}

void require_writable(const Impl& impl) {
  if (!impl.shape.writable) fail(Errc::read_only, "version '{}' is open read-only", impl.name);
}

// The turn of a call that changes the region: it comes after everything that was begun before.
class Turn {
 public:
  explicit Turn(const std::shared_ptr<Impl>& impl) {
    require_valid(impl);
    require_writable(*impl);
    lock_ = std::unique_lock(impl->mutex);
    require_valid(impl);  // another thread may have closed it before this turn
    impl->background->wait_idle();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

// For calls that take no turn: the memory stays until the call is done.
class Inside {
 public:
  explicit Inside(const std::shared_ptr<Impl>& impl) {
    require_valid(impl);
    lock_ = std::shared_lock(impl->inside);
    require_valid(impl);
  }

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

// Engine mapped: opens the file behind the region. Other engines: opens nothing, and an image that
// the branch has falls behind.
std::unique_ptr<store::ImageFile> open_image(const Impl& impl, const RegionOptions& options) {
  const bool wanted = !options.image.path.empty();
  const Engine engine = options.engine == Engine::automatic && wanted
                            ? Engine::mapped
                            : region::choose_engine(options.engine, true);
  const format::Version& head = impl.writer->head();
  if (engine == Engine::mapped) {
    return store::ImageFile::open(*impl.core, impl.name, head, *impl.writer->source_at_open(),
                                  options.image.path, options.image.is_content);
  }
  if (wanted) {
    fail(Errc::invalid_argument, "image.path is for engine mapped, not {}", engine_name(engine));
  }
  store::ImageFile::note_other_writer(*impl.core, impl.name, head.branch_id);
  return nullptr;
}

// For an image whose region could not be made: others see the file as it was. REQUIRES: the
// branch's lock is held.
void take_back_growth(const Impl& impl, const std::string& path, std::uint64_t bytes) {
  try {
    const auto file = impl.core->fs().open(path, base::OpenMode::read_write);
    if (file->size_bytes() > bytes) file->truncate(bytes);
  } catch (const std::exception&) {  // the next opening does it
  }
}

}  // namespace

std::shared_ptr<Region::Impl> Region::Impl::open_branch(std::shared_ptr<store::StoreCore> core,
                                                        const std::string& branch,
                                                        const RegionOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->core = std::move(core);
  impl->name = branch;
  impl->writer =
      store::BranchWriter::open(*impl->core, branch, region::to_format(options.encoding));
  const format::Version& head = impl->writer->head();
  if (options.fixed_address && options.base_address != 0 && head.base_address != 0 &&
      options.base_address != head.base_address) {
    fail(Errc::invalid_argument, "branch '{}' of {} was made at another base address", branch,
         impl->core->path());
  }
  const std::uint64_t remembered =
      head.base_address != 0 ? head.base_address : region::far_address(head.branch_id);
  const auto& source = impl->writer->source_at_open();
  auto image = open_image(*impl, options);
  const std::uint64_t size = image ? image->region_bytes() : head.region_bytes;
  const auto adopted = image ? image->adopted_file_bytes() : std::nullopt;
  auto memory = memory_options(options, size, remembered, true);
  if (head.base_address == 0 && options.base_address == 0) memory.address_required = false;
  memory.spill_directory =
      options.spill_directory.empty() ? impl->core->path() : options.spill_directory;
  const std::string image_path = image ? image->path() : std::string();
  const std::uint64_t found_bytes = image ? image->committed_bytes() : 0;
  memory.image = std::move(image);
  if (!memory.image)
    impl->remember(options, store::working_set_owner_of_branch(head.branch_id), memory);
  memory.open_committed = [impl = impl.get()] { return impl->writer->open_head(); };
  impl->cards = region::CardTracker::make(options, memory, head.branch_id);
  try {
    impl->memory = with_context(source->label(), [&] {
      return region::make_region_memory(memory.image ? Engine::mapped : options.engine, memory,
                                        source);
    });
  } catch (...) {
    if (!image_path.empty()) take_back_growth(*impl, image_path, found_bytes);
    throw;
  }
  impl->sequence = head.sequence;
  impl->committed_bytes = head.region_bytes;
  impl->committed_file_bytes = head.file_bytes;
  impl->set_file_bytes(adopted.has_value() ? adopted : head.file_bytes);
  impl->committed_before = head.sequence > 0;
  impl->remembered_address = head.base_address != 0 || options.over_reservation
                                 ? head.base_address
                                 : reinterpret_cast<std::uintptr_t>(impl->memory->data());
  impl->encoder = std::make_unique<region::Encoder>(*impl->memory, impl->writer->encoding(),
                                                    encode_threads(options));
  impl->background = std::make_unique<region::Background>();
  impl->note_shape();
  if (options.background_gc) impl->space = std::make_unique<region::SpaceKeeper>(impl->core, head);
  return impl;
}

std::shared_ptr<Region::Impl> Region::Impl::open_version(std::shared_ptr<store::StoreCore> core,
                                                         const std::string& name,
                                                         const RegionOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->core = std::move(core);
  impl->name = name;
  auto kept = store::resolve_kept(*impl->core, name);
  auto& resolved = kept.version;
  const auto set_owner = store::working_set_owner(resolved);
  impl->sequence = resolved.version.sequence + resolved.commits.size();
  std::uint64_t address = resolved.version.base_address;
  if (!resolved.commits.empty()) address = resolved.commits.back().base_address;
  impl->source = store::PageSource::open(*impl->core, resolved.version, std::move(resolved.commits),
                                         resolved.label);
  impl->source->keep(std::move(kept.version_pin));
  const std::uint64_t size = impl->source->region_bytes();
  auto memory = memory_options(options, size, address, false);
  impl->remember(options, set_owner, memory);
  if (address == 0 && options.base_address == 0) memory.address_required = false;
  impl->committed_bytes = size;
  impl->memory = with_context(impl->source->label(), [&] {
    return region::make_region_memory(options.engine, memory, impl->source);
  });
  impl->set_file_bytes(impl->source->file_bytes());
  impl->note_shape();
  return impl;
}

Region::Impl::Impl() : owner(base::fork_count()) {}

void Region::Impl::remember(const RegionOptions& options, const format::WorkingSetOwner& of,
                            region::MemoryOptions& memory_options) {
  if (!options.working_set) return;
  remembered_as = of;
  memory_options.keeps_working_set = true;
  memory_options.last_working_set = store::read_working_set(*core, name, of);
}

// The working set is a hint: closing goes on even if it cannot be written.
void Region::Impl::write_working_set() noexcept {
  if (!remembered_as || memory == nullptr) return;
  try {
    store::write_working_set(*core, name, {*remembered_as, memory->working_set()});
  } catch (const std::exception&) {  // no memory for the list
  }
}

void Region::Impl::note_shape() noexcept {
  shape = {memory->data(), memory->capacity_bytes(), memory->engine(), writer != nullptr};
}

// If the store has been moved away, nothing is written: its path may hold another store.
void Region::Impl::finish() noexcept {
  background.reset();  // ends what it has begun
  const bool in_place = writer == nullptr || writer->in_place();
  if (space != nullptr && in_place) space->finish();
  space.reset();
  if (in_place) {
    write_working_set();
    if (memory != nullptr && writer != nullptr) {
      if (auto* const file = memory->file_behind()) file->note_closed(writer->head());
    }
  }
  encoder.reset();
  memory.reset();
  cards.reset();
  source.reset();
  writer.reset();
  core.reset();
}

void Region::Impl::close() {
  const std::lock_guard alone(inside);
  closed = true;
  finish();
}

Region::Impl::~Impl() {
  if (closed) return;
  if (owner == base::fork_count()) {
    finish();
    return;
  }
  // In a fork: the branch's files and the mapped memory are the parent's. Leave them alone.
  // NOLINTBEGIN(bugprone-unused-return-value): leaked on purpose.
  static_cast<void>(background.release());
  static_cast<void>(space.release());
  static_cast<void>(encoder.release());
  static_cast<void>(memory.release());
  static_cast<void>(writer.release());
  // NOLINTEND(bugprone-unused-return-value)
}

void Region::Impl::rollback() {
  require_base_copies();
  const auto dirty = take_dirty();
  memory->discard(dirty);
  if (memory->size_bytes() > committed_bytes) memory->resize(committed_bytes);
  set_file_bytes(committed_file_bytes);
  if (auto* const file = memory->file_behind())
    file->drop_growth(committed_file_bytes.value_or(committed_bytes));
}

CommitReport Region::Impl::commit_transaction(const std::string& message) {
  const CommitReport report = commit({}, message);
  transaction = TransactionState::none;
  return report;
}

void Region::Impl::roll_transaction_back() {
  rollback();
  transaction = TransactionState::none;
}

void Region::Impl::abandon_transaction() noexcept {
  try {
    roll_transaction_back();
  } catch (const std::exception& e) {
    transaction = TransactionState::stuck;
    std::fprintf(stderr, "vellum: a transaction could not be rolled back: %s\n", e.what());
  }
}

void Region::Impl::require_no_transaction(const char* call) const {
  switch (transaction) {
    case TransactionState::none:
      return;
    case TransactionState::open:
      fail(Errc::busy, "region '{}': {} while a transaction is open: commit that, or roll it back",
           name, call);
    case TransactionState::stuck:
      fail(Errc::poisoned,
           "region '{}': a transaction could not be rolled back, so nothing may be committed: call "
           "rollback(), or open the branch again",
           name);
  }
}

void Region::Impl::grow(std::uint64_t size_bytes) {
  const std::uint64_t size = round_up(size_bytes, kPageBytes);
  if (size < memory->size_bytes()) {
    fail(Errc::invalid_argument, "region '{}' has {} bytes: it cannot shrink to {}", name,
         memory->size_bytes(), size_bytes);
  }
  if (size_bytes > memory->capacity_bytes() || size > memory->capacity_bytes()) {
    fail(Errc::invalid_argument,
         "region '{}' cannot grow to {} bytes: its address space was reserved for {} "
         "(RegionOptions::capacity_bytes)",
         name, size_bytes, memory->capacity_bytes());
  }
  const bool larger = size > memory->size_bytes();
  memory->resize(size);
  if (!larger || !file_bytes().has_value()) return;
  extend_file(size);
  set_file_bytes(size);
}

format::PageRange Region::Impl::find_pages(const ByteRange& range) const {
  const auto [offset, length] = range;
  const std::uint64_t size = memory->size_bytes();
  if (offset > size || length > size - offset) {
    fail(Errc::invalid_argument, "the range does not lie in region '{}'", name);
  }
  const PageNumber first = offset / kPageBytes;
  return {first, length == 0 ? 0 : (offset + length - 1) / kPageBytes - first + 1};
}

std::vector<PageNumber> Region::Impl::pages_of(const std::vector<ByteRange>& ranges) const {
  std::vector<PageNumber> out;
  const PageNumber end = backed_bytes() / kPageBytes;
  for (const ByteRange& range : ranges) {
    const auto [first, count] = find_pages(range);
    for (PageNumber page = first; page < std::min(first + count, end); ++page) out.push_back(page);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void Region::Impl::make_present(PageNumber first, std::size_t count) {
  store::ReadFailure failure;
  if (memory->make_present(first, count, failure)) return;
  if (memory->source() != nullptr) memory->source()->raise(failure);
  fail(Errc::io, "region '{}': {}", name, failure.reason);
}

// The handles.

Region::Region() noexcept = default;
Region::Region(const Region& other) noexcept = default;
Region::~Region() = default;
Region::Region(Region&&) noexcept = default;
Region& Region::operator=(Region&&) noexcept = default;

bool Region::valid() const noexcept { return impl_ != nullptr && !impl_->closed; }
void* Region::data() const noexcept { return valid() ? impl_->shape.data : nullptr; }
std::uint64_t Region::size_bytes() const noexcept {
  if (!valid()) return 0;
  const std::shared_lock inside(impl_->inside);
  return impl_->closed ? 0 : impl_->memory->size_bytes();
}
std::uint64_t Region::capacity_bytes() const noexcept {
  return valid() ? impl_->shape.capacity_bytes : 0;
}
bool Region::writable() const noexcept { return valid() && impl_->shape.writable; }
void* Region::values(ByteRange first, std::uint64_t count, std::size_t alignment,
                     bool to_write) const {
  const Inside inside(impl_);
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

std::string Region::name() const {
  require_valid(impl_);
  return impl_->name;
}

std::uint64_t Region::sequence() const {
  require_valid(impl_);
  return impl_->sequence;
}

CommitReport Region::commit(const std::string& message) {
  const Turn turn(impl_);
  impl_->require_no_transaction("commit()");
  return impl_->commit({}, message);
}

CommitReport Region::commit_ranges(const std::vector<ByteRange>& written,
                                   const std::string& message) {
  const Turn turn(impl_);
  impl_->require_no_transaction("commit_ranges()");
  const auto pages = impl_->pages_of(written);
  return impl_->commit({}, message, &pages);
}

void Region::drop_copies(const std::vector<ByteRange>& ranges) {
  const Turn turn(impl_);
  const auto pages = impl_->pages_of(ranges);
  if (auto* const file = impl_->memory->file_behind()) file->drop_copies(pages);
}

CommitReport Region::snapshot(const std::string& name, const std::string& message) {
  const Turn turn(impl_);
  impl_->require_no_transaction("snapshot()");
  return impl_->commit(store::claim_name(*impl_->core, name), message);
}

std::future<CommitReport> Region::commit_async(const std::string& message) {
  const Turn turn(impl_);
  impl_->require_no_transaction("commit_async()");
  return impl_->commit_async({}, message);
}

std::future<CommitReport> Region::snapshot_async(const std::string& name,
                                                 const std::string& message) {
  const Turn turn(impl_);
  impl_->require_no_transaction("snapshot_async()");
  return impl_->commit_async(store::claim_name(*impl_->core, name), message);
}

void Region::rollback() {
  const Turn turn(impl_);
  if (impl_->transaction == Impl::TransactionState::open)
    impl_->require_no_transaction("rollback()");
  impl_->roll_transaction_back();
}

Transaction Region::begin() {
  const Turn turn(impl_);
  impl_->require_no_transaction("begin()");
  impl_->transaction = Impl::TransactionState::open;
  return Transaction(impl_);
}

bool Transaction::is_open() const noexcept { return region_ != nullptr && !region_->closed; }

std::shared_ptr<Region::Impl> Transaction::opened() const {
  if (region_ == nullptr)
    fail(Errc::invalid_argument, "this Transaction has ended, or was never begun");
  return region_;
}

CommitReport Transaction::commit(const std::string& message) {
  const auto impl = opened();
  const Turn turn(impl);
  const CommitReport report = impl->commit_transaction(message);
  region_.reset();
  return report;
}

void Transaction::rollback() {
  const auto impl = opened();
  const Turn turn(impl);
  impl->roll_transaction_back();
  region_.reset();
}

void Transaction::end() noexcept {
  if (region_ == nullptr) return;
  const auto impl = std::exchange(region_, nullptr);
  try {
    const Turn turn(impl);
    impl->abandon_transaction();
  } catch (const std::exception&) {  // the region is closed, or the parent's
  }
}

void Region::grow(std::uint64_t size_bytes) {
  const Turn turn(impl_);
  impl_->grow(size_bytes);
}

std::uint64_t Region::file_bytes() const noexcept {
  if (!valid()) return 0;
  return impl_->file_bytes().value_or(size_bytes());
}

void Region::resize_file(std::uint64_t bytes, std::uint64_t room_bytes) {
  const Turn turn(impl_);
  impl_->resize_file(bytes, room_bytes);
}

struct Pin::Impl {
  std::shared_ptr<region::RegionAccess::Impl> region;
  PageNumber first = 0;
  std::size_t count = 0;
  bool pinned = false;
  void hold(std::shared_ptr<region::RegionAccess::Impl> of, PageNumber from, std::size_t pages) {
    region = std::move(of);
    first = from;
    count = pages;
    region->memory->hold(first, count);
  }
  ~Impl() {
    if (count == 0) return;
    const std::shared_lock inside(region->inside);
    if (region->closed) return;
    if (pinned) region->memory->unpin(first, count);
    region->memory->release(first, count);
  }
};

Pin::Pin() noexcept = default;
Pin::~Pin() = default;
Pin::Pin(Pin&&) noexcept = default;
Pin& Pin::operator=(Pin&&) noexcept = default;
void Pin::release() noexcept { impl_.reset(); }

// An address below the region becomes an offset beyond any.
ByteRange Region::range_of(const void* address, std::size_t length_bytes) const {
  const Inside inside(impl_);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const ByteRange range{at - reinterpret_cast<std::uintptr_t>(impl_->memory->data()), length_bytes};
  impl_->find_pages(range);
  return range;
}

Pin Region::pin(ByteRange range) const {
  const Inside inside(impl_);
  auto pin = std::make_shared<Pin::Impl>();
  const auto [first, count] = impl_->find_pages(range);
  if (count != 0) {
    pin->hold(impl_, first, count);  // first, so that no page that comes in leaves
    impl_->make_present(first, count);
    impl_->memory->pin(first, count);
    pin->pinned = true;
  }
  return Pin(std::move(pin));
}

void Region::prefetch(ByteRange range) const {
  const Inside inside(impl_);
  auto [first, count] = impl_->find_pages(range);
  const PageNumber end = impl_->end_page();
  count = first < end ? std::min(count, end - first) : 0;
  impl_->make_present(first, count);
  impl_->memory->make_huge(first, count);
}

void Region::zero(ByteRange range) {
  const Inside inside(impl_);
  require_writable(*impl_);
  impl_->find_pages(range);
  std::byte* const memory = impl_->memory->data();
  const std::uint64_t end =
      std::min(range.offset_bytes + range.length_bytes, impl_->end_page() * kPageBytes);
  impl_->zero(memory + range.offset_bytes, memory + end);
}

void Region::advise(ByteRange range, Advice advice) const {
  const Inside inside(impl_);
  const auto [first, count] = impl_->find_pages(range);
  if (count != 0) impl_->memory->advise(first, count, advice);
}

MemoryUse Region::memory_use() const {
  const Inside inside(impl_);
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
  if (engine() != Engine::mapped) {
    fail(Errc::unsupported, "region '{}': pages of engine {} are released with the region",
         impl_->name, engine_name(engine()));
  }
  impl_->memory->file_behind()->leave_mapped();
  close();
}

}  // namespace vellum
