#include "memory/shared/share_name.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes/checksum.hpp"
#include "base/bytes/hex.hpp"
#include "format/journal.hpp"
#include "format/version.hpp"

namespace vellum::region {
namespace {

// A 128-bit hash of all added bytes, in order.
class NameHash {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    for (std::uint64_t& part : parts_) part = base::checksum64(bytes, part);
  }
  std::string hex() const { return fmt::format("{:016x}{:016x}", parts_[0], parts_[1]); }

 private:
  std::array<std::uint64_t, 2> parts_{1, 2};
};

}  // namespace

std::string share_name(const store::StoreDirectory& store, const store::ResolvedVersion& version) {
  struct stat status{};
  if (::stat(store.path().c_str(), &status) != 0) return {};
  const std::uint64_t location[] = {status.st_dev, status.st_ino};
  NameHash hash;
  hash.add(std::as_bytes(std::span(location)));
  hash.add(format::encode_version(version.version));
  for (const format::CommitBody& commit : version.commits) hash.add(format::encode_commit(commit));
  return "vellum-" + base::hex(store.superblock().store_id) + "-" + hash.hex();
}

}  // namespace vellum::region
