// vellum_region, vellum_pending and vellum_pin: see vellum.h.
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "base/fail.hpp"
#include "interfaces/c/boundary.hpp"

struct vellum_pending {
  std::future<vellum::CommitReport> future;
};

using vellum::Errc;
using vellum::Region;
using namespace vellum::capi;

namespace vellum::capi {

namespace {

Engine engine_from(int engine) {
  switch (engine) {
    case VELLUM_ENGINE_AUTOMATIC:
      return Engine::automatic;
    case VELLUM_ENGINE_UFFD:
      return Engine::uffd;
    case VELLUM_ENGINE_SIGSEGV:
      return Engine::sigsegv;
    case VELLUM_ENGINE_MAPPED:
      return Engine::mapped;
    default:
      fail(Errc::invalid_argument, "options: engine is none of VELLUM_ENGINE_...");
  }
}

Tracker tracker_from(int tracker) {
  switch (tracker) {
    case VELLUM_TRACKER_PAGES:
      return Tracker::pages;
    case VELLUM_TRACKER_CARDS:
      return Tracker::cards;
    case VELLUM_TRACKER_CARDS_AND_PAGES:
      return Tracker::cards_and_pages;
    default:
      fail(Errc::invalid_argument, "options: tracker is none of VELLUM_TRACKER_...");
  }
}

// 0 means the default in C, and no threads in C++.
int encode_threads_from(int threads) {
  if (threads < -1) fail(Errc::invalid_argument, "options: encode_threads is below -1");
  if (threads == 0) return RegionOptions().encode_threads;
  return threads == -1 ? 0 : threads;
}

}  // namespace

// The two lists name every field of both structs: a field that is added to one of them does not
// compile until it is converted here. Flags of C whose default is "on" have the opposite sense.
RegionOptions region_options_from(const vellum_region_options* given) {
  const vellum_region_options options = options_or_zero(given);
  const auto& [struct_size, c_engine, c_fixed_address, c_capacity_bytes, c_base_address,
               c_encode_threads, c_encoding, c_image_path, c_memory_limit_bytes, c_spill_directory,
               c_fault_bytes, c_huge_pages, c_working_set, c_over_reservation, c_tracker,
               c_verify_cards, c_no_background_gc, c_image_is_content, c_keep_copies,
               c_fault_thread, c_share] = options;
  RegionOptions result;
  auto& [engine, image, encoding, capacity_bytes, fixed_address, base_address, over_reservation,
         memory_limit_bytes, spill_directory, fault_bytes, working_set, give_back_copies,
         fault_thread, huge_pages, share, encode_threads, tracker, verify_cards, background_gc] =
      result;
  engine = engine_from(c_engine);
  image = {or_empty(c_image_path), c_image_is_content != 0};
  encoding = optional_encoding(c_encoding);
  capacity_bytes = c_capacity_bytes;
  fixed_address = c_fixed_address != 0;
  base_address = c_base_address;
  over_reservation = c_over_reservation != 0;
  memory_limit_bytes = c_memory_limit_bytes;
  spill_directory = or_empty(c_spill_directory);
  fault_bytes = c_fault_bytes;
  working_set = c_working_set != 0;
  give_back_copies = c_keep_copies == 0;
  fault_thread = c_fault_thread != 0;
  huge_pages = c_huge_pages != 0;
  share = c_share != 0;
  encode_threads = encode_threads_from(c_encode_threads);
  tracker = tracker_from(c_tracker);
  verify_cards = c_verify_cards != 0;
  background_gc = c_no_background_gc == 0;
  return result;
}
}  // namespace vellum::capi

namespace {

// Both interfaces use the same numbers.
static_assert(VELLUM_ENGINE_AUTOMATIC == static_cast<int>(vellum::Engine::automatic));
static_assert(VELLUM_ENGINE_UFFD == static_cast<int>(vellum::Engine::uffd));
static_assert(VELLUM_ENGINE_SIGSEGV == static_cast<int>(vellum::Engine::sigsegv));
static_assert(VELLUM_ENGINE_MAPPED == static_cast<int>(vellum::Engine::mapped));

vellum::Advice advice_from(int advice) {
  switch (advice) {
    case VELLUM_ADVICE_NORMAL:
      return vellum::Advice::normal;
    case VELLUM_ADVICE_SEQUENTIAL:
      return vellum::Advice::sequential;
    case VELLUM_ADVICE_RANDOM:
      return vellum::Advice::random;
    case VELLUM_ADVICE_WILL_NEED:
      return vellum::Advice::will_need;
    case VELLUM_ADVICE_DONT_NEED:
      return vellum::Advice::dont_need;
    default:
      fail(Errc::invalid_argument, "advice is none of VELLUM_ADVICE_...");
  }
}

template <class Open>
int open_with(vellum_store* store, const char* name, const vellum_region_options* options,
              vellum_region** out, const Open& open) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    require(store, "store");
    require(name, "the region's name");
    *out = new vellum_region(open(region_options_from(options)));
  });
}

template <class Begin>
int begin_async(vellum_pending** out, const Begin& begin) {
  return guarded([&] {
    if (out != nullptr) *out = nullptr;
    auto pending =
        std::make_unique<vellum_pending>();  // before it begins, as nothing may fail after
    pending->future = begin();
    if (out != nullptr) *out = pending.release();
  });
}

Region& region_of(vellum_region* handle) {
  require(handle, "region");
  return handle->region;
}
const Region& region_of(const vellum_region* handle) {
  require(handle, "region");
  return handle->region;
}

std::vector<vellum::ByteRange> ranges_of(const Region& region, const vellum_span* spans,
                                         size_t count) {
  if (count != 0) require(spans, "spans");
  std::vector<vellum::ByteRange> out;
  for (size_t i = 0; i != count; ++i) {
    out.push_back(region.range_of(spans[i].address, spans[i].length_bytes));
  }
  return out;
}

vellum::Transaction& transaction_of(vellum_transaction* handle) {
  require(handle, "transaction");
  return handle->transaction;
}

}  // namespace

extern "C" {

const char* vellum_engine_name(int engine) {
  if (engine < VELLUM_ENGINE_AUTOMATIC || engine > VELLUM_ENGINE_MAPPED) return "unknown";
  return vellum::engine_name(static_cast<vellum::Engine>(engine));
}

int vellum_region_create(vellum_store* store, const char* branch, uint64_t size_bytes,
                         const vellum_region_options* options, vellum_region** out) {
  return open_with(store, branch, options, out, [&](const vellum::RegionOptions& how) {
    return store->store.create_region(branch, size_bytes, how);
  });
}

int vellum_region_open(vellum_store* store, const char* branch,
                       const vellum_region_options* options, vellum_region** out) {
  return open_with(store, branch, options, out, [&](const vellum::RegionOptions& how) {
    return store->store.open_region(branch, how);
  });
}

int vellum_region_open_or_create(vellum_store* store, const char* branch, uint64_t size_bytes,
                                 const vellum_region_options* options, vellum_region** out) {
  return open_with(store, branch, options, out, [&](const vellum::RegionOptions& how) {
    return store->store.open_or_create_region(branch, size_bytes, how);
  });
}

int vellum_region_open_version(vellum_store* store, const char* name,
                               const vellum_region_options* options, vellum_region** out) {
  return open_with(store, name, options, out, [&](const vellum::RegionOptions& how) {
    return store->store.open_version(name, how);
  });
}

void vellum_region_close(vellum_region* region) { delete region; }

int vellum_region_close_and_leave_memory(vellum_region* region) {
  return guarded([&] {
    region_of(region).close_and_leave_memory();
    delete region;
  });
}

void* vellum_region_data(const vellum_region* region) {
  return region == nullptr ? nullptr : region->region.data();
}
uint64_t vellum_region_size(const vellum_region* region) {
  return region == nullptr ? 0 : region->region.size_bytes();
}
uint64_t vellum_region_capacity(const vellum_region* region) {
  return region == nullptr ? 0 : region->region.capacity_bytes();
}
int vellum_region_writable(const vellum_region* region) {
  return region != nullptr && region->region.writable() ? 1 : 0;
}
uint64_t vellum_region_sequence(const vellum_region* region) {
  uint64_t sequence = 0;
  guarded([&] { sequence = region_of(region).sequence(); });
  return sequence;
}

int vellum_region_engine(const vellum_region* region) {
  return region == nullptr ? VELLUM_ENGINE_AUTOMATIC : static_cast<int>(region->region.engine());
}

int vellum_region_serves_system_calls(const vellum_region* region) {
  return region != nullptr && region->region.serves_system_calls() ? 1 : 0;
}
const char* vellum_region_name(const vellum_region* region) {
  return region == nullptr ? nullptr : region->name.c_str();
}

int vellum_region_memory_use(const vellum_region* region, vellum_memory_use* use) {
  return guarded([&] {
    require(use, "use");
    require_struct(use);
    const vellum::MemoryUse found = region_of(region).memory_use();
    fill_struct(use, {sizeof *use, found.limit_bytes, found.resident_bytes, found.evicted_bytes,
                      found.spilled_pages, found.spill_file_bytes, found.spill_written_bytes,
                      found.shared_bytes});
  });
}

int vellum_commit(vellum_region* region, const char* message, vellum_commit_report* report) {
  return guarded([&] {
    require_struct(report);
    fill_struct(report, to_c(region_of(region).commit(or_empty(message))));
  });
}

int vellum_commit_ranges(vellum_region* region, const vellum_span* written, size_t count,
                         const char* message, vellum_commit_report* report) {
  return guarded([&] {
    require_struct(report);
    Region& in = region_of(region);
    fill_struct(report, to_c(in.commit_ranges(ranges_of(in, written, count), or_empty(message))));
  });
}

int vellum_drop_copies(vellum_region* region, const vellum_span* spans, size_t count) {
  return guarded([&] {
    Region& in = region_of(region);
    in.drop_copies(ranges_of(in, spans, count));
  });
}

int vellum_begin(vellum_region* region, vellum_transaction** out) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    auto handle = std::make_unique<vellum_transaction>();  // nothing may fail once it is open
    handle->transaction = region_of(region).begin();
    *out = handle.release();
  });
}

int vellum_transaction_commit(vellum_transaction* transaction, const char* message,
                              vellum_commit_report* report) {
  return guarded([&] {
    require_struct(report);
    fill_struct(report, to_c(transaction_of(transaction).commit(or_empty(message))));
  });
}

int vellum_transaction_rollback(vellum_transaction* transaction) {
  return guarded([&] { transaction_of(transaction).rollback(); });
}

int vellum_transaction_is_open(const vellum_transaction* transaction) {
  return transaction != nullptr && transaction->transaction.is_open() ? 1 : 0;
}

void vellum_transaction_close(vellum_transaction* transaction) { delete transaction; }

int vellum_snapshot(vellum_region* region, const char* name, const char* message,
                    vellum_commit_report* report) {
  return guarded([&] {
    require(name, "the snapshot's name");
    require_struct(report);
    fill_struct(report, to_c(region_of(region).snapshot(name, or_empty(message))));
  });
}

int vellum_commit_async(vellum_region* region, const char* message, vellum_pending** out) {
  return begin_async(out, [&] { return region_of(region).commit_async(or_empty(message)); });
}

int vellum_snapshot_async(vellum_region* region, const char* name, const char* message,
                          vellum_pending** out) {
  return begin_async(out, [&] {
    require(name, "the snapshot's name");
    return region_of(region).snapshot_async(name, or_empty(message));
  });
}

int vellum_pending_ended(const vellum_pending* pending) {
  if (pending == nullptr) return 1;
  return pending->future.wait_for(std::chrono::seconds(0)) == std::future_status::ready ? 1 : 0;
}

int vellum_wait(vellum_pending* pending, vellum_commit_report* report) {
  return guarded([&] {
    require(pending, "the pending commit");
    require_struct(report);
    const std::unique_ptr<vellum_pending> owned(pending);
    fill_struct(report, to_c(owned->future.get()));
  });
}

int vellum_rollback(vellum_region* region) {
  return guarded([&] { region_of(region).rollback(); });
}

int vellum_checkout(vellum_region* region, const char* version, const char* message,
                    vellum_commit_report* report) {
  return guarded([&] {
    require(version, "the version");
    require_struct(report);
    fill_struct(report, to_c(region_of(region).checkout(version, or_empty(message))));
  });
}

int vellum_grow(vellum_region* region, uint64_t size_bytes) {
  return guarded([&] { region_of(region).grow(size_bytes); });
}

uint64_t vellum_region_file_size(const vellum_region* region) {
  return region == nullptr ? 0 : region->region.file_bytes();
}

int vellum_resize_file(vellum_region* region, uint64_t file_bytes, uint64_t room_bytes) {
  return guarded([&] { region_of(region).resize_file(file_bytes, room_bytes); });
}

int vellum_pin_range(const vellum_region* region, const void* address, size_t length_bytes,
                     vellum_pin** out) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    require(address, "address");
    const Region& in = region_of(region);
    *out = new vellum_pin{in.pin(in.range_of(address, length_bytes))};
  });
}

void vellum_unpin(vellum_pin* pin) { delete pin; }

int vellum_prefetch(const vellum_region* region, const void* address, size_t length_bytes) {
  return guarded([&] {
    require(address, "address");
    const Region& in = region_of(region);
    in.prefetch(in.range_of(address, length_bytes));
  });
}

int vellum_prefetch_ranges(const vellum_region* region, const vellum_span* spans, size_t count) {
  return guarded([&] {
    const Region& in = region_of(region);
    in.prefetch(ranges_of(in, spans, count));
  });
}

int vellum_zero(vellum_region* region, void* address, size_t length_bytes) {
  return guarded([&] {
    require(address, "address");
    Region& in = region_of(region);
    in.zero(in.range_of(address, length_bytes));
  });
}

int vellum_advise(const vellum_region* region, const void* address, size_t length_bytes,
                  int advice) {
  return guarded([&] {
    require(address, "address");
    const Region& in = region_of(region);
    in.advise(in.range_of(address, length_bytes), advice_from(advice));
  });
}

}  // extern "C"
