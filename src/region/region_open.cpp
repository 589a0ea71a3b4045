// Opening a region: of a branch, to write, or of a version, to read.
#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>
#include <vellum/region.hpp>

#include "base/fail.hpp"
#include "base/memory/process_memory.hpp"
#include "base/round_up.hpp"
#include "base/threads/thread_pool.hpp"
#include "memory/engine/engine.hpp"
#include "memory/kernel/support.hpp"
#include "memory/shared/shared_directory.hpp"
#include "memory/shared/shared_file.hpp"
#include "region/encode/encoding.hpp"
#include "region/region_impl.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/stream/image_file.hpp"

namespace vellum {
namespace {

using base::round_up;
using region::kPageBytes;
using region::kTableBytes;
using Impl = region::RegionAccess::Impl;

std::size_t encode_threads(const RegionOptions& options) {
  if (options.encode_threads >= 0) return static_cast<std::size_t>(options.encode_threads);
  return std::min(base::processors() - 1, 7U);
}

// The region must fit into the caller's reservation.
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

// The options of the memory. The list names every field of RegionOptions: a field that is added
// does not compile until this function has been checked. The callers and their other functions
// handle those that it does not use.
region::MemoryOptions memory_options(const RegionOptions& options, std::uint64_t size_bytes,
                                     std::uint64_t remembered, bool writable) {
  base::require_pages_of_4_kib("a region");
  const auto& [engine, image, encoding, capacity_bytes, fixed_address, base_address,
               over_reservation, memory_limit_bytes, spill_directory, fault_bytes, working_set,
               give_back_copies, fault_thread, huge_pages, share, encode_threads, tracker,
               verify_cards, background_gc] = options;
  region::MemoryOptions memory;
  memory.size_bytes = size_bytes;
  memory.writable = writable;
  std::uint64_t capacity = capacity_bytes;
  if (capacity == 0) capacity = writable ? base::room_to_grow(size_bytes) : size_bytes;
  const std::uint64_t unit = over_reservation ? kPageBytes : kTableBytes;
  const auto whole = [&](std::uint64_t bytes) {
    return round_up(std::max(std::min(bytes, format::kMaxRegionBytes), std::uint64_t{1}), unit);
  };
  memory.over_reservation = over_reservation;
  memory.capacity_bytes = whole(std::max(capacity, size_bytes));
  if (capacity_bytes == 0) memory.least_capacity_bytes = whole(size_bytes);
  memory.address_required = fixed_address;
  memory.memory_limit_bytes = memory_limit_bytes;
  memory.huge_pages = huge_pages;
  memory.gives_back_copies = give_back_copies;
  memory.fault_thread = fault_thread && region::choose_engine(engine, writable) == Engine::uffd;
  if (fault_bytes != 0) memory.chunk_bytes = fault_bytes;
  if (!std::has_single_bit(memory.chunk_bytes) || memory.chunk_bytes < kPageBytes ||
      memory.chunk_bytes > region::kMaxChunkPages * kPageBytes) {
    fail(Errc::invalid_argument, "fault_bytes must be a power of two from 4096 to 262144, not {}",
         fault_bytes);
  }
  memory.wanted_address = base_address != 0 ? base_address : remembered;
  if (over_reservation) {
    require_reservation(options, memory.capacity_bytes);
  } else if (memory.wanted_address % kTableBytes != 0) {
    fail(Errc::invalid_argument, "base_address must be a multiple of 2 MiB");
  }
  return memory;
}

// Null: the region has pages of its own.
std::shared_ptr<region::SharedChunks> open_shared(const RegionOptions& options,
                                                  const region::MemoryOptions& memory,
                                                  const std::string& identity) {
  if (identity.empty() || options.huge_pages || memory.size_bytes == 0) return nullptr;
  if (region::choose_engine(options.engine, false) == Engine::uffd && !region::uffd_engine_shares())
    return nullptr;
  const region::SharedLayout layout{identity, memory.size_bytes, memory.chunk_bytes};
  const std::uint64_t kept_bytes = region::kept_limit_bytes();
  auto file = kept_bytes != 0 ? region::SharedFile::open_kept(layout, kept_bytes) : nullptr;
  if (!file && options.share) file = region::SharedFile::open(layout);
  return file ? std::make_shared<region::SharedChunks>(std::move(file)) : nullptr;
}

// Engine mapped: opens the file behind the region. Other engines: opens nothing; an image of the
// branch becomes outdated.
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
  store::ImageFile::note_other_writer(*impl.core, impl.name, head);
  return nullptr;
}

// After the region of an image could not be created: restores the file's length. REQUIRES: the
// branch's lock is held.
void take_back_growth(const Impl& impl, const std::string& path, std::uint64_t bytes) {
  try {
    const auto file = impl.core->fs().open(path, base::OpenMode::read_write);
    if (file->size_bytes() > bytes) file->truncate(bytes);
  } catch (const std::exception&) {  // the next opening repairs it
  }
}

}  // namespace

std::shared_ptr<Region::Impl> Region::Impl::open_branch(std::shared_ptr<store::StoreDirectory> core,
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
    fail(Errc::invalid_argument, "branch '{}' of {} was created at another base address", branch,
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
  // Dirty pages of an encrypted store stay in memory: a spill file is plain.
  if (!impl->core->is_encrypted()) {
    memory.spill_directory =
        options.spill_directory.empty() ? impl->core->path() : options.spill_directory;
  }
  const std::string image_path = image ? image->path() : std::string();
  const std::uint64_t found_bytes = image ? image->committed_bytes() : 0;
  const bool found_tail = image && image->found_tail();
  memory.image = std::move(image);
  if (!memory.image)
    impl->remember(options, store::working_set_owner_of_branch(head.branch_id), memory);
  memory.open_committed = [impl = impl.get()] { return impl->writer->open_head(); };
  impl->counters = std::make_unique<region::Counters>(impl->core->path(), branch, true);
  memory.counters = impl->counters.get();
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
  impl->background = std::make_unique<base::Background>();
  impl->note_shape();
  if (options.background_gc) impl->space = std::make_unique<region::BackgroundGc>(impl->core, head);
  if (found_tail) impl->commit({}, "closed before the program was killed");
  return impl;
}

std::shared_ptr<Region::Impl> Region::Impl::open_version(
    std::shared_ptr<store::StoreDirectory> core, const std::string& name,
    const RegionOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->core = std::move(core);
  impl->name = name;
  auto kept = store::resolve_kept(*impl->core, name);
  auto& resolved = kept.version;
  const auto set_owner = store::working_set_owner(resolved);
  // The shared pages are plain.
  const bool shares =
      (options.share || region::kept_limit_bytes() != 0) && !impl->core->is_encrypted();
  const std::string identity = shares ? region::share_name(*impl->core, resolved) : "";
  impl->sequence = resolved.head_sequence();
  const std::uint64_t address = resolved.head_info().base_address;
  impl->source = store::PageSource::open(*impl->core, resolved.version, std::move(resolved.commits),
                                         resolved.label);
  impl->source->keep(std::move(kept.version_pin));
  const std::uint64_t size = impl->source->region_bytes();
  auto memory = memory_options(options, size, address, false);
  impl->remember(options, set_owner, memory);
  memory.shared = open_shared(options, memory, identity);
  if (address == 0 && options.base_address == 0) memory.address_required = false;
  impl->committed_bytes = size;
  impl->counters = std::make_unique<region::Counters>(impl->core->path(), name, false);
  memory.counters = impl->counters.get();
  impl->memory = with_context(impl->source->label(), [&] {
    return region::make_region_memory(options.engine, memory, impl->source);
  });
  impl->set_file_bytes(impl->source->file_bytes());
  impl->note_shape();
  return impl;
}

void Region::Impl::remember(const RegionOptions& options, const format::WorkingSetOwner& of,
                            region::MemoryOptions& memory_options) {
  if (!options.working_set) return;
  assert(memory == nullptr);
  remembered_as = of;
  memory_options.keeps_working_set = true;
  memory_options.last_working_set = store::read_working_set(*core, name, of);
}

void Region::Impl::note_shape() noexcept {
  assert(memory != nullptr && counters != nullptr);
  shape = {memory->data(), memory->capacity_bytes(), memory->engine(), writer != nullptr,
           memory->serves_system_calls()};
  counters->note_shape(shape.engine, memory->counts_dirty(), shape.data, memory->size_bytes());
}

}  // namespace vellum
