// vellum_store and its versions: see vellum.h.
#include <cstdint>
#include <vector>

#include "capi/boundary.hpp"

using vellum::Errc;
using vellum::Error;
using vellum::Store;
using namespace vellum::capi;

namespace vellum::capi {

Encoding encoding_from(const vellum_store_options& options) {
  Encoding result;
  switch (options.compression) {
    case VELLUM_COMPRESSION_DEFAULT:
      break;
    case VELLUM_COMPRESSION_NONE:
      result.compression = Encoding::Compression::none;
      break;
    case VELLUM_COMPRESSION_LZ4:
      result.compression = Encoding::Compression::lz4;
      break;
    case VELLUM_COMPRESSION_ZSTD:
      result.compression = Encoding::Compression::zstd;
      break;
    default:
      throw Error(Errc::invalid_argument, "options: compression is none of VELLUM_COMPRESSION_...");
  }
  if (options.compression_level != 0) result.compression_level = options.compression_level;
  if (options.block_bytes != 0) result.block_bytes = options.block_bytes;
  result.grow_blocks = options.fixed_blocks == 0;
  result.filters = options.no_filters == 0;
  result.dedup = options.no_dedup == 0;
  result.deltas = options.no_deltas == 0;
  if (options.hash != VELLUM_HASH_NONE && options.hash != VELLUM_HASH_SHA256) {
    throw Error(Errc::invalid_argument, "options: hash is none of VELLUM_HASH_...");
  }
  if (options.hash == VELLUM_HASH_SHA256) result.hash = Encoding::Hash::sha256;
  return result;
}

}  // namespace vellum::capi

namespace {

vellum_store_options to_c(const vellum::Encoding& encoding) {
  using Compression = vellum::Encoding::Compression;
  vellum_store_options result = VELLUM_STORE_OPTIONS_INIT;
  result.compression = encoding.compression == Compression::none  ? VELLUM_COMPRESSION_NONE
                       : encoding.compression == Compression::lz4 ? VELLUM_COMPRESSION_LZ4
                                                                  : VELLUM_COMPRESSION_ZSTD;
  result.compression_level = encoding.compression_level;
  result.block_bytes = encoding.block_bytes;
  result.fixed_blocks = encoding.grow_blocks ? 0 : 1;
  result.no_filters = encoding.filters ? 0 : 1;
  result.no_dedup = encoding.dedup ? 0 : 1;
  result.no_deltas = encoding.deltas ? 0 : 1;
  result.hash =
      encoding.hash == vellum::Encoding::Hash::sha256 ? VELLUM_HASH_SHA256 : VELLUM_HASH_NONE;
  return result;
}

vellum::StoreOptions to_cpp(const vellum_store_options* given) {
  const vellum_store_options options = options_or_zero(given);
  vellum::StoreOptions result;
  static_cast<vellum::Encoding&>(result) = encoding_from(options);
  if (options.pack_bytes != 0) result.pack_bytes = options.pack_bytes;
  if (options.journal_half_bytes != 0) result.journal_half_bytes = options.journal_half_bytes;
  return result;
}

template <class Open>
int open_with(const char* path, vellum_store** out, const Open& open) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    require(path, "path");
    *out = new vellum_store{open()};
  });
}

Store& store_of(vellum_store* handle) {
  require(handle, "store");
  return handle->store;
}
const Store& store_of(const vellum_store* handle) {
  require(handle, "store");
  return handle->store;
}

vellum_version_info to_c(const vellum::VersionInfo& version) {
  vellum_version_info result = {};
  result.struct_size = sizeof result;
  result.name = version.name.c_str();
  result.is_branch = version.is_branch ? 1 : 0;
  result.branch = version.branch.c_str();
  result.message = version.message.c_str();
  result.parent = version.parent.c_str();
  result.sequence = version.sequence;
  result.time_ns = version.time_ns;
  result.region_bytes = version.region_bytes;
  result.pages_changed = version.pages_changed;
  result.bytes_added = version.bytes_added;
  result.file_bytes = version.file_bytes;
  result.created_ns = version.created_ns;
  result.order = version.order;
  return result;
}

std::string describe(const vellum::Damage& damage, std::size_t damages) {
  std::string text = damage.object + ": " + damage.reason;
  if (!damage.versions.empty()) {
    text += " (needed by " + damage.versions.front() +
            (damage.versions.size() > 1 ? " and others)" : ")");
  }
  if (damages > 1) {
    text += "; damages in all: " + std::to_string(damages);
  }
  return text;
}

}  // namespace

extern "C" {

int vellum_store_create(const char* path, const vellum_store_options* options, vellum_store** out) {
  return open_with(path, out, [&] { return Store::create(path, to_cpp(options)); });
}

int vellum_store_open(const char* path, vellum_store** out) {
  return open_with(path, out, [&] { return Store::open(path); });
}

int vellum_store_open_or_create(const char* path, const vellum_store_options* options,
                                vellum_store** out) {
  return open_with(path, out, [&] { return Store::open_or_create(path, to_cpp(options)); });
}

void vellum_store_close(vellum_store* store) { delete store; }

int vellum_versions(const vellum_store* store, vellum_version_fn visit, void* context) {
  return guarded([&] {
    require(visit, "visit");
    for (const vellum::VersionInfo& version : store_of(store).versions()) {
      vellum_version_info info = to_c(version);
      vellum_store_options encoding;
      if (version.encoding.has_value()) {
        encoding = to_c(*version.encoding);
        info.encoding = &encoding;
      }
      if (visit(&info, context) != 0) {
        break;
      }
    }
  });
}

int vellum_create_branch(vellum_store* store, const char* name, const char* from_version) {
  return guarded([&] {
    require(name, "the branch's name");
    require(from_version, "from_version");
    store_of(store).create_branch(name, from_version);
  });
}

int vellum_create_branch_with(vellum_store* store, const char* name, const char* from_version,
                              const vellum_store_options* encoding) {
  return guarded([&] {
    require(name, "the branch's name");
    require(from_version, "from_version");
    require(encoding, "encoding");
    store_of(store).create_branch(name, from_version, encoding_from(options_or_zero(encoding)));
  });
}

int vellum_make_writable(vellum_store* store, const char* name) {
  return guarded([&] {
    require(name, "name");
    store_of(store).make_writable(name);
  });
}

int vellum_create_snapshot(vellum_store* store, const char* name, const char* from_version,
                           const char* message) {
  return guarded([&] {
    require(name, "the snapshot's name");
    require(from_version, "from_version");
    store_of(store).create_snapshot(name, from_version, or_empty(message));
  });
}

int vellum_remove(vellum_store* store, const char* name) {
  return guarded([&] {
    require(name, "the version's name");
    Store& target = store_of(store);
    if (target.version(name).is_branch) {
      target.remove_branch(name);
    } else {
      target.remove_snapshot(name);
    }
  });
}

int vellum_read(const vellum_store* store, const char* name, uint64_t offset_bytes, void* buffer,
                size_t length_bytes) {
  return guarded([&] {
    require(name, "the version's name");
    require(buffer, "buffer");
    store_of(store).read(name, offset_bytes, buffer, length_bytes);
  });
}

int vellum_export(const vellum_store* store, const char* name, const char* file) {
  return guarded([&] {
    require(name, "the version's name");
    require(file, "file");
    store_of(store).export_file(name, file);
  });
}

int vellum_import(vellum_store* store, const char* branch, const char* file, const char* message,
                  vellum_commit_report* report) {
  return guarded([&] {
    require(branch, "the branch's name");
    require(file, "file");
    require_struct(report);
    fill_struct(report, to_c(store_of(store).import_file(branch, file, or_empty(message))));
  });
}

int vellum_stat(const vellum_store* store, vellum_store_stat* stat) {
  return guarded([&] {
    require(stat, "stat");
    require_struct(stat);
    const vellum::StoreStat found = store_of(store).stat();
    vellum_store_stat values = VELLUM_STORE_STAT_INIT;
    values.stored_bytes = found.stored_bytes;
    values.pack_bytes = found.pack_bytes;
    values.journal_bytes = found.journal_bytes;
    values.ref_bytes = found.ref_bytes;
    values.packs = found.packs;
    values.snapshots = found.snapshots;
    values.branches = found.branches;
    values.full_copy_bytes = found.full_copy_bytes;
    fill_struct(stat, values);
  });
}

int vellum_verify(const vellum_store* store, int read_data, vellum_verify_summary* summary) {
  return guarded([&] {
    require_struct(summary);
    const vellum::VerifyReport found = store_of(store).verify(read_data != 0);
    vellum_verify_summary values = VELLUM_VERIFY_SUMMARY_INIT;
    values.versions = found.versions;
    values.packs = found.packs;
    values.records = found.records;
    values.bytes_read = found.bytes_read;
    values.damages = found.damages.size();
    fill_struct(summary, values);
    if (!found.damages.empty()) {
      throw Error(Errc::corrupted, describe(found.damages.front(), found.damages.size()));
    }
  });
}

}  // extern "C"
