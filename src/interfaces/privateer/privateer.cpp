// interfaces/privateer/privateer.cpp: Privateer's class (privateer/privateer.hpp): one call at a time, no
// nulls.
#include <privateer/privateer.hpp>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "interfaces/privateer/impl.hpp"
#include "interfaces/privateer/settings.hpp"

using vellum::Errc;
using vellum::Error;
namespace privateer = vellum::privateer;

namespace {

std::string text(const char* argument, const char* name) {
  if (argument == nullptr) fail(Errc::invalid_argument, "{} is null", name);
  return argument;
}

}  // namespace

Privateer::Privateer(int action, const char* base_path) : impl_(std::make_unique<Impl>()) {
  impl_->start(action, text(base_path, "base_path"), "");
}

Privateer::Privateer(int action, const char* base_path, const char* stash_base_path)
    : impl_(std::make_unique<Impl>()) {
  impl_->start(action, text(base_path, "base_path"), text(stash_base_path, "stash_base_path"));
}

Privateer::Privateer(const char* blocks_path, const char* version_path, std::size_t capacity)
    : Privateer(nullptr, blocks_path, version_path, capacity) {}

Privateer::Privateer(void* addr, const char* blocks_path, const char* version_path,
                     std::size_t capacity)
    : impl_(std::make_unique<Impl>()) {
  impl_->start_beside(text(blocks_path, "blocks_path"));
  impl_->create(addr, text(version_path, "version_path"), capacity, false);
}

Privateer::Privateer(const char* blocks_path, const char* version_path, std::size_t size,
                     std::size_t capacity)
    : Privateer(nullptr, blocks_path, version_path, std::max(size, capacity)) {}

Privateer::Privateer(void* addr, const char* blocks_path, const char* version_path,
                     std::size_t size, std::size_t capacity)
    : Privateer(addr, blocks_path, version_path, std::max(size, capacity)) {}

Privateer::Privateer(const char* version_path, bool read_only)
    : Privateer(nullptr, version_path, read_only) {}

Privateer::Privateer(void* addr, const char* version_path, bool read_only)
    : impl_(std::make_unique<Impl>()) {
  const std::string version = text(version_path, "version_path");
  impl_->start_at_version(version);
  read_only ? impl_->open_read_only(addr, version) : impl_->open(addr, version);
}

Privateer::Privateer(const char* version_path, const char* new_version_path)
    : Privateer(nullptr, version_path, new_version_path) {}

Privateer::Privateer(void* addr, const char* version_or_blocks_path, const char* version_path)
    : impl_(std::make_unique<Impl>()) {
  const std::string first = text(version_or_blocks_path, "version_or_blocks_path");
  const std::string second = text(version_path, "version_path");
  if (privateer::read_link(first)) {
    impl_->start_at_version(first);
    impl_->open_immutable(addr, first, second);
  } else {
    impl_->start_beside(first);
    impl_->open(addr, second);
  }
}

Privateer::~Privateer() {
  try {
    impl_->close();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "privateer: %s: stores since the last msync() are lost: %s\n",
                 impl_->place.label().c_str(), error.what());
  }
}

void* Privateer::create(void* addr, const char* version, std::size_t region_size,
                        bool allow_overwrite) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->create(addr, text(version, "version"), region_size, allow_overwrite);
}

void* Privateer::open(void* addr, const char* version) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->open(addr, text(version, "version"));
}

void* Privateer::open_read_only(void* addr, const char* version) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->open_read_only(addr, text(version, "version"));
}

void* Privateer::open_immutable(void* addr, const char* version, const char* new_version) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->open_immutable(addr, text(version, "version"), text(new_version, "new_version"));
}

void Privateer::msync() {
  const std::lock_guard lock(impl_->mutex);
  // Does nothing without an open version: destructors call this after a failed open, too.
  if (impl_->region.valid() && impl_->region.writable()) impl_->region.commit();
}

bool Privateer::snapshot(const char* version) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->snapshot(text(version, "version"));
}

bool Privateer::resize(std::size_t region_size) {
  const std::lock_guard lock(impl_->mutex);
  impl_->require_open("resize");
  try {
    impl_->region.grow(privateer::whole_blocks(region_size, impl_->block_bytes));
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", impl_->place.label(), error.what());
  }
  return true;
}

void* Privateer::data() { return impl_->region.data(); }
std::size_t Privateer::region_size() { return impl_->region.size_bytes(); }
std::size_t Privateer::current_size() { return region_size(); }

std::size_t Privateer::get_block_size() {
  return impl_->block_bytes != 0 ? impl_->block_bytes : privateer::block_bytes_at_start();
}

bool Privateer::version_exists(const char* version) {
  const std::lock_guard lock(impl_->mutex);
  const auto at = impl_->place_of(text(version, "version"));
  if (!privateer::is_directory(at.directory)) return false;
  try {
    return privateer::find_version(impl_->store_of(at), at).has_value();
  } catch (const Error& error) {
    if (error.code() != Errc::not_found && error.code() != Errc::not_a_store) throw;
    return false;
  }
}

std::size_t Privateer::version_capacity(std::string version_path) {
  const auto at = privateer::place_of_directory(version_path);
  const auto store = privateer::open_blocks(at);
  return store.version(privateer::require_version(store, at).name).region_bytes;
}

std::size_t Privateer::version_block_size(std::string version_path) {
  const auto at = privateer::place_of_directory(version_path);
  return privateer::require_version(privateer::open_blocks(at), at).block_bytes;
}
