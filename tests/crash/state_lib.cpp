#include "crash/state_lib.hpp"

#include <fmt/format.h>

#include "base/bytes/checksum.hpp"
#include "store/catalog/names.hpp"
#include "vellum/error.hpp"

namespace vellum::crash {

std::string StoreState::text() const {
  if (!exists) return "no store";
  std::string out;
  const auto add = [&](const char* kind, const std::map<std::string, VersionState>& versions) {
    for (const auto& [name, v] : versions) {
      out += fmt::format("{}{} {}: #{}, {} bytes, {:016x}", out.empty() ? "" : "; ", kind, name,
                         v.sequence, v.region_bytes, v.digest);
    }
  };
  add("branch", branches);
  add("snapshot", snapshots);
  return out;
}

VersionState state_of(std::uint64_t sequence, const std::vector<std::byte>& bytes) {
  return {sequence, bytes.size(), base::checksum64(bytes)};
}

std::shared_ptr<store::PageSource> open_version(store::StoreDirectory& store,
                                                const std::string& name) {
  store::ResolvedVersion v = store::resolve_version(store, name);
  return store::PageSource::open(store, v.version, std::move(v.commits), v.label);
}

std::vector<std::byte> read_pages(const store::PageSource& source) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(source.region_bytes()));
  if (!bytes.empty()) source.read(0, bytes.size() / format::kPageBytes, bytes.data());
  return bytes;
}

StoreState read_state(store::StoreDirectory& store) {
  StoreState out;
  out.exists = true;
  const auto add = [&](const std::string& name, std::map<std::string, VersionState>& to) {
    store::ResolvedVersion v = store::resolve_version(store, name);
    const std::uint64_t sequence = v.head_sequence();
    const auto source = store::PageSource::open(store, v.version, std::move(v.commits), v.label);
    to[name] = state_of(sequence, read_pages(*source));
  };
  for (const auto& name : store.branch_names()) {
    if (!store::is_staging_name(name)) add(name, out.branches);  // Store::versions() shows none
  }
  for (const auto& name : snapshot_names(store)) add(name, out.snapshots);
  return out;
}

StoreState read_state(base::Fs& fs, const std::string& path) {
  try {
    return read_state(*store::StoreDirectory::open(fs, path));
  } catch (const Error& e) {
    if (e.code() == Errc::not_found || e.code() == Errc::not_a_store) return {};
    throw;
  }
}

}  // namespace vellum::crash
