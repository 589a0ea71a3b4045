#include "store/branch/staging_branch.hpp"

#include <cassert>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"

namespace vellum::store {

StagingBranch::StagingBranch(StoreDirectory& store, const format::Version& version,
                             const std::optional<format::Encoding>& encoding)
    : store_(store), encoding_(encoding) {
  while (writer_ == nullptr) create(version, encoding);
}

StagingBranch::~StagingBranch() { drop(); }

// gc may find the branch before it is locked, and remove it. The caller then tries again.
void StagingBranch::create(const format::Version& version,
                           const std::optional<format::Encoding>& encoding) {
  name_ = random_staging_name();
  try {
    store_.create_staging_branch(name_, version, version.parent, encoding);
    writer_ = BranchWriter::open(store_, name_);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found && e.code() != Errc::busy) throw;
  }
}

// Holds names, since gc must not run while neither name exists. Both names exist for a short time,
// or, after a crash, until the next gc. They then mean the same version.
void StagingBranch::publish(const NameLock& claim) {
  assert(writer_ != nullptr);
  const NamesShared names(store_);
  store_.publish_staging_branch(claim, names, writer_->head(), encoding_);
  drop();
}

void StagingBranch::drop() noexcept {
  if (name_.empty()) return;
  writer_.reset();
  try {
    if (const auto journal = try_lock_branch(store_, name_)) store_.drop_branch(name_, *journal);
  } catch (const std::exception&) {  // gc removes it, as after a crash
  }
  name_.clear();
}

}  // namespace vellum::store
