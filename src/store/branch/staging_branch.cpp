#include "store/branch/staging_branch.hpp"

#include <fmt/format.h>

#include <cassert>
#include <chrono>
#include <utility>

#include "base/bytes/hex.hpp"
#include "base/bytes/sha256.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"

namespace vellum::store {
namespace {

constexpr std::chrono::seconds kMaxTrying{2};
constexpr std::size_t kHalfOfDigits = 8;

// The names that may be kept for a branch begin like this one, without the last half of its digits.
std::string kept_prefix(std::uint64_t branch_id) {
  const std::string any = random_staging_name();
  return any.substr(0, any.size() - 2 * kHalfOfDigits) +
         fmt::format("{:08x}", branch_id & UINT32_MAX);
}

std::string kept_name_of(const format::Version& version) {
  const base::Sha256 hash = base::sha256(format::encode_version(version));
  return kept_prefix(version.branch_id) + base::hex(std::span(hash).first(kHalfOfDigits / 2));
}

}  // namespace

StagingBranch::StagingBranch(StoreDirectory& store, const format::Version& version,
                             const std::optional<format::Encoding>& encoding)
    : store_(store), encoding_(encoding) {
  const auto last_try = std::chrono::steady_clock::now() + kMaxTrying;
  while (writer_ == nullptr) create(version, encoding, last_try);
}

StagingBranch::StagingBranch(StoreDirectory& store, const format::Version& version,
                             const std::optional<format::Encoding>& encoding, std::string kept_name)
    : store_(store), encoding_(encoding), name_(std::move(kept_name)), is_kept_(true) {
  if (!has_branch(store, name_))
    store.create_staging_branch(name_, version, version.parent, encoding);
  writer_ = BranchWriter::open(store, name_);
}

// An unreadable one is like none: gc removes it.
std::unique_ptr<StagingBranch> StagingBranch::kept(
    StoreDirectory& store, const format::Version& version,
    const std::optional<format::Encoding>& encoding) {
  try {
    return std::unique_ptr<StagingBranch>(
        new StagingBranch(store, version, encoding, kept_name_of(version)));
  } catch (const Error&) {
    return std::make_unique<StagingBranch>(store, version, encoding);
  }
}

void StagingBranch::remove_kept(StoreDirectory& store, std::uint64_t branch_id,
                                const format::Version& version) {
  const std::string prefix = kept_prefix(branch_id);
  const std::string stays = version.branch_id == 0 ? "" : kept_name_of(version);
  for (const std::string& name : store.branch_names()) {
    if (!is_staging_name(name) || !name.starts_with(prefix) || name == stays) continue;
    try {
      if (const auto journal = try_lock_branch(store, name)) store.drop_branch(name, *journal);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;  // gc has removed it
    }
  }
}

StagingBranch::~StagingBranch() {
  if (!is_kept_) drop();
}

// gc may find the branch before it is locked, and remove it. The caller then tries again. A gc that
// is stopped while it reads the names makes the store busy, too, and that is no reason to try again.
void StagingBranch::create(const format::Version& version,
                           const std::optional<format::Encoding>& encoding,
                           std::chrono::steady_clock::time_point last_try) {
  name_ = random_staging_name();
  try {
    store_.create_staging_branch(name_, version, version.parent, encoding);
    writer_ = BranchWriter::open(store_, name_);
  } catch (const Error& e) {
    drop();
    const bool is_gone = e.code() == Errc::not_found || e.code() == Errc::busy;
    if (!is_gone || std::chrono::steady_clock::now() > last_try) throw;
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
