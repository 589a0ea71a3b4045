#include "store/gc/pack_mover.hpp"

#include "store/catalog/names.hpp"

namespace vellum::store {

namespace {

// The name of a scratch file on a file system without unnamed files (base/files/scratch_file.cpp).
// The process that creates it removes the name at once.
constexpr std::string_view kSpillFilePrefix = "vellum-spill-";

// Another process may remove the file first.
template <typename Body>
void ignore_missing(const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
}

void remove_unpublished_in(StoreDirectory& store, const std::string& directory,
                           const std::string& prefix) {
  for (const auto& entry : store.fs().list(directory)) {
    if (!entry.is_regular_file || !entry.name.starts_with(prefix)) continue;
    base::remove_unpublished(store.fs(), directory + "/" + entry.name);
  }
}

void remove_staging_branches(StoreDirectory& store) {
  for (const std::string& name : store.branch_names()) {
    if (!is_staging_name(name)) continue;
    ignore_missing([&] {
      if (const auto journal = try_lock_branch(store, name)) store.drop_branch(name, *journal);
    });
  }
}

// A process that creates or removes a branch holds the lock of its name. The creator of a staging
// branch does not: if its directory is removed, it starts again.
void remove_directory_without_journal(StoreDirectory& store, const std::string& name) {
  const std::string directory = store.branches_directory() + "/" + name;
  const auto lock = try_lock_name(store, name);
  if (!lock || store.fs().exists(store.journal_path(name))) return;
  ignore_missing([&] {
    remove_image_files(store, name);
    store.fs().remove_directory(directory);
  });
}

void remove_directories_without_journal(StoreDirectory& store) {
  for (const auto& entry : store.fs().list(store.branches_directory())) {
    if (!entry.is_directory || format::name_problem(entry.name) != nullptr) continue;
    if (store.fs().exists(store.journal_path(entry.name))) continue;
    remove_directory_without_journal(store, entry.name);
  }
}

void remove_named_spills(StoreDirectory& store) {
  for (const auto& entry : store.fs().list(store.path())) {
    if (!entry.is_regular_file || !entry.name.starts_with(kSpillFilePrefix)) continue;
    ignore_missing([&] { store.fs().unlink(store.path() + "/" + entry.name); });
  }
}

}  // namespace

void remove_unfinished(StoreDirectory& store, const GcExclusive& /*gc*/) {
  remove_unpublished_in(store, store.tmp_directory(), "");
}

void remove_orphans(StoreDirectory& store, const GcExclusive& /*gc*/) {
  remove_staging_branches(store);
  remove_directories_without_journal(store);
  remove_named_spills(store);
  const std::string id_file = std::string(kTierIdName) + ".";
  for (const std::string& archive :
       store.packs().places().state()->present_paths(format::TierKind::archive)) {
    remove_unpublished_in(store, archive, id_file);
  }
}

}  // namespace vellum::store
