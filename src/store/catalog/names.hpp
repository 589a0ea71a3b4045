// store/catalog/names.hpp: the files behind a name. A branch is a directory with a journal, a
// snapshot is a ref (store/catalog/snapshots/refs.hpp). Both may have dispensable files.
#pragma once

#include <memory>
#include <string>

#include "store/catalog/snapshots/refs.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

bool has_branch(const PackStore& store, const std::string& name);

// Files of a branch's image, in the branch's directory: store/stream/image_file.hpp, image_tail.hpp.
inline constexpr const char* kImageName = "image";
inline constexpr const char* kImageStateName = "image.state";
inline constexpr const char* kTouchedName = "image.touched";
inline constexpr const char* kSignersName = "signers";  // store/catalog/signing_key.hpp
inline constexpr const char* kImageTailName = "image.tail";
// Removes these, and the note of a snapshot: the leftovers of a branch without its journal.
void remove_image_files(const PackStore& store, const std::string& branch);

// The current journal of the branch, locked until the file is closed. Null: it is already locked.
// Errc::not_found names the branch.
std::unique_ptr<base::File> try_lock_branch(PackStore& store, const std::string& branch);
// The same. Errc::busy, with the process that has locked it.
std::unique_ptr<base::File> lock_branch(PackStore& store, const std::string& branch);

// Names of staging branches: "vellum-snapshot-" and 16 hex digits. A staging branch exists while a
// snapshot is created concurrently with its branch's writer (store/branch/checkpointed_head.hpp), or while
// a branch gets its first content (store/branch/staging_branch.hpp). Users cannot create a branch or
// snapshot with such a name.
std::string random_staging_name();
bool is_staging_name(const std::string& name) noexcept;

}  // namespace vellum::store
