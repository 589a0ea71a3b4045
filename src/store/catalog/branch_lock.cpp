#include "store/catalog/branch_lock.hpp"

#include "base/fail.hpp"
#include "store/catalog/names.hpp"

namespace vellum::store {

// Between open and lock, another process may have removed the branch, and even created it again.
// The lock is then on a file without a name.
std::unique_ptr<base::File> try_lock_branch(PackStore& store, const std::string& branch) {
  for (;;) {
    if (!has_branch(store, branch)) {
      fail(Errc::not_found, "no branch '{}' in {}", branch, store.path());
    }
    std::unique_ptr<base::File> file;
    try {
      file = store.fs().open(store.journal_path(branch), base::OpenMode::read_write);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
      continue;  // removed just now
    }
    const bool locked = file->try_lock_exclusive();
    if (!file->replaced()) return locked ? std::move(file) : nullptr;
  }
}

}  // namespace vellum::store
