#include <algorithm>
#include <bit>
#include <mutex>
#include <shared_mutex>
#include <thread>
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

std::size_t encode_threads(const RegionOptions& options) {
  if (options.encode_threads >= 0) return static_cast<std::size_t>(options.encode_threads);
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  return std::min(processors - 1, 7U);
}

// The region must lie in the caller's reservation, with no byte beyond it.
void require_reservation(const RegionOptions& options, std::uint64_t needed_bytes) {
  if (options.base_address == 0 || options.base_address % kPageBytes != 0 ||
      options.capacity_bytes % kPageBytes != 0 || options.fixed_address) {
    throw Error(Errc::invalid_argument,
                "over_reservation needs base_address and capacity_bytes, multiples of 4096, and "
                "does not go with fixed_address");
  }
  if (needed_bytes > options.capacity_bytes) {
    throw Error(Errc::invalid_argument, "a region of " + std::to_string(needed_bytes) +
                                            " bytes does not fit into a reservation of " +
                                            std::to_string(options.capacity_bytes));
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
    throw Error(Errc::invalid_argument,
                "fault_bytes must be a power of two from 4096 to 262144, not " +
                    std::to_string(options.fault_bytes));
  }
  memory.wanted_address = options.base_address != 0 ? options.base_address : remembered;
  if (options.over_reservation) {
    require_reservation(options, memory.capacity_bytes);
  } else if (memory.wanted_address % kTableBytes != 0) {
    throw Error(Errc::invalid_argument, "base_address must be a multiple of 2 MiB");
  }
  return memory;
}

void require_valid(const std::shared_ptr<Region::Impl>& impl) {
  if (impl == nullptr || impl->closed)
    throw Error(Errc::invalid_argument, "this Region is closed, or was never opened");
  if (impl->owner != base::fork_count()) {
    throw Error(Errc::invalid_argument,
                "region '" + impl->name + "' belongs to the process that opened it, not to a fork");
  }
}

void require_writable(const Region::Impl& impl) {
  if (!impl.shape.writable)
    throw Error(Errc::read_only, "version '" + impl.name + "' is open read-only");
}

// The turn of a call that changes the region: it comes after everything that was begun before.
class Turn {
 public:
  explicit Turn(const std::shared_ptr<Region::Impl>& impl) {
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
  explicit Inside(const std::shared_ptr<Region::Impl>& impl) {
    require_valid(impl);
    lock_ = std::shared_lock(impl->inside);
    require_valid(impl);
  }

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

// Engine mapped: opens the file behind the region. Other engines: opens nothing, and an image that
// the branch has falls behind.
std::unique_ptr<store::ImageFile> open_image(const Region::Impl& impl,
                                             const RegionOptions& options) {
  const bool wanted = !options.image_path.empty();
  const Engine engine = options.engine == Engine::automatic && wanted
                            ? Engine::mapped
                            : region::choose_engine(options.engine, true);
  const format::Version& head = impl.writer->head();
  if (engine == Engine::mapped) {
    return store::ImageFile::open(*impl.core, impl.name, head, *impl.writer->source_at_open(),
                                  options.image_path, options.image_is_content);
  }
  if (wanted) {
    throw Error(Errc::invalid_argument,
                std::string("image_path is for engine mapped, not ") + engine_name(engine));
  }
  store::ImageFile::note_other_writer(*impl.core, impl.name, head.branch_id);
  return nullptr;
}

// For an image whose region could not be made: others see the file as it was. REQUIRES: the
// branch's lock is held.
void take_back_growth(const Region::Impl& impl, const std::string& path, std::uint64_t bytes) {
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
    throw Error(Errc::invalid_argument, "branch '" + branch + "' of " + impl->core->path() +
                                            " was made at another base address");
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

void Region::Impl::grow(std::uint64_t size_bytes) {
  const std::uint64_t size = round_up(size_bytes, kPageBytes);
  if (size < memory->size_bytes()) {
    throw Error(Errc::invalid_argument,
                "region '" + name + "' has " + std::to_string(memory->size_bytes()) +
                    " bytes: it cannot shrink to " + std::to_string(size_bytes));
  }
  if (size_bytes > memory->capacity_bytes() || size > memory->capacity_bytes()) {
    throw Error(Errc::invalid_argument,
                "region '" + name + "' cannot grow to " + std::to_string(size_bytes) +
                    " bytes: its address space was reserved for " +
                    std::to_string(memory->capacity_bytes()) + " (RegionOptions::capacity_bytes)");
  }
  const bool larger = size > memory->size_bytes();
  memory->resize(size);
  if (!larger || !file_bytes().has_value()) return;
  extend_file(size);
  set_file_bytes(size);
}

void Region::Impl::find_pages(std::uint64_t offset_bytes, std::size_t length_bytes,
                              PageNumber& first, std::size_t& count) const {
  const std::uint64_t size = memory->size_bytes();
  if (offset_bytes > size || length_bytes > size - offset_bytes) {
    throw Error(Errc::invalid_argument, "the range does not lie in region '" + name + "'");
  }
  first = offset_bytes / kPageBytes;
  count = length_bytes == 0 ? 0 : (offset_bytes + length_bytes - 1) / kPageBytes - first + 1;
}

// An address below the region becomes an offset beyond any.
void Region::Impl::find_pages(const void* address, std::size_t length_bytes, PageNumber& first,
                              std::size_t& count) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  find_pages(at - reinterpret_cast<std::uintptr_t>(memory->data()), length_bytes, first, count);
}

std::vector<PageNumber> Region::Impl::pages_of(const std::vector<ByteRange>& ranges) const {
  std::vector<PageNumber> out;
  const PageNumber end = backed_bytes() / kPageBytes;
  for (const ByteRange& range : ranges) {
    PageNumber first = 0;
    std::size_t count = 0;
    find_pages(range.offset_bytes, range.length_bytes, first, count);
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
  throw Error(Errc::io, "region '" + name + "': " + failure.reason);
}

// The handles.

Region::Region() noexcept = default;
Region::Region(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
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
  return impl_->commit({}, message);
}

CommitReport Region::commit_ranges(const std::vector<ByteRange>& written,
                                   const std::string& message) {
  const Turn turn(impl_);
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
  return impl_->commit(store::claim_name(*impl_->core, name), message);
}

std::future<CommitReport> Region::commit_async(const std::string& message) {
  const Turn turn(impl_);
  return impl_->commit_async({}, message);
}

std::future<CommitReport> Region::snapshot_async(const std::string& name,
                                                 const std::string& message) {
  const Turn turn(impl_);
  return impl_->commit_async(store::claim_name(*impl_->core, name), message);
}

void Region::rollback() {
  const Turn turn(impl_);
  impl_->rollback();
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
  std::shared_ptr<Region::Impl> region;
  PageNumber first = 0;
  std::size_t count = 0;
  bool pinned = false;
  void hold(std::shared_ptr<Region::Impl> of, PageNumber from, std::size_t pages) {
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
Pin::Pin(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Pin::~Pin() = default;
Pin::Pin(Pin&&) noexcept = default;
Pin& Pin::operator=(Pin&&) noexcept = default;
void Pin::release() noexcept { impl_.reset(); }

Pin Region::pin(const void* address, std::size_t length_bytes) const {
  const Inside inside(impl_);
  auto pin = std::make_shared<Pin::Impl>();
  PageNumber first = 0;
  std::size_t count = 0;
  impl_->find_pages(address, length_bytes, first, count);
  if (count != 0) {
    pin->hold(impl_, first, count);  // first, so that no page that comes in leaves
    impl_->make_present(first, count);
    impl_->memory->pin(first, count);
    pin->pinned = true;
  }
  return Pin(std::move(pin));
}

void Region::prefetch(const void* address, std::size_t length_bytes) const {
  const Inside inside(impl_);
  PageNumber first = 0;
  std::size_t count = 0;
  impl_->find_pages(address, length_bytes, first, count);
  const PageNumber end = impl_->end_page();
  count = first < end ? std::min<std::size_t>(count, end - first) : 0;
  impl_->make_present(first, count);
  impl_->memory->make_huge(first, count);
}

void Region::clear(void* address, std::size_t length_bytes) {
  const Inside inside(impl_);
  require_writable(*impl_);
  PageNumber first = 0;
  std::size_t count = 0;
  impl_->find_pages(address, length_bytes, first, count);
  auto* const from = static_cast<std::byte*>(address);
  impl_->clear(
      from, std::min(from + length_bytes, impl_->memory->data() + impl_->end_page() * kPageBytes));
}

void Region::advise(const void* address, std::size_t length_bytes, Advice advice) const {
  const Inside inside(impl_);
  PageNumber first = 0;
  std::size_t count = 0;
  impl_->find_pages(address, length_bytes, first, count);
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
    throw Error(Errc::unsupported, "region '" + impl_->name + "': pages of engine " +
                                       engine_name(engine()) + " go with the region");
  }
  impl_->memory->file_behind()->leave_mapped();
  close();
}

}  // namespace vellum
