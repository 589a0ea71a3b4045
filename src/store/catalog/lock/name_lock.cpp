#include "store/catalog/lock/name_lock.hpp"

#include <span>

#include "base/bytes/checksum.hpp"
#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "store/catalog/lock/lock_bytes.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

namespace {

using namespace std::chrono_literals;
constexpr auto kNamePatience = 30s;

constexpr const char* kLockFileName = "names.lock";

// The lock for a name. On a file system without byte locks, one separate file serves all names.
struct Lockable {
  std::shared_ptr<base::File> file;
  std::uint64_t byte = 0;
  bool whole = false;

  Lockable(PackStore& store, const std::string& name)
      : file(store.open_superblock(base::OpenMode::read_write)),
        byte(kFirstNameByte + base::checksum64(std::as_bytes(std::span(name))) % kNameBytes) {
    try {
      file->byte_locked(byte);
    } catch (const Error&) {
      file = open_lock_file(store, kLockFileName);
      whole = true;
    }
  }
  std::string holders() const {
    return base::lock_holders(file->path(), whole ? std::nullopt : std::optional(byte));
  }
  bool try_lock() const { return whole ? file->try_lock_exclusive() : file->try_lock_byte(byte); }
};

}  // namespace

NameLock lock_name(PackStore& store, const std::string& name) {
  const Lockable lockable(store, name);
  if (!lock_with_patience(kNamePatience, [&] { return lockable.try_lock(); })) {
    fail(Errc::busy, "'{}': somebody else is making or removing that name in {}{}", name,
         store.path(), lockable.holders());
  }
  return {name, lockable.file};
}

std::optional<NameLock> try_lock_name(PackStore& store, const std::string& name) {
  const Lockable lockable(store, name);
  if (!lockable.try_lock()) return std::nullopt;
  return NameLock(name, lockable.file);
}

}  // namespace vellum::store
