#include "store/catalog/signing_key.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <vellum/signature.hpp>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "format/version.hpp"

namespace vellum {
namespace {

std::mutex file_mutex;  // guards the file's name
std::optional<std::string>& chosen_file() {
  static std::optional<std::string> file;
  return file;
}

}  // namespace

void set_sign_key_file(const std::string& path) {
  const std::lock_guard guard(file_mutex);
  chosen_file() = path;
}

std::string sign_key_file() {
  const std::lock_guard guard(file_mutex);
  if (chosen_file().has_value()) return *chosen_file();
  const char* const value = ::secure_getenv("VELLUM_SIGN_KEY_FILE");
  return value == nullptr ? "" : value;
}

namespace {

// A pipe gives its bytes once: that key stays in secret memory.
base::Secret read_private(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return base::read_ed25519_private(file);
  static std::mutex kept_mutex;
  static std::map<std::string, base::Secret> kept;
  const std::lock_guard guard(kept_mutex);
  auto at = kept.find(file);
  if (at == kept.end()) at = kept.emplace(file, base::read_ed25519_private(file)).first;
  return base::Secret(std::as_const(at->second).bytes());
}

}  // namespace

PublicKey read_public_key(const std::string& file) { return base::read_ed25519_public(file); }

PublicKey public_key_of(const std::string& private_key_file) {
  return base::ed25519_public(read_private(private_key_file));
}

namespace store {

namespace {

std::string signers_path(const StoreDirectory& store, const std::string& branch) {
  return store.branch_directory(branch) + "/" + kSignersName;
}

}  // namespace

std::vector<base::Ed25519Public> signers_of(const StoreDirectory& store,
                                            const std::string& branch) {
  const std::string file = signers_path(store, branch);
  if (!store.fs().exists(file) || !has_branch(store, branch)) return {};
  format::Signers signers;
  const auto bytes = base::read_whole(store.fs(), file, format::kMaxSignersBytes);
  if (const char* problem = format::decode_signers(bytes, store.file_seal(), signers)) {
    fail(Errc::corrupted, "{}: {}", file, problem);
  }
  if (signers.branch_id != store.read_branch(branch).journal.header.branch_id) return {};
  return signers.keys;
}

base::Secret signing_key_for(const StoreDirectory& store, const std::string& branch) {
  const std::string file = sign_key_file();
  base::Secret key = file.empty() ? base::Secret() : read_private(file);
  const auto signers = signers_of(store, branch);
  if (signers.empty()) return key;
  if (key.empty()) {
    fail(Errc::untrusted, "branch '{}' of {} wants signed snapshots: give a key with --sign-key",
         branch, store.path());
  }
  if (std::ranges::find(signers, base::ed25519_public(key)) == signers.end()) {
    fail(Errc::untrusted, "{}: it is not a key that may sign branch '{}' of {}", file, branch,
         store.path());
  }
  return key;
}

void set_signers(StoreDirectory& store, const std::string& branch,
                 const std::vector<base::Ed25519Public>& keys) {
  const std::uint64_t id = store.read_branch(branch).journal.header.branch_id;
  const std::string file = signers_path(store, branch);
  if (keys.empty()) {
    if (!store.fs().exists(file)) return;
    store.fs().unlink(file);
    store.fs().sync_directory(store.branch_directory(branch));
    return;
  }
  if (keys.size() > format::kMaxSigners) {
    fail(Errc::invalid_argument, "branch '{}': at most {} keys may sign it", branch,
         format::kMaxSigners);
  }
  base::publish_file(store.fs(), store.tmp_directory(), store.branch_directory(branch),
                     kSignersName, format::encode_signers({id, keys}, store.file_seal()), true);
}

}  // namespace store
}  // namespace vellum
