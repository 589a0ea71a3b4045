// interfaces/c/boundary.hpp: handles of the C interface, and the boundary that no exception
// crosses.
#pragma once

#include <vellum/vellum.h>
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vellum/error.hpp>
#include <vellum/region.hpp>
#include <vellum/report.hpp>
#include <vellum/store.hpp>

namespace vellum::capi {

vellum_encoding to_c(const Encoding& encoding);

}  // namespace vellum::capi

struct vellum_store {
  explicit vellum_store(vellum::Store opened)
      : store(std::move(opened)), encoding(vellum::capi::to_c(store.options().encoding)) {}
  vellum::Store store;
  vellum_encoding encoding;  // for vellum_store_get_options()
};
struct vellum_region {
  explicit vellum_region(vellum::Region opened) : region(std::move(opened)), name(region.name()) {}
  vellum::Region region;
  std::string name;
};
struct vellum_transaction {
  vellum::Transaction transaction;
};
struct vellum_pin {
  vellum::Pin pin;
};

namespace vellum::capi {

// Call inside a catch block: stores the exception's message for the thread, returns its number.
int note_current_exception() noexcept;

// Runs one function of the C interface.
template <class Body>
int guarded(const Body& body) noexcept {
  try {
    body();
    return VELLUM_OK;
  } catch (...) {
    return note_current_exception();
  }
}

[[noreturn]] void refuse_null(const char* name);

// Throws invalid_argument, naming the argument, when it is NULL.
template <class T>
void require(T* argument, const char* name) {
  if (argument == nullptr) refuse_null(name);
}

inline std::string or_empty(const char* text) { return text == nullptr ? std::string() : text; }

// Copies the fields that caller and library both have of a struct that starts with struct_size.
template <class Struct>
void copy_known(Struct& to, const Struct& from, std::size_t known_bytes) {
  constexpr std::size_t start = sizeof to.struct_size;
  assert(known_bytes >= start);
  std::memcpy(reinterpret_cast<char*>(&to) + start, reinterpret_cast<const char*>(&from) + start,
              std::min(known_bytes, sizeof(Struct)) - start);
}

void require_struct_size(std::size_t struct_size);

// The caller's options, or zeros where there are none.
template <class Struct>
Struct options_or_zero(const Struct* options) {
  Struct result = {};
  if (options != nullptr) {
    require_struct_size(options->struct_size);
    copy_known(result, *options, options->struct_size);
  }
  return result;
}

// The default for NULL. Errc::invalid_argument for an unknown compression or hash.
Encoding encoding_from(const vellum_encoding* given);
// Nothing for NULL.
std::optional<Encoding> optional_encoding(const vellum_encoding* given);

// Call first: an invalid struct is then refused before anything changes.
template <class Struct>
void require_struct(const Struct* out) {
  if (out != nullptr) {
    require_struct_size(out->struct_size);
  }
}
template <class Struct>
void fill_struct(Struct* out, const Struct& values) {
  if (out != nullptr) {
    copy_known(*out, values, out->struct_size);
  }
}

// The defaults for NULL. Errc::invalid_argument for unknown numbers.
RegionOptions region_options_from(const vellum_region_options* given);
StoreOptions store_options_from(const vellum_store_options* given);
RemoteOptions remote_options_from(const vellum_remote_options* given);

vellum_commit_report to_c(const CommitReport& report);

inline Store& store_of(vellum_store* handle) {
  require(handle, "store");
  return handle->store;
}
inline const Store& store_of(const vellum_store* handle) {
  require(handle, "store");
  return handle->store;
}

// The program's callback ended the call. Thrown through the library, and caught by guarded().
struct Stopped {};

// The caller's progress callback for the library; empty for NULL.
ProgressFn progress_of(vellum_progress_fn progress, void* context);

// A version for a callback. The pointers of `info` point into `version` and this object.
struct VersionForC {
  explicit VersionForC(const VersionInfo& version);
  VersionForC(const VersionForC&) = delete;
  VersionForC& operator=(const VersionForC&) = delete;
  vellum_encoding encoding = {};
  vellum_version_info info = {};
};

}  // namespace vellum::capi
