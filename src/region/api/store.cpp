// The C++ interface of a store (vellum/store.hpp), over store/catalog/store_directory.hpp.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vellum/store.hpp>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "format/wire/types.hpp"
#include "region/api/store_impl.hpp"
#include "region/api/version_names.hpp"
#include "region/encode/encoding.hpp"
#include "region/region_impl.hpp"
#include "remote/engine/url.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/session/missing_pieces.hpp"
#include "store/branch/changed_branch.hpp"
#include "store/branch/checkpointed_head.hpp"
#include "store/catalog/commit_name.hpp"
#include "store/catalog/key_file.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/catalog/snapshots/newest_snapshots.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/page_map/diff.hpp"
#include "store/page_map/page_source.hpp"
#include "store/signature/signed_versions.hpp"
#include "store/stream/image_file.hpp"

namespace vellum {
namespace {

using format::kPageBytes;
constexpr std::size_t kCopyPages = 256;  // read() moves 1 MiB at a time

format::Superblock superblock_of(const StoreOptions& options) {
  format::Superblock sb;
  static_cast<format::Encoding&>(sb) = region::to_format(options.encoding);
  region::require_range("pack_bytes", options.pack_bytes, 1ULL << 20, 1ULL << 40);
  region::require_range("journal_half_bytes", options.journal_half_bytes, 64u << 10, 64u << 20);
  if (options.journal_half_bytes % kPageBytes != 0) {
    fail(Errc::invalid_argument, "journal_half_bytes must be a multiple of 4096");
  }
  sb.pack_bytes = options.pack_bytes;
  sb.journal_half_bytes = options.journal_half_bytes;
  return sb;
}

// A snapshot that exists as long as this object.
class Meanwhile {
 public:
  Meanwhile(Store& store, store::StoreDirectory& core, const std::string& branch)
      : store_(store), name_(fmt::format("meanwhile-{}-{}", getpid(), base::wall_clock_ns())) {
    if (sign_key_file().empty() && store::signers_of(core, branch).empty()) {
      store_.create_snapshot(name_, branch);
    } else {
      // Not by the branch's writer: the snapshot would become the parent of the next signed one.
      store::name_live_branch_for_now(core, branch, store::claim_name(core, name_));
    }
  }
  ~Meanwhile() {
    try {
      store_.remove_snapshot(name_);
    } catch (const std::exception&) {
      return;  // the snapshot stays, under a name that shows its purpose
    }
  }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

  const std::string& name() const noexcept { return name_; }

 private:
  Store& store_;
  const std::string name_;
};

VersionInfo info_of(const store::ResolvedVersion& resolved, const std::string& name) {
  VersionInfo info;
  info.name = name;
  info.is_branch = resolved.is_branch;
  info.branch = resolved.branch;
  const format::CommitInfo& head = resolved.head_info();
  info.sequence = resolved.head_sequence();
  info.committed_at = base::time_point_of(head.time_ns);
  info.created_at = base::time_point_of(resolved.created_ns);
  info.order = resolved.order;
  info.message = head.message;
  info.parent = resolved.version.parent;
  info.region_bytes = head.region_bytes;
  info.pages_changed = resolved.version.pages_changed;
  info.file_bytes = head.file_bytes.value_or(head.region_bytes);
  info.bytes_added = resolved.version.bytes_added;
  if (resolved.signature.has_value()) info.signature = store::public_form(*resolved.signature);
  if (resolved.encoding.has_value()) info.encoding = region::from_format(*resolved.encoding);
  return info;
}

// By the branch's writer: the journal's commits are checkpointed, and the snapshot becomes the
// branch's base version. While another writer works, the head is read without it.
void snapshot_of_branch(store::StoreDirectory& core, const std::string& branch,
                        const store::NameLock& claim, const std::string& message) {
  std::unique_ptr<store::BranchWriter> writer;
  try {
    writer = store::BranchWriter::open(core, branch);
  } catch (const Error& error) {
    if (error.code() != Errc::busy) throw;
    return store::snapshot_live_branch(core, branch, claim, message);
  }
  writer->checkpoint_journal();
  writer->publish_snapshot(claim, message.empty() ? writer->head().message : message);
}

std::uint64_t checked_size(std::uint64_t size_bytes) {
  if (size_bytes > format::kMaxRegionBytes) {
    fail(Errc::invalid_argument, "a region of {} bytes is too large: at most {} (64 TiB)",
         size_bytes, format::kMaxRegionBytes);
  }
  if (size_bytes == 0) fail(Errc::invalid_argument, "a region needs at least one byte");
  return base::round_up(size_bytes, kPageBytes);
}

}  // namespace

Store::Store(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

Store Store::create(const std::string& path, const StoreOptions& options) {
  if (remote::is_remote_url(path)) {
    fail(Errc::unsupported, "{}: a remote is created by the first push to it", path);
  }
  const format::Superblock superblock = superblock_of(options);
  return StoreAccess::handle_of(
      options.encrypt
          ? store::StoreDirectory::create_encrypted(base::posix_fs(), path, superblock, options.key)
          : store::StoreDirectory::create(base::posix_fs(), path, superblock));
}

Store Store::open(const std::string& path) {
  if (remote::is_remote_url(path)) return open(path, RemoteOptions());
  return StoreAccess::handle_of(remote::open_store(base::posix_fs(), path));
}

Store Store::open(const std::string& url, const RemoteOptions& options) {
  if (!remote::is_remote_url(url)) {
    return StoreAccess::handle_of(remote::open_store(base::posix_fs(), url, options));
  }
  return StoreAccess::handle_of(remote::open_remote(base::posix_fs(), url, options));
}

namespace {

// A plain store may have been put there by an attacker.
Store open_as_wanted(const std::string& path, const StoreOptions& options) {
  Store out = Store::open(path);
  if (options.encrypt && !out.options().encrypt) {
    fail(Errc::wrong_key, "{}: the store is not encrypted, and an encrypted one is wanted", path);
  }
  return out;
}

}  // namespace

Store Store::open_or_create(const std::string& path, const StoreOptions& options) {
  try {
    return open_as_wanted(path, options);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found && e.code() != Errc::not_a_store) throw;
  }
  // create() takes an empty directory and refuses anything else that is no store.
  try {
    return create(path, options);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists || !base::posix_fs().exists(path + "/vellum.store")) throw;
  }
  return open_as_wanted(path, options);  // another process has created it meanwhile
}

const std::string& Store::path() const noexcept { return impl_->core->path(); }

std::string Store::id() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : impl_->core->superblock().store_id) {
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

StoreOptions Store::options() const {
  const auto& sb = impl_->core->superblock();
  StoreOptions options;
  options.encoding = region::from_format(sb);
  options.pack_bytes = sb.pack_bytes;
  options.journal_half_bytes = sb.journal_half_bytes;
  options.encrypt = sb.encrypted;
  return options;
}

Region Store::create_region(const std::string& branch, std::uint64_t size_bytes,
                            const RegionOptions& options) {
  const std::uint64_t remembered = options.over_reservation ? 0 : options.base_address;
  const std::uint64_t id = impl_->core->create_branch(branch, checked_size(size_bytes), remembered,
                                                      region::to_format(options.encoding));
  try {
    return open_region(branch, options);
  } catch (...) {
    // The name must not stay with a region that no caller has. Another process may have taken it.
    try {
      impl_->core->remove_new_branch(branch, id);
    } catch (const Error&) {
    }
    throw;
  }
}

Region Store::open_region(const std::string& branch, const RegionOptions& options) {
  return region::RegionAccess::open_branch(impl_->core, branch, options);
}

Region Store::open_or_create_region(const std::string& branch, std::uint64_t size_bytes,
                                    const RegionOptions& options) {
  const std::uint64_t size = checked_size(size_bytes);
  try {
    if (!has_branch(*impl_->core, branch)) return create_region(branch, size, options);
  } catch (const Error& e) {
    // Another process may have created it meanwhile.
    if (e.code() != Errc::already_exists || !has_branch(*impl_->core, branch)) throw;
  }
  RegionOptions roomy = options;
  if (roomy.capacity_bytes != 0) roomy.capacity_bytes = std::max(roomy.capacity_bytes, size);
  if (roomy.capacity_bytes == 0 && size > (std::uint64_t{64} << 30)) roomy.capacity_bytes = size;
  Region region = open_region(branch, roomy);
  if (region.size_bytes() < size) region.grow(size);
  return region;
}

Region Store::open_version(const std::string& name, const RegionOptions& options) {
  return region::RegionAccess::open_version(impl_->core, resolve(name), options);
}

namespace {

// A version removed meanwhile is omitted.
template <typename Resolve>
void add_version(const store::StoreDirectory& core, const Resolve& resolve, const std::string& name,
                 std::vector<VersionInfo>& to) {
  try {
    to.push_back(info_of(resolve(core, name), name));
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
  }
}

}  // namespace

std::vector<VersionInfo> api::branch_heads(const Store& store) {
  const store::StoreDirectory& core = *StoreAccess::core_of(store);
  std::vector<VersionInfo> branches;
  for (const auto& name : core.branch_names()) {
    if (!store::is_staging_name(name)) add_version(core, store::resolve_version, name, branches);
  }
  // A name that is also a snapshot's, after an interrupted convert_to_branch(), means the snapshot.
  std::erase_if(branches, [](const VersionInfo& v) { return !v.is_branch; });
  return branches;
}

std::vector<VersionInfo> api::newest_snapshots(const Store& store, std::size_t most) {
  std::vector<VersionInfo> snapshots;
  for (auto& ref : store::newest_snapshots(*StoreAccess::core_of(store), most)) {
    const std::string name = ref.name;
    snapshots.push_back(info_of(store::resolved(std::move(ref)), name));
  }
  return snapshots;
}

static_assert(api::kNewestFast == store::kNewestFast);

bool api::may_have_set_latest(const Store& store) {
  return store::may_have_latest_members(*StoreAccess::core_of(store));
}

std::vector<VersionInfo> api::snapshots_named(const Store& store, const std::string& prefix) {
  const store::StoreDirectory& core = *StoreAccess::core_of(store);
  std::vector<VersionInfo> snapshots;
  for (const auto& name : snapshot_names(core)) {
    if (name.starts_with(prefix)) add_version(core, store::resolve_snapshot, name, snapshots);
  }
  return snapshots;
}

// A snapshot converted into a branch meanwhile is found as a branch.
std::vector<VersionInfo> Store::versions() const {
  std::vector<VersionInfo> snapshots = api::snapshots_named(*this, "");
  std::vector<VersionInfo> branches = api::branch_heads(*this);
  std::sort(snapshots.begin(), snapshots.end(), [](const VersionInfo& a, const VersionInfo& b) {
    return std::tie(a.order, a.name) < std::tie(b.order, b.name);
  });
  snapshots.insert(snapshots.end(), branches.begin(), branches.end());
  return snapshots;
}

std::string Store::resolve(const std::string& version) const {
  return api::resolve_version(*this, version);
}

VersionInfo Store::version(const std::string& name) const {
  const std::string meant = resolve(name);
  return info_of(store::resolve_version(*impl_->core, meant), meant);
}

bool Store::contains(const std::string& name) const {
  return has_snapshot(*impl_->core, name) || has_branch(*impl_->core, name);
}

void Store::create_branch(const std::string& name, const std::string& given,
                          const std::optional<Encoding>& encoding) {
  const std::string from_version = resolve(given);
  const auto own = region::to_format(encoding);
  const auto claim = store::claim_name(*impl_->core, name);
  std::optional<Meanwhile> meanwhile;
  std::optional<store::NamesShared> names(*impl_->core);
  auto from = store::resolve_version(*impl_->core, from_version);
  if (!from.commits.empty()) {
    // A branch starts from packs. A snapshot checkpoints the journal's commits, and keeps them
    // until the branch does.
    names.reset();
    meanwhile.emplace(*this, *impl_->core, from_version);
    names.emplace(*impl_->core);
    from.version = store::resolve_version(*impl_->core, meanwhile->name()).version;
  }
  const bool is_snapshot = has_snapshot(*impl_->core, from_version);
  impl_->core->create_branch_at(claim, from.version,
                                is_snapshot ? from_version : from.version.parent,
                                own.has_value() ? own : from.encoding);
}

void Store::create_snapshot(const std::string& name, const std::string& given,
                            const std::string& message) {
  const std::string from_version = resolve(given);
  const auto claim = store::claim_name(*impl_->core, name);
  if (has_branch(*impl_->core, from_version) && !has_snapshot(*impl_->core, from_version)) {
    return snapshot_of_branch(*impl_->core, from_version, claim, message);
  }
  if (store::parse_commit_name(from_version))
    return store::snapshot_live_branch(*impl_->core, from_version, claim, message);
  const auto from = store::resolve_kept(*impl_->core, from_version);
  store::name_version(*impl_->core, claim, from.version.branch, from.version.version, message);
}

void Store::convert_to_branch(const std::string& name) { impl_->core->convert_to_branch(name); }

void Store::rename_branch(const std::string& from, const std::string& to) {
  // The new name has no record of the image. What another program has written there would be lost.
  if (const auto here = store::resolve_version(*impl_->core, from); here.is_branch) {
    const auto image = store::ImageFile::last_state(*impl_->core, from, here.version.branch_id);
    if (image && (image->in_use || store::ImageFile::changed_since(*impl_->core, *image))) {
      fail(Errc::busy,
           "branch '{}' of {}: its image {} has changed since the last commit; open it once", from,
           path(), image->path.empty() ? "in the store" : image->path);
    }
  }
  store::rename_branch(*impl_->core, from, to);
}

void Store::remove_snapshot(const std::string& name) { impl_->core->remove_snapshot(name); }
void Store::remove_branch(const std::string& name) { impl_->core->remove_branch(name); }

std::optional<BranchImage> Store::branch_image(const std::string& branch) const {
  const auto resolved = store::resolve_version(*impl_->core, branch);
  if (!resolved.is_branch) return std::nullopt;
  auto state = store::ImageFile::last_state(*impl_->core, branch, resolved.version.branch_id);
  if (!state || state->path.empty()) return std::nullopt;
  const bool changed = !state->in_use && store::ImageFile::changed_since(*impl_->core, *state);
  return BranchImage{std::move(state->path), state->in_use, changed};
}

DiffTotals Store::diff(const std::string& a, const std::string& b,
                       const std::function<void(const ByteRange&)>& visit) const {
  const auto va = store::resolve_kept(*impl_->core, resolve(a));
  const auto vb = store::resolve_kept(*impl_->core, resolve(b));
  return store::diff_versions(*impl_->core, va.version, vb.version, [&](const ByteRange& range) {
    if (visit) visit(range);
  });
}

void Store::read(const std::string& name, std::uint64_t offset_bytes, void* out,
                 std::size_t length_bytes) const {
  const std::string meant = resolve(name);
  const store::NamesShared names(*impl_->core);  // shorter than a pin of its own
  auto resolved = store::resolve_version(*impl_->core, meant);
  const auto source = store::PageSource::open(*impl_->core, resolved.version,
                                              std::move(resolved.commits), resolved.label);
  if (offset_bytes > source->region_bytes() ||
      length_bytes > source->region_bytes() - offset_bytes) {
    fail(Errc::invalid_argument, "{} has {} bytes: cannot read {} at {}", source->label(),
         source->region_bytes(), length_bytes, offset_bytes);
  }
  std::vector<std::byte> pages(kCopyPages * kPageBytes);
  auto* to = static_cast<std::byte*>(out);
  while (length_bytes > 0) {
    const std::uint64_t first = offset_bytes / kPageBytes;
    const std::size_t skip = offset_bytes % kPageBytes;
    const std::size_t n = std::min(length_bytes, pages.size() - skip);
    source->read(first, format::pages_in(skip + n), pages.data());
    std::memcpy(to, pages.data() + skip, n);
    to += n;
    offset_bytes += n;
    length_bytes -= n;
  }
}

GcReport Store::collect_garbage(const GcOptions& options, const ProgressFn& progress) {
  return store::collect_garbage(*impl_->core, options.dry_run, progress, options.recompress_level);
}

namespace {

// Requires a store that is a directory.
void require_directory(store::StoreDirectory& core, const char* what, const char* command) {
  if (core.packs().are_files()) return;
  fail(Errc::unsupported, "{}: {} reads the packs of a directory; for a remote there is `{} URL`",
       core.path(), what, command);
}

}  // namespace

StoreStat Store::stat() const {
  require_directory(*impl_->core, "Store::stat()", "vellum stat");
  return store::stat_store(*impl_->core);
}

VerifyReport Store::verify(const VerifyOptions& options, const ProgressFn& progress) const {
  require_directory(*impl_->core, "Store::verify()", "vellum verify");
  return store::verify_store(*impl_->core, options.read_data, progress);
}

RepairReport Store::repair(const std::string& path, const std::string& destination,
                           const RepairOptions& options, const ProgressFn& progress) {
  if (!options.dry_run && destination.empty()) {
    fail(Errc::invalid_argument, "{}: repair needs a name for the new store", path);
  }
  if (remote::has_missing_pieces(base::posix_fs(), path)) {
    fail(Errc::unsupported,
         "{}: packs of the store are at its remote, where they cannot be repaired: `vellum pull "
         "--packs` fetches them, and a clone of the remote has all pushed versions",
         path);
  }
  return store::repair_store(
      base::posix_fs(), path,
      options.dry_run ? std::nullopt : std::optional<std::string>(destination), progress,
      options.include_removed ? store::Removed::saved_too : store::Removed::left_out);
}

std::string Store::key_fingerprint() const { return store::key_fingerprint(*impl_->core); }

std::vector<KeySlot> Store::keys() const { return store::key_slots(*impl_->core); }

KeySlot Store::add_key(const KeySource& secret, const std::string& label) {
  return store::add_key_slot(*impl_->core, secret, label);
}

void Store::remove_key(std::uint32_t number) { store::remove_key_slot(*impl_->core, number); }

KeySlot Store::replace_key(std::uint32_t number, const KeySource& secret) {
  return store::replace_key_slot(*impl_->core, number, secret);
}

}  // namespace vellum
