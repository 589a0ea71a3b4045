#include "remote/session/remote_lock.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "remote/engine/probe.hpp"
#include "remote/objects/lock_note.hpp"

namespace vellum::remote {
namespace {

constexpr const char* kNewestDirectory = "newest/";
// A lock counts from the clock of who has put the object.
constexpr std::chrono::minutes kMaxClockError{20};

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
  constexpr const char* kAdvice =
      "remove this object; the next push of a store that locks the remote puts it again";
  std::vector<std::byte> bytes;
  try {
    bytes = remote.objects().get(kLockNoteKey, kMaxLockNoteBytes);
  } catch (const Error& e) {
    if (e.code() == Errc::corrupted) fail(e.code(), "{}: {}", e.what(), kAdvice);
    if (e.code() != Errc::not_found) throw;
    return std::nullopt;
  }
  std::chrono::seconds out{0};
  if (const char* problem = decode_lock_note(bytes, remote.file_seal(), out)) {
    fail(Errc::corrupted, "{}: {}: {}", remote.name_of(kLockNoteKey), problem, kAdvice);
  }
  return out;
}

void put_lock_note(const Remote& remote, std::chrono::seconds duration) {
  remote.objects().put(kLockNoteKey, encode_lock_note(duration, remote.file_seal()));
}

std::string lock_text(std::chrono::seconds duration) {
  const auto days = std::chrono::floor<std::chrono::days>(duration);
  return days == duration ? fmt::format("{} days", days.count())
                          : fmt::format("{} seconds", duration.count());
}

namespace {

// The shortest lock of the newest heads, counted from the time at which each was put. Each further
// one is an object more that a forger has to put or to extend. Nullopt: there is no head; 0: none is
// locked.
std::optional<std::chrono::seconds> lock_of_heads(ObjectVersions& versions) {
  constexpr int kMaxHeads = 8;
  std::optional<std::chrono::seconds> out;
  int heads = 0;
  versions.visit_versions({kHeadPrefix, "", {}}, [&](const auto& of_key) {
    for (auto version = of_key.rbegin(); version != of_key.rend(); ++version) {
      if (version->is_deletion) continue;
      const auto until = versions.locked_until(version->name);
      auto lock = std::chrono::duration_cast<std::chrono::seconds>(until.value_or(version->put_at) -
                                                                   version->put_at);
      if (lock <= kMaxClockError) lock = std::chrono::seconds(0);
      if (!out.has_value() || out->count() == 0) {
        out = lock;
      } else if (lock.count() != 0) {
        out = std::min(*out, lock);
      }
      break;  // the oldest version is the right one
    }
    return ++heads < kMaxHeads;
  });
  return out;
}

}  // namespace

std::optional<std::chrono::seconds> credible_lock_note(const Remote& remote,
                                                       std::vector<std::string>* warnings) {
  const auto noted = lock_note_at(remote);
  ObjectVersions* const versions = remote.objects().versions();
  if (!noted.has_value() || versions == nullptr) return noted;
  const auto given = lock_of_heads(*versions);
  if (!given.has_value() || *noted <= *given + kMaxClockError) return noted;
  if (warnings != nullptr) {
    warnings->push_back(fmt::format(
        "{}: {} says {}, and the newest versions were locked for {}: locks are not extended for "
        "longer here; a push of a store with the longer lock does it, otherwise remove that object",
        remote.objects().url(), kLockNoteKey, lock_text(*noted), lock_text(*given)));
  }
  if (given->count() == 0) return std::nullopt;
  return given;
}

std::optional<std::chrono::seconds> follow_lock_note(const Remote& remote,
                                                     std::vector<std::string>* warnings) {
  ObjectVersions* const versions = remote.objects().versions();
  if (versions == nullptr) return std::nullopt;
  if (versions->put_lock().count() != 0) return versions->put_lock();
  const auto duration = credible_lock_note(remote, warnings);
  if (!duration.has_value()) return std::nullopt;
  try {
    versions->require_lock();
  } catch (const RefusedRequest&) {  // a policy may not grant the question
  } catch (const Error& e) {
    if (e.code() != Errc::unsupported) throw;
    fail(Errc::unsupported,
         "{} ({} says that objects are locked: remove that object if it is wrong)", e.what(),
         kLockNoteKey);
  }
  lock_puts(remote.objects(), *duration);
  return duration;
}

}  // namespace vellum::remote
