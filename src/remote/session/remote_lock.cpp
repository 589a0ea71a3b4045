#include "remote/session/remote_lock.hpp"

#include "base/fail.hpp"
#include "remote/engine/probe.hpp"
#include "remote/objects/lock_note.hpp"

namespace vellum::remote {
namespace {

constexpr const char* kNewestDirectory = "newest/";

}  // namespace

void lock_puts(ObjectStore& objects, std::chrono::seconds duration) {
  ObjectVersions* const versions = objects.versions();
  if (versions == nullptr) {
    fail(Errc::unsupported,
         "{}: its objects are to be locked, and only a bucket with Object Lock can do that",
         objects.url());
  }
  versions->lock_puts({duration, {kProbePrefix, kNewestDirectory}});
}

std::optional<std::chrono::seconds> lock_note_at(const Remote& remote) {
  std::vector<std::byte> bytes;
  try {
    bytes = remote.objects().get(kLockNoteKey, kMaxLockNoteBytes);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    return std::nullopt;
  }
  std::chrono::seconds out{0};
  if (const char* problem = decode_lock_note(bytes, remote.file_seal(), out)) {
    fail(Errc::corrupted, "{}: {}: the next push of a store that locks the remote puts it again",
         remote.name_of(kLockNoteKey), problem);
  }
  return out;
}

void put_lock_note(const Remote& remote, std::chrono::seconds duration) {
  remote.objects().put(kLockNoteKey, encode_lock_note(duration, remote.file_seal()));
}

std::optional<std::chrono::seconds> follow_lock_note(const Remote& remote) {
  ObjectVersions* const versions = remote.objects().versions();
  if (versions == nullptr) return std::nullopt;
  if (versions->put_lock().count() != 0) return versions->put_lock();
  const auto duration = lock_note_at(remote);
  if (duration.has_value()) lock_puts(remote.objects(), *duration);
  return duration;
}

}  // namespace vellum::remote
