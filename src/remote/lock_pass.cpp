#include "remote/lock_pass.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/bytes/sha256.hpp"
#include "base/fail.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kLookedAtOnce = 256;  // versions that are looked at together
// A forger may put any number of versions: the newest and so many of the oldest are locked, which
// are those that are read as they were (remote/engine/objects_at.hpp).
constexpr std::size_t kMaxOldest = 8;
constexpr std::size_t kMaxRead = 64;  // to find the right one of more versions
constexpr int kMaxUnanswered = 16;    // each has been tried for a minute
constexpr std::array kContentPrefixes = {kPiecePrefix, kListPrefix, kNamesPrefix};

std::optional<ContentName> content_name_in(const std::string& key) {
  for (const char* const prefix : kContentPrefixes) {
    if (key.starts_with(prefix)) return parse_content_key(key, prefix);
  }
  return std::nullopt;
}

bool is_written_once(const std::string& key) {
  return key == kSuperblockKey || key.starts_with(kHeadPrefix) || content_name_in(key).has_value();
}

bool is_damage(const Error& e) {
  return e.code() == Errc::corrupted || e.code() == Errc::not_found || e.code() == Errc::wrong_key;
}

}  // namespace

std::vector<std::string> warnings_of(const LockRenewal& renewal, const std::string& url) {
  std::vector<std::string> out;
  if (renewal.deleted != 0) {
    out.push_back(fmt::format(
        "{}: {} objects that versions need were deleted there: --at reads the remote as it was "
        "before",
        url, renewal.deleted));
  }
  if (renewal.overwritten != 0) {
    out.push_back(fmt::format(
        "{}: {} objects that are written once got other versions: by a repair, or by somebody who "
        "has overwritten them; --at reads the remote as it was before",
        url, renewal.overwritten));
  }
  if (renewal.failures != 0) {
    out.push_back(fmt::format("{}: {} locks could not be looked at or extended, the first: {}", url,
                              renewal.failures, renewal.first_failure));
  }
  return out;
}

LockPass::LockPass(const Remote& remote, std::chrono::seconds duration,
                   std::optional<ServerTime> since)
    : versions_(*remote.objects().versions()),
      duration_(duration),
      begun_(versions_.now()),
      since_(since),
      pool_(remote.objects().connections() - 1) {
  try {
    NeededByHead needed = needed_by_newest(remote);
    needed_ = std::move(needed.keys);
    add_parts(needed.head);
  } catch (const Error& e) {
    if (!is_damage(e)) throw;
    note_failure(e);
    needs_all_ = true;
    needed_.clear();
    parts_.clear();
    add_parts(Head());
  }
}

void LockPass::add_parts(const Head& head) {
  for (const char* const prefix : kContentPrefixes) parts_.push_back({prefix});
  parts_.push_back({kHoldPrefix});
  for (const char* const key : {kSuperblockKey, kKeySlotsKey, kLockNoteKey}) {
    parts_.push_back({key, true});
  }
  if (needs_all_) parts_.push_back({kHeadPrefix});
  std::set<std::uint64_t> heads;
  if (head.number != 0) heads.insert(head.number);
  std::set<std::pair<std::uint64_t, std::uint64_t>> embedded;
  for (const RemoteVersion& version : head.versions) {
    for (const EmbeddedObject& object : version.embedded) {
      heads.insert(object.head);
      embedded.emplace(object.hash_start, object.size_bytes);
    }
  }
  for (const std::uint64_t number : heads) parts_.push_back({head_key(number), true});
  // What heads have needs no object of its own. Of the pieces of holds, no size is known.
  std::erase_if(needed_, [&](const auto& needed) {
    const auto name = content_name_in(needed.first);
    return name.has_value() && embedded.contains({hash_start(name->hash), needed.second});
  });
}

bool LockPass::go_on(const Remote& remote, Clock::time_point until, const ProgressFn& progress) {
  assert(remote.objects().versions() == &versions_);
  for (; part_ < parts_.size(); ++part_) {
    const bool is_done = visit(parts_[part_], until);
    report_.extended = extended_;
    if (progress) progress({report_.locked, report_.locked, "locks"});
    if (!is_done) return false;
    after_.clear();
  }
  finish(remote);
  return true;
}

// False: the time is over.
bool LockPass::visit(const Part& part, Clock::time_point until) {
  bool is_over = false;
  versions_.visit_versions({part.prefix, after_, {}}, [&](const auto& versions) {
    const std::string& key = versions.front().name.key;
    if (part.is_key && key != part.prefix) return false;
    const bool is_content = content_name_in(key).has_value();
    if (!is_content || needs_all_ || needed_.contains(key)) add(versions);
    after_ = key;
    if (waiting_.size() >= kLookedAtOnce) lock_waiting();
    is_over = Clock::now() >= until;
    return !is_over;
  });
  lock_waiting();
  return !is_over;
}

void LockPass::add(const std::vector<ObjectVersion>& versions) {
  const std::string& key = versions.front().name.key;
  if (versions.front().is_deletion) {
    if (key.starts_with(kHoldPrefix)) return;  // released
    if (!needs_all_) gone_.insert(key);
  }
  if (is_overwritten(versions)) ++report_.overwritten;
  for (VersionName& version : to_lock(versions)) waiting_.push_back(std::move(version));
  needed_.erase(key);
}

// Two contents in succession. Another head gets the number of one that was taken back.
bool LockPass::is_overwritten(const std::vector<ObjectVersion>& versions) const {
  const std::string& key = versions.front().name.key;
  if (!is_written_once(key)) return false;
  const auto is_content = [](const ObjectVersion& version) { return !version.is_deletion; };
  const auto newest = std::ranges::find_if(versions, is_content);
  if (newest == versions.end() || (since_.has_value() && newest->put_at <= *since_)) return false;
  const auto before = std::next(newest);
  if (key.starts_with(kHeadPrefix)) return before != versions.end() && !before->is_deletion;
  return std::any_of(before, versions.end(), is_content);
}

// The versions of a needed object to keep locked. Of an object that is written once, an older
// version is as good, and perhaps the only one that a forger has not put.
std::vector<VersionName> LockPass::to_lock(const std::vector<ObjectVersion>& versions) const {
  std::vector<ObjectVersion> contents;
  std::ranges::copy_if(versions, std::back_inserter(contents),
                       [](const ObjectVersion& version) { return !version.is_deletion; });
  const std::string& key = versions.front().name.key;
  const auto needed = needed_.find(key);
  const std::uint64_t size_bytes = needed == needed_.end() ? 0 : needed->second;
  const auto has_other_size = [&](const ObjectVersion& v) { return v.size_bytes != size_bytes; };
  if (size_bytes != 0 && !std::ranges::all_of(contents, has_other_size)) {
    std::erase_if(contents, has_other_size);
  }
  const std::size_t most = is_written_once(key) ? kMaxOldest + 1 : 1;
  std::vector<VersionName> out;
  if (contents.size() > most) {
    if (auto right = with_hash(contents)) out.push_back(std::move(*right));
    contents.erase(contents.begin() + 1, contents.end() - static_cast<std::ptrdiff_t>(most - 1));
  }
  for (const ObjectVersion& version : contents) {
    if (std::ranges::find(out, version.name) == out.end()) out.push_back(version.name);
  }
  return out;
}

// Of an object that is named by its content; the oldest first.
std::optional<VersionName> LockPass::with_hash(const std::vector<ObjectVersion>& versions) const {
  const auto name = content_name_in(versions.front().name.key);
  for (std::size_t i = 0; name.has_value() && i < std::min(kMaxRead, versions.size()); ++i) {
    const ObjectVersion& version = versions[versions.size() - 1 - i];
    try {
      const auto bytes = versions_.get_version(version.name, version.size_bytes);
      if (base::sha256(bytes) == name->hash) return version.name;
    } catch (const Error& e) {
      if (!is_damage(e)) throw;
    }
  }
  return std::nullopt;
}

void LockPass::lock_waiting() {
  pool_.parallel_for(waiting_.size(),
                     [&](std::size_t i, std::size_t) { keep_locked(waiting_[i]); });
  report_.locked += waiting_.size();
  waiting_.clear();
}

// What a server refuses, such as to extend a lock in governance mode, is no reason to let other
// locks run out.
void LockPass::keep_locked(const VersionName& version) {
  try {
    const auto until = versions_.locked_until(version);
    const ServerTime now = versions_.now();
    if (until.has_value() && *until >= now + least_of_lock(duration_)) return;
    versions_.lock_until(version, now + duration_);
    ++extended_;
  } catch (const RefusedRequest& e) {
    note_failure(e);
  } catch (const Error& e) {
    if (e.code() == Errc::not_found) return;  // it was removed since
    note_failure(e);
    if (e.code() != Errc::corrupted && ++unanswered_ > kMaxUnanswered) throw;
  }
}

void LockPass::note_failure(const Error& e) {
  const std::lock_guard lock(mutex_);
  if (report_.failures++ == 0) report_.first_failure = e.what();
}

// Others may have removed versions, and gc their objects, since the pass has begun.
void LockPass::finish(const Remote& remote) {
  for (const auto& [key, size_bytes] : needed_) {
    if (size_bytes != 0) gone_.insert(key);
  }
  needed_.clear();
  if (gone_.empty()) return;
  try {
    const NeededByHead now = needed_by_newest(remote);
    std::erase_if(gone_, [&](const std::string& key) {
      const auto number = parse_head_key(key);
      if (number.has_value()) return *number != now.head.number;
      return content_name_in(key).has_value() && !now.keys.contains(key);
    });
  } catch (const Error& e) {
    if (!is_damage(e)) throw;
    note_failure(e);
  }
  report_.deleted = gone_.size();
}

}  // namespace vellum::remote
