// interfaces/privateer/capi.cpp: the C interface of Privateer (privateer/c_api/privateer.h).
#include <privateer/c_api/privateer.h>

#include <cstdio>
#include <exception>
#include <privateer/privateer.hpp>
#include <limits>
#include <vellum/error.hpp>

namespace {

constexpr std::uint64_t kNoSize = std::numeric_limits<std::uint64_t>::max();

// Has a fixed size, so that recording an error needs no memory. Longer messages are truncated.
thread_local char last_error[2048] = "";

// Returns the body's result, or `otherwise` if it throws: no exception may pass through C.
template <class Value, class Body>
Value guarded(Value otherwise, const Body& body) noexcept {
  last_error[0] = '\0';
  try {
    return body();
  } catch (const std::exception& error) {
    std::snprintf(last_error, sizeof last_error, "%s", error.what());
  } catch (...) {
    std::snprintf(last_error, sizeof last_error, "an exception of an unknown type");
  }
  return otherwise;
}

Privateer& object(void* instance) {
  if (instance == nullptr) {
    throw vellum::Error(vellum::Errc::invalid_argument, "privateer_instance is NULL");
  }
  return *static_cast<Privateer*>(instance);
}

std::string path(const char* text) {
  if (text == nullptr) {
    throw vellum::Error(vellum::Errc::invalid_argument, "version_path is NULL");
  }
  return text;
}

}  // namespace

extern "C" {

void* get_privateer_object(int action, const char* base_path) {
  return guarded<void*>(nullptr, [&] { return new Privateer(action, base_path); });
}

void delete_privateer_object(void* privateer_instance) {
  delete static_cast<Privateer*>(privateer_instance);
}

void* privateer_create(void* privateer_instance, void* addr, const char* version_metadata_path,
                       uint64_t size, int allow_overwrite) {
  return guarded<void*>(nullptr, [&] {
    return object(privateer_instance)
        .create(addr, version_metadata_path, size, allow_overwrite != 0);
  });
}

void* privateer_open(void* privateer_instance, void* addr, const char* version_metadata_path) {
  return guarded<void*>(
      nullptr, [&] { return object(privateer_instance).open(addr, version_metadata_path); });
}

void* privateer_open_read_only(void* privateer_instance, void* addr,
                               const char* version_metadata_path) {
  return guarded<void*>(nullptr, [&] {
    return object(privateer_instance).open_read_only(addr, version_metadata_path);
  });
}

void* privateer_open_immutable(void* privateer_instance, void* addr,
                               const char* version_metadata_path,
                               const char* new_version_metadata_path) {
  return guarded<void*>(nullptr, [&] {
    return object(privateer_instance)
        .open_immutable(addr, version_metadata_path, new_version_metadata_path);
  });
}

void privateer_msync(void* privateer_instance) {
  guarded(0, [&] {
    object(privateer_instance).msync();
    return 0;
  });
}

int privateer_snapshot(void* privateer_instance, const char* version_metadata_path) {
  return guarded(
      0, [&] { return object(privateer_instance).snapshot(version_metadata_path) ? 1 : 0; });
}

void* privateer_data(void* privateer_instance) {
  return guarded<void*>(nullptr, [&] { return object(privateer_instance).data(); });
}

uint64_t privateer_region_size(void* privateer_instance) {
  return guarded<uint64_t>(0, [&] { return object(privateer_instance).region_size(); });
}

int privateer_version_exists(const char* version_metadata_path, void* privateer_instance) {
  return guarded(
      0, [&] { return object(privateer_instance).version_exists(version_metadata_path) ? 1 : 0; });
}

uint64_t privateer_version_capacity(void* /*privateer_instance*/, const char* version_path) {
  return guarded(kNoSize,
                 [&]() -> uint64_t { return Privateer::version_capacity(path(version_path)); });
}

uint64_t version_block_size(const char* version_path) {
  return guarded(kNoSize,
                 [&]() -> uint64_t { return Privateer::version_block_size(path(version_path)); });
}

int get_privateer_action_create(void) { return Privateer::CREATE; }
int get_privateer_action_open(void) { return Privateer::OPEN; }

const char* privateer_last_error(void) { return last_error; }

}  // extern "C"
