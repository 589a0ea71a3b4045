// Versions of groups, read without their job. See vellum.h.
#include <vellum/group.hpp>

#include "interfaces/c/boundary.hpp"

using vellum::GroupVersion;
using namespace vellum::capi;

struct vellum_group_version {
  GroupVersion version;
};

namespace {

template <typename Open>
int open_group(const char* records, vellum_group_version** out, const Open& open) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    require(records, "records");
    *out = new vellum_group_version{open()};
  });
}

}  // namespace

extern "C" {

int vellum_group_version_open(const char* records, const char* version, const char* stores,
                              vellum_group_version** out) {
  return open_group(records, out, [&] {
    return GroupVersion::open(records, or_empty(version), or_empty(stores));
  });
}

int vellum_group_version_open_remote(const char* url, const char* version,
                                     const vellum_remote_options* options,
                                     vellum_group_version** out) {
  return open_group(url, out, [&] {
    return GroupVersion::open(url, or_empty(version), remote_options_from(options));
  });
}

void vellum_group_version_close(vellum_group_version* version) { delete version; }

uint64_t vellum_group_version_number(const vellum_group_version* version) {
  return version == nullptr ? 0 : version->version.info().number;
}

uint32_t vellum_group_version_partitions(const vellum_group_version* version) {
  return version == nullptr ? 0 : version->version.partitions();
}

int vellum_group_version_open_partition(const vellum_group_version* version, uint32_t partition,
                                        const vellum_region_options* options, vellum_region** out) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    require(version, "version");
    *out =
        new vellum_region(version->version.open_partition(partition, region_options_from(options)));
  });
}

}  // extern "C"
