#include "store/catalog/branch_ids.hpp"

#include <optional>

#include "format/journal.hpp"
#include "store/catalog/names.hpp"
#include "store/packs/header_error.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

namespace {

// Empty if the journal is absent or unreadable: a corrupted branch must not prevent new ones.
std::optional<std::uint64_t> id_of(const PackStore& store, const std::string& name) {
  std::vector<std::byte> bytes(format::kJournalHeaderBytes);
  format::JournalHeader header;
  try {
    store.fs().open(store.journal_path(name), base::OpenMode::read_only)->pread(bytes, 0);
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    return std::nullopt;
  }
  if (format::decode_journal_header(bytes, store.file_seal(), header) != nullptr) {
    if (format::is_newer(bytes, store.checksum_seed())) fail_newer(store.journal_path(name), bytes);
    return std::nullopt;
  }
  return header.branch_id;
}

}  // namespace

std::unordered_set<std::uint64_t> BranchIds::taken(const PackStore& store,
                                                   const std::vector<std::uint64_t>& packs) {
  const std::lock_guard lock(mutex_);
  std::unordered_set<std::uint64_t> taken{0};
  for (const std::uint64_t pack : packs) taken.insert(pack >> 32);
  std::unordered_map<std::string, std::uint64_t> present;
  for (const auto& entry : store.fs().list(store.branches_directory())) {
    if (!entry.is_directory || format::name_problem(entry.name) != nullptr) continue;
    const auto at = known_.find(entry.name);
    const auto id = at != known_.end() ? std::optional(at->second) : id_of(store, entry.name);
    if (!id) continue;
    taken.insert(*id);
    present.emplace(entry.name, *id);
  }
  known_ = std::move(present);
  return taken;
}

void BranchIds::forget(const std::string& name) {
  const std::lock_guard lock(mutex_);
  known_.erase(name);
}

}  // namespace vellum::store
