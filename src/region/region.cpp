#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vellum/region.hpp>

#include "region/encoding.hpp"
#include "region/region_impl.hpp"
#include "store/lease.hpp"
#include "store/util.hpp"

namespace vellum {
namespace {

using format::PageNumber;
using region::kPageBytes;
using region::kSlotBytes;
using Clock = std::chrono::steady_clock;

std::uint64_t ns_between(Clock::time_point from, Clock::time_point to) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::size_t encode_threads(const RegionOptions& options) {
  if (options.encode_threads >= 0) return static_cast<std::size_t>(options.encode_threads);
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  return std::min(processors - 1, 7U);
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
  memory.capacity_bytes = round_up(std::max(capacity, std::uint64_t{1}), kSlotBytes);
  memory.address_required = options.fixed_address;
  memory.memory_limit_bytes = options.memory_limit_bytes;
  memory.wanted_address = options.base_address != 0 ? options.base_address : remembered;
  if (memory.wanted_address % kSlotBytes != 0) {
    throw Error(Errc::invalid_argument, "base_address must be a multiple of 2 MiB");
  }
  return memory;
}

void require_valid(const std::shared_ptr<Region::Impl>& impl) {
  if (impl == nullptr)
    throw Error(Errc::invalid_argument, "this Region is closed, or was never opened");
  if (impl->owner != getpid()) {
    throw Error(Errc::invalid_argument,
                "region '" + impl->name + "' belongs to the process that opened it, not to a fork");
  }
}

void require_writable(const Region::Impl& impl) {
  if (impl.writer == nullptr)
    throw Error(Errc::read_only, "version '" + impl.name + "' is open read-only");
}

// Engine mapped: the file behind the region. The others: nothing, and an image that the branch has
// falls behind.
std::unique_ptr<store::ImageFile> open_image(const Region::Impl& impl,
                                             const RegionOptions& options) {
  const bool wanted = !options.image_path.empty();
  const Engine engine = options.engine == Engine::automatic && wanted
                            ? Engine::mapped
                            : region::choose_engine(options.engine, true);
  const format::Version& head = impl.writer->head();
  if (engine == Engine::mapped) {
    return store::ImageFile::open(*impl.core, impl.name, head, *impl.writer->source_at_open(),
                                  options.image_path);
  }
  if (wanted) {
    throw Error(Errc::invalid_argument,
                std::string("image_path is for engine mapped, not ") + engine_name(engine));
  }
  store::ImageFile::note_other_writer(*impl.core, impl.name, head.branch_id);
  return nullptr;
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
  auto memory = memory_options(options, size, remembered, true);
  if (head.base_address == 0 && options.base_address == 0) memory.address_required = false;
  memory.stash_directory =
      options.stash_directory.empty() ? impl->core->path() : options.stash_directory;
  memory.image = std::move(image);
  memory.open_committed = [impl = impl.get()] { return impl->open_head(); };
  impl->memory = store::with_context(source->label(), [&] {
    return region::RegionMemory::create(memory.image ? Engine::mapped : options.engine, memory,
                                        source);
  });
  impl->sequence = head.sequence;
  impl->committed_bytes = head.region_bytes;
  impl->committed_before = head.sequence > 0;
  impl->remembered_address = head.base_address != 0
                                 ? head.base_address
                                 : reinterpret_cast<std::uintptr_t>(impl->memory->data());
  impl->encoder = std::make_unique<region::Encoder>(*impl->memory, impl->writer->encoding(),
                                                    encode_threads(options));
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
  impl->sequence = resolved.version.sequence + resolved.commits.size();
  std::uint64_t address = resolved.version.base_address;
  if (!resolved.commits.empty()) address = resolved.commits.back().base_address;
  impl->source = store::PageSource::open(*impl->core, resolved.version, std::move(resolved.commits),
                                         resolved.label);
  impl->source->keep(std::move(kept.lease));
  const std::uint64_t size = impl->source->region_bytes();
  auto memory = memory_options(options, size, address, false);
  if (address == 0 && options.base_address == 0) memory.address_required = false;
  impl->committed_bytes = size;
  impl->memory = store::with_context(impl->source->label(), [&] {
    return region::RegionMemory::create(options.engine, memory, impl->source);
  });
  return impl;
}

Region::Impl::Impl() : owner(getpid()) {}

Region::Impl::~Impl() {
  if (owner == getpid()) {
    if (memory != nullptr && writer != nullptr) memory->note_closed(writer->head());
    return;
  }
  // In a fork: the branch's files and the mapped memory are the parent's. Leave them alone.
  // NOLINTBEGIN(bugprone-unused-return-value): leaked on purpose.
  static_cast<void>(encoder.release());
  static_cast<void>(memory.release());
  static_cast<void>(writer.release());
  // NOLINTEND(bugprone-unused-return-value)
}

std::vector<PageNumber> Region::Impl::take_dirty() {
  std::vector<PageNumber> dirty;
  const auto merge_pending = [&] {
    std::vector<PageNumber> merged;
    std::set_union(dirty.begin(), dirty.end(), pending.begin(), pending.end(),
                   std::back_inserter(merged));
    return merged;
  };
  try {
    memory->collect_dirty(dirty);
  } catch (...) {
    pending = merge_pending();  // what had been found is armed again, and must not be forgotten
    throw;
  }
  if (pending.empty()) return dirty;
  dirty = merge_pending();
  pending.clear();
  return dirty;
}

void Region::Impl::require_twins() const {
  if (!twins_lost) return;
  throw Error(Errc::poisoned,
              "region '" + name +
                  "': a commit failed, and the last one could not be read back from the store to "
                  "undo it: close the region and open it again");
}

// The last commit, as the store has it. To be read at once: nothing keeps gc from it for long.
std::shared_ptr<store::PageSource> Region::Impl::open_head() const {
  auto kept = store::resolve_kept(*core, name);
  auto source = store::PageSource::open(*core, kept.version.version,
                                        std::move(kept.version.commits), kept.version.label);
  source->keep(std::move(kept.lease));
  return source;
}

// A failed commit had overwritten these twins: the last commit's content comes back from the store.
void Region::Impl::reload_twins(std::span<const PageNumber> pages) {
  const auto last = open_head();
  std::vector<std::byte> content(kPageBytes);
  for (const PageNumber page : pages) {
    last->read(page, 1, content.data());
    memory->hold(page, 1);
    memory->make_private(page);
    std::memcpy(memory->backing().twin(page), content.data(), kPageBytes);
    memory->release(page, 1);
  }
}

// The encoder has brought the twins up to the commit at hand. Not a pointer: a twin may go at any
// time.
bool Region::Impl::committed_copy(PageNumber page, std::byte* out) {
  memory->hold(page, 1);
  const std::byte* const twin = memory->is_present(page) ? memory->twin_of(page) : nullptr;
  if (twin != nullptr && out != nullptr) std::memcpy(out, twin, kPageBytes);
  memory->release(page, 1);
  return twin != nullptr;
}

// The commit is durable. Where pages have left memory since, or have to, they come back from it
// from now on; when it cannot be opened for that, from where they did, with what the stash adds.
// Nothing that goes wrong here undoes it.
void Region::Impl::accept_commit() noexcept {
  try {
    const auto now_taken = encoder->accept();
    taken.insert(taken.end(), now_taken.begin(), now_taken.end());
    if (taken.empty() && !memory->wants_source()) return;
    auto head = open_head();
    std::sort(taken.begin(), taken.end());
    taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
    memory->replace_source(std::move(head), taken);
    taken.clear();
  } catch (const std::exception&) {
    return;
  }
}

store::CommitCost Region::Impl::write_commit(std::vector<PageNumber> dirty,
                                             const std::string& message, bool fold,
                                             CommitReport& report) {
  const auto start = Clock::now();
  std::unique_ptr<store::BranchWriter::Commit> commit;
  try {
    commit = writer->begin(dirty.size());
    memory->prepare_commit(dirty);
    report.pages_changed = encoder->encode(dirty, *commit);
    const auto encoded = Clock::now();
    report.encode_ns = ns_between(start, encoded);
    if (report.pages_changed == 0 && !fold && memory->size_bytes() == committed_bytes &&
        committed_before) {
      accept_commit();
      memory->finish_commit(dirty);
      return {};
    }
    store::CommitMeta meta;
    meta.time_ns = now_ns();
    meta.region_bytes = memory->size_bytes();
    meta.base_address = remembered_address;
    meta.message = message;
    const auto cost = commit->finish(
        meta, fold, [&](PageNumber page, std::byte* out) { return committed_copy(page, out); });
    accept_commit();
    memory->finish_commit(dirty);
    return cost;
  } catch (...) {
    undo_commit(std::move(dirty));
    throw;
  }
}

void Region::Impl::undo_commit(std::vector<PageNumber> dirty) {
  commit_failed = true;
  try {
    encoder->undo([this](std::span<const PageNumber> pages) { reload_twins(pages); });
  } catch (...) {
    twins_lost = true;
  }
  memory->abandon_commit(dirty);
  pending = std::move(dirty);
}

CommitReport Region::Impl::commit(const std::string& message, bool fold, bool even_if_unchanged) {
  const auto start = Clock::now();
  CommitReport report;
  require_twins();
  report.sequence = sequence;
  auto dirty = take_dirty();
  report.scan_ns = ns_between(start, Clock::now());
  report.pages_dirty = dirty.size();
  if (!dirty.empty() || memory->size_bytes() != committed_bytes || even_if_unchanged ||
      !committed_before) {
    const auto cost = write_commit(std::move(dirty), message, fold, report);
    if (cost.sequence != 0) {
      sequence = report.sequence = cost.sequence;
      committed_bytes = memory->size_bytes();
      committed_before = true;
      commit_failed = false;
    }
    report.bytes_written = cost.bytes_written;
    report.folded = cost.folded;
    report.write_ns = cost.write_ns;
    report.flush_ns = cost.flush_ns;
  } else if (commit_failed) {
    writer->begin();  // throws when a flush failed: what the medium holds is not known then
  }
  report.total_ns = ns_between(start, Clock::now());
  // What is left: twins have followed while the pages were encoded.
  const std::uint64_t stages =
      report.scan_ns + report.encode_ns + report.write_ns + report.flush_ns;
  report.publish_ns = report.total_ns - std::min(stages, report.total_ns);
  return report;
}

CommitReport Region::Impl::snapshot(const std::string& snapshot_name, const std::string& message) {
  core->require_free_name(snapshot_name);
  const auto start = Clock::now();
  CommitReport report = commit(message, true, true);
  writer->publish_snapshot(snapshot_name, message);
  const std::uint64_t committed_ns = report.total_ns;
  report.total_ns = ns_between(start, Clock::now());
  report.publish_ns += report.total_ns - committed_ns;
  return report;
}

void Region::Impl::rollback() {
  require_twins();
  const auto dirty = take_dirty();
  memory->discard(dirty);
  if (memory->size_bytes() > committed_bytes) memory->resize(committed_bytes);
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
  memory->resize(size);
}

void Region::Impl::find_pages(const void* address, std::size_t length_bytes, PageNumber& first,
                              std::size_t& count) const {
  const auto* at = static_cast<const std::byte*>(address);
  const std::uint64_t size = memory->size_bytes();
  if (at < memory->data() || at > memory->data() + size ||
      length_bytes > size - static_cast<std::uint64_t>(at - memory->data())) {
    throw Error(Errc::invalid_argument, "the range does not lie in region '" + name + "'");
  }
  const auto offset = static_cast<std::uint64_t>(at - memory->data());
  first = offset / kPageBytes;
  count = length_bytes == 0 ? 0 : (offset + length_bytes - 1) / kPageBytes - first + 1;
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

bool Region::valid() const noexcept { return impl_ != nullptr; }
void* Region::data() const noexcept { return impl_ != nullptr ? impl_->memory->data() : nullptr; }
std::uint64_t Region::size_bytes() const noexcept {
  return impl_ != nullptr ? impl_->memory->size_bytes() : 0;
}
std::uint64_t Region::capacity_bytes() const noexcept {
  return impl_ != nullptr ? impl_->memory->capacity_bytes() : 0;
}
bool Region::writable() const noexcept { return impl_ != nullptr && impl_->writer != nullptr; }
Engine Region::engine() const noexcept {
  return impl_ != nullptr ? impl_->memory->engine() : Engine::automatic;
}

std::string Region::name() const {
  require_valid(impl_);
  return impl_->name;
}

std::uint64_t Region::sequence() const {
  require_valid(impl_);
  const std::lock_guard lock(impl_->mutex);
  return impl_->sequence;
}

CommitReport Region::commit(const std::string& message) {
  require_valid(impl_);
  require_writable(*impl_);
  const std::lock_guard lock(impl_->mutex);
  return impl_->commit(message, false, false);
}

CommitReport Region::snapshot(const std::string& name, const std::string& message) {
  require_valid(impl_);
  require_writable(*impl_);
  const std::lock_guard lock(impl_->mutex);
  return impl_->snapshot(name, message);
}

void Region::rollback() {
  require_valid(impl_);
  require_writable(*impl_);
  const std::lock_guard lock(impl_->mutex);
  impl_->rollback();
}

void Region::grow(std::uint64_t size_bytes) {
  require_valid(impl_);
  require_writable(*impl_);
  const std::lock_guard lock(impl_->mutex);
  impl_->grow(size_bytes);
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
    if (pinned) region->memory->unpin(first, count);
    if (count != 0) region->memory->release(first, count);
  }
};

Pin::Pin() noexcept = default;
Pin::Pin(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Pin::~Pin() = default;
Pin::Pin(Pin&&) noexcept = default;
Pin& Pin::operator=(Pin&&) noexcept = default;
void Pin::release() noexcept { impl_.reset(); }

Pin Region::pin(const void* address, std::size_t length_bytes) const {
  require_valid(impl_);
  auto pin = std::make_shared<Pin::Impl>();
  PageNumber first = 0;
  std::size_t count = 0;
  impl_->find_pages(address, length_bytes, first, count);
  if (count != 0) {
    pin->hold(impl_, first, count);  // first of all, so that nothing that comes in leaves
    impl_->make_present(first, count);
    impl_->memory->pin(first, count);
    pin->pinned = true;
  }
  return Pin(std::move(pin));
}

void Region::prefetch(const void* address, std::size_t length_bytes) const {
  require_valid(impl_);
  PageNumber first = 0;
  std::size_t count = 0;
  impl_->find_pages(address, length_bytes, first, count);
  impl_->make_present(first, count);
}

void Region::advise(const void* address, std::size_t length_bytes, Advice advice) const {
  require_valid(impl_);
  PageNumber first = 0;
  std::size_t count = 0;
  impl_->find_pages(address, length_bytes, first, count);
  if (count != 0) impl_->memory->advise(first, count, advice);
}

MemoryUse Region::memory_use() const {
  require_valid(impl_);
  return impl_->memory->use();
}

void Region::close() {
  require_valid(impl_);
  impl_.reset();
}

}  // namespace vellum
