// vellum_store and its versions: see vellum.h.
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "base/bytes/codec.hpp"
#include "base/clock.hpp"
#include "base/fail.hpp"
#include "interfaces/c/boundary.hpp"

using vellum::Errc;
using vellum::Store;
using namespace vellum::capi;

namespace vellum::capi {

namespace {

// The constants follow Encoding::Compression; the one before them is the default.
static_assert(VELLUM_COMPRESSION_ZSTD - VELLUM_COMPRESSION_NONE ==
              static_cast<int>(Encoding::Compression::zstd));

Encoding::Compression compression_from(int given) {
  if (given == VELLUM_COMPRESSION_DEFAULT) return Encoding().compression;
  if (given >= VELLUM_COMPRESSION_NONE && given - VELLUM_COMPRESSION_NONE <= UINT8_MAX) {
    const auto out = static_cast<Encoding::Compression>(given - VELLUM_COMPRESSION_NONE);
    if (base::codec_known(out)) return out;
  }
  fail(Errc::invalid_argument, "encoding: compression is none of VELLUM_COMPRESSION_...");
}

Encoding::Hash hash_from(int hash) {
  if (hash != VELLUM_HASH_NONE && hash != VELLUM_HASH_SHA256) {
    fail(Errc::invalid_argument, "encoding: hash is none of VELLUM_HASH_...");
  }
  return hash == VELLUM_HASH_SHA256 ? Encoding::Hash::sha256 : Encoding::Hash::none;
}

}  // namespace

// As region_options_from(): a field that is added to one of the structs does not compile until it
// is converted here.
Encoding encoding_from(const vellum_encoding* given) {
  const vellum_encoding options = options_or_zero(given);
  const auto& [struct_size, c_compression, c_compression_level, c_block_bytes, c_fixed_blocks,
               c_no_filters, c_no_dedup, c_no_deltas, c_hash] = options;
  Encoding result;
  auto& [compression, compression_level, block_bytes, grow_blocks, filters, dedup, deltas, hash] =
      result;
  compression = compression_from(c_compression);
  if (c_compression_level != 0) compression_level = c_compression_level;
  if (c_block_bytes != 0) block_bytes = c_block_bytes;
  grow_blocks = c_fixed_blocks == 0;
  filters = c_no_filters == 0;
  dedup = c_no_dedup == 0;
  deltas = c_no_deltas == 0;
  hash = hash_from(c_hash);
  return result;
}

RemoteOptions remote_options_from(const vellum_remote_options* given) {
  const auto options = options_or_zero(given);
  RemoteOptions result;
  if (options.cache_directory != nullptr) result.cache_directory = options.cache_directory;
  if (options.cache_bytes != 0) result.cache_bytes = options.cache_bytes;
  if (options.longest_wait_ms > INT64_MAX) {
    fail(Errc::invalid_argument, "longest_wait_ms: {} is too large", options.longest_wait_ms);
  }
  if (options.longest_wait_ms != 0) {
    result.longest_wait = std::chrono::milliseconds(options.longest_wait_ms);
  }
  return result;
}

std::optional<Encoding> optional_encoding(const vellum_encoding* given) {
  if (given == nullptr) return std::nullopt;
  return encoding_from(given);
}

vellum_encoding to_c(const Encoding& encoding) {
  vellum_encoding result = VELLUM_ENCODING_INIT;
  result.compression = VELLUM_COMPRESSION_NONE + static_cast<int>(encoding.compression);
  result.compression_level = encoding.compression_level;
  result.block_bytes = encoding.block_bytes;
  result.fixed_blocks = encoding.grow_blocks ? 0 : 1;
  result.no_filters = encoding.filters ? 0 : 1;
  result.no_dedup = encoding.dedup ? 0 : 1;
  result.no_deltas = encoding.deltas ? 0 : 1;
  result.hash = encoding.hash == Encoding::Hash::sha256 ? VELLUM_HASH_SHA256 : VELLUM_HASH_NONE;
  return result;
}

VersionForC::VersionForC(const VersionInfo& version) {
  info.struct_size = sizeof info;
  info.name = version.name.c_str();
  info.is_branch = version.is_branch ? 1 : 0;
  info.branch = version.branch.c_str();
  info.message = version.message.c_str();
  info.parent = version.parent.c_str();
  info.sequence = version.sequence;
  info.time_ns = base::nanoseconds_of(version.committed_at);
  info.region_bytes = version.region_bytes;
  info.pages_changed = version.pages_changed;
  info.bytes_added = version.bytes_added;
  info.file_bytes = version.file_bytes;
  info.created_ns = base::nanoseconds_of(version.created_at);
  info.order = version.order;
  if (version.encoding.has_value()) {
    encoding = to_c(*version.encoding);
    info.encoding = &encoding;
  }
}

StoreOptions store_options_from(const vellum_store_options* given) {
  const vellum_store_options options = options_or_zero(given);
  StoreOptions result;
  result.encoding = encoding_from(options.encoding);
  if (options.pack_bytes != 0) result.pack_bytes = options.pack_bytes;
  if (options.journal_half_bytes != 0) result.journal_half_bytes = options.journal_half_bytes;
  result.encrypt = options.encrypt != 0;
  if (result.encrypt) result.key = key_source();
  return result;
}

namespace {

template <class Open>
int open_with(const char* path, vellum_store** out, const Open& open) {
  return guarded([&] {
    require(out, "out");
    *out = nullptr;
    require(path, "path");
    *out = new vellum_store(open());
  });
}

}  // namespace
}  // namespace vellum::capi

extern "C" {

int vellum_store_create(const char* path, const vellum_store_options* options, vellum_store** out) {
  return open_with(path, out, [&] { return Store::create(path, store_options_from(options)); });
}

int vellum_set_key_source(const vellum_key_source* source) {
  return guarded([&] {
    if (source == nullptr) return vellum::set_key_source(vellum::key_source_of_environment());
    require_struct(source);
    const vellum_key_source given = options_or_zero(source);
    const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
    vellum::KeySource out;
    out.passphrase_file = text(given.passphrase_file);
    out.key_file = text(given.key_file);
    out.identity_file = text(given.identity_file);
    out.recipient = text(given.recipient);
    out.command = text(given.command);
    out.fingerprint = text(given.fingerprint);
    out.encrypted_only = given.encrypted_only != 0;
    vellum::set_key_source(out);
  });
}

int vellum_set_sign_key_file(const char* path) {
  return guarded([&] {
    const char* const given = path == nullptr ? ::secure_getenv("VELLUM_SIGN_KEY_FILE") : path;
    vellum::set_sign_key_file(given == nullptr ? "" : given);
  });
}

int vellum_store_open(const char* path, vellum_store** out) {
  return open_with(path, out, [&] { return Store::open(path); });
}

int vellum_store_open_remote(const char* url, const vellum_remote_options* options,
                             vellum_store** out) {
  return open_with(url, out, [&] { return Store::open(url, remote_options_from(options)); });
}

int vellum_store_open_or_create(const char* path, const vellum_store_options* options,
                                vellum_store** out) {
  return open_with(path, out,
                   [&] { return Store::open_or_create(path, store_options_from(options)); });
}

void vellum_store_close(vellum_store* store) { delete store; }

const char* vellum_store_path(const vellum_store* store) {
  return store == nullptr ? nullptr : store->store.path().c_str();
}

int vellum_store_get_options(const vellum_store* store, vellum_store_options* options) {
  return guarded([&] {
    require(options, "options");
    require_struct(options);
    const vellum::StoreOptions found = store_of(store).options();
    fill_struct(options, {sizeof(vellum_store_options), &store->encoding, found.pack_bytes,
                          found.journal_half_bytes, found.encrypt ? 1 : 0});
  });
}

int vellum_store_id(const vellum_store* store, char id[33]) {
  return guarded([&] {
    require(id, "id");
    const std::string text = store_of(store).id();
    assert(text.size() == 32);
    std::memcpy(id, text.c_str(), text.size() + 1);
  });
}

int vellum_versions(const vellum_store* store, vellum_version_fn visit, void* context) {
  return guarded([&] {
    require(visit, "visit");
    for (const vellum::VersionInfo& version : store_of(store).versions()) {
      const VersionForC given(version);
      if (visit(&given.info, context) != 0) break;
    }
  });
}

int vellum_find_version(const vellum_store* store, const char* name, vellum_version_fn visit,
                        void* context) {
  return guarded([&] {
    require(name, "the version's name");
    require(visit, "visit");
    const vellum::VersionInfo version = store_of(store).version(name);
    const VersionForC given(version);
    visit(&given.info, context);
  });
}

int vellum_find_branch_image(const vellum_store* store, const char* branch,
                             vellum_branch_image_fn visit, void* context) {
  return guarded([&] {
    require(branch, "the branch's name");
    require(visit, "visit");
    const auto found = store_of(store).branch_image(branch);
    if (!found) return;
    const vellum_branch_image image{sizeof image, found->path.c_str(), found->in_use ? 1 : 0,
                                    found->changed ? 1 : 0};
    visit(&image, context);
  });
}

int vellum_create_branch(vellum_store* store, const char* name, const char* from_version,
                         const vellum_encoding* encoding) {
  return guarded([&] {
    require(name, "the branch's name");
    require(from_version, "from_version");
    store_of(store).create_branch(name, from_version, optional_encoding(encoding));
  });
}

int vellum_convert_to_branch(vellum_store* store, const char* name) {
  return guarded([&] {
    require(name, "name");
    store_of(store).convert_to_branch(name);
  });
}

int vellum_rename_branch(vellum_store* store, const char* from, const char* to) {
  return guarded([&] {
    require(from, "from");
    require(to, "to");
    store_of(store).rename_branch(from, to);
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

}  // extern "C"
