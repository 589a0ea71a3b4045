// The C interface of a group (vellum/mpi.h).
#include <vellum/mpi.h>
#include <memory>
#include <vellum/mpi.hpp>

#include "base/fail.hpp"
#include "interfaces/c/boundary.hpp"

struct vellum_group {
  vellum::Group group;
};
struct vellum_pending_push {
  vellum::PendingGroupPush pending;
};
struct vellum_pending_version {
  vellum::PendingGroupVersion pending;
};

using vellum::Errc;
using vellum::Group;
using namespace vellum::capi;

namespace {

Group& group_of(vellum_group* handle) {
  require(handle, "group");
  return handle->group;
}

vellum::GroupOptions group_options_from(const vellum_group_options* given) {
  const vellum_group_options options = options_or_zero(given);
  vellum::GroupOptions result;
  result.store = or_empty(options.store);
  if (options.branch != nullptr) result.branch = options.branch;
  result.region_bytes = options.region_bytes;
  result.partitions = options.partitions;
  if (options.mine != nullptr) {
    result.mine.emplace(options.mine, options.mine + options.mine_count);
  }
  result.version = or_empty(options.version);
  result.region = region_options_from(options.region);
  result.new_store = store_options_from(options.new_store);
  result.remote = or_empty(options.remote);
  return result;
}

void fill_report(vellum_group_report* out, const vellum::GroupReport& report) {
  fill_struct(out, {sizeof(vellum_group_report), report.number, report.bytes_written,
                    static_cast<uint64_t>(report.slowest_time.count()),
                    static_cast<uint64_t>(report.coordination_time.count()),
                    static_cast<uint64_t>(report.own_time.count())});
}

void fill_push_report(vellum_group_push_report* out, const vellum::GroupPushReport& report) {
  fill_struct(out, {sizeof(vellum_group_push_report), report.number, report.bytes_uploaded});
}

// The region, or null.
vellum::Region* find_region(vellum_group* group, uint32_t partition) {
  try {
    return &group_of(group).region(partition);
  } catch (const vellum::Error&) {
    return nullptr;
  }
}

}  // namespace

extern "C" {

int vellum_group_open(MPI_Comm communicator, const char* records,
                      const vellum_group_options* options, vellum_group** out) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    require(records, "records");
    *out = new vellum_group{Group::open(communicator, records, group_options_from(options))};
  });
}

void vellum_group_close(vellum_group* group) { delete group; }

uint32_t vellum_group_partitions(const vellum_group* group) {
  return group == nullptr ? 0 : group->group.partitions();
}

uint64_t vellum_group_number(const vellum_group* group) {
  return group == nullptr ? 0 : group->group.number();
}

void* vellum_group_data(vellum_group* group, uint32_t partition) {
  const vellum::Region* const region = find_region(group, partition);
  return region == nullptr ? nullptr : region->data();
}

uint64_t vellum_group_size(vellum_group* group, uint32_t partition) {
  const vellum::Region* const region = find_region(group, partition);
  return region == nullptr ? 0 : region->size_bytes();
}

int vellum_group_grow(vellum_group* group, uint32_t partition, uint64_t size_bytes) {
  return guarded([&] { group_of(group).region(partition).grow(size_bytes); });
}

int vellum_group_commit(vellum_group* group, const char* message, vellum_group_report* report) {
  return guarded([&] {
    require_struct(report);
    fill_report(report, group_of(group).commit(or_empty(message)));
  });
}

int vellum_group_snapshot(vellum_group* group, const char* name, const char* message,
                          vellum_group_report* report) {
  return guarded([&] {
    require_struct(report);
    require(name, "name");
    fill_report(report, group_of(group).snapshot(name, or_empty(message)));
  });
}

int vellum_group_snapshot_async(vellum_group* group, const char* name, const char* message,
                                vellum_pending_version** out) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    *out = new vellum_pending_version{
        group_of(group).snapshot_async(or_empty(name), or_empty(message))};
  });
}

int vellum_group_wait(vellum_pending_version* pending, vellum_group_report* report) {
  const std::unique_ptr<vellum_pending_version> owned(pending);
  return guarded([&] {
    require_struct(report);
    require(pending, "pending");
    fill_report(report, pending->pending.wait());
  });
}

int vellum_group_rollback(vellum_group* group) {
  return guarded([&] { group_of(group).rollback(); });
}

int vellum_group_push(vellum_group* group, const char* version, vellum_group_push_report* report) {
  return guarded([&] {
    require_struct(report);
    fill_push_report(report, group_of(group).push(or_empty(version)));
  });
}

int vellum_group_push_async(vellum_group* group, const char* version, vellum_pending_push** out) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    *out = new vellum_pending_push{group_of(group).push_async(or_empty(version))};
  });
}

int vellum_group_push_wait(vellum_pending_push* pending, vellum_group_push_report* report) {
  const std::unique_ptr<vellum_pending_push> owned(pending);
  return guarded([&] {
    require_struct(report);
    require(pending, "pending");
    fill_push_report(report, pending->pending.wait());
  });
}

int vellum_group_restore(MPI_Comm communicator, const char* records,
                         const vellum_group_options* options) {
  return guarded([&] {
    require(records, "records");
    Group::restore(communicator, records, group_options_from(options));
  });
}

}  // extern "C"

void vellum_abort_job(MPI_Comm communicator, const char* reason, int status) {
  vellum::abort_job(communicator, reason == nullptr ? "" : reason, status);
}
