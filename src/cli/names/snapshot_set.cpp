#include "cli/names/snapshot_set.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.hpp"
#include "base/try_to.hpp"
#include "cli/options/arguments.hpp"
#include "cli/terminal/output.hpp"
#include "region/api/version_names.hpp"

namespace vellum::cli {

std::string set_of(const VersionInfo& version) { return api::membership_of(version).set; }

std::string set_id_of(const VersionInfo& version) { return api::membership_of(version).id; }

std::size_t SnapshotSet::whole() const { return api::membership_of(members.front()).members; }

std::string members_text(const SnapshotSet& set) {
  if (set.complete()) return counted(set.members.size(), "member");
  return fmt::format("{} of {}", set.members.size(), counted(set.whole(), "member"));
}

void require_complete(const Store& store, const SnapshotSet& set) {
  if (set.complete()) return;
  std::vector<std::string> others;
  for (const VersionInfo& version : api::branch_heads(store)) {
    if (std::none_of(set.members.begin(), set.members.end(),
                     [&](auto& m) { return m.branch == version.name; }))
      others.push_back(version.name);
  }
  fail(Errc::not_found,
       "the set '{}' has {}; branches without a member: {}. Name a member to restore it alone, or "
       "give --force for those that exist",
       set.name, members_text(set),
       others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", ")));
}

SnapshotSet find_set(const Store& store, const std::string& name) {
  SnapshotSet set{name, {}};
  if (store.contains(name)) return set;  // a version of this name comes first
  if (name.find_first_of("~@{") != std::string::npos) return set;  // as in no name of a version
  if (name == "latest" && !api::may_have_set_latest(store)) return set;
  std::set<std::string> ids;
  auto versions = api::snapshots_named(store, name + "+");
  const bool is_id = std::ranges::any_of(versions, [&](auto& v) { return set_id_of(v) == name; });
  for (VersionInfo& version : versions) {
    const api::Membership of = api::membership_of(version);
    if ((is_id ? of.id : of.set) != name) continue;
    ids.insert(of.id);
    set.members.push_back(std::move(version));
  }
  if (ids.size() > 1) {
    fail(Errc::invalid_argument, "{} has several sets '{}': name one of them as {}", store.path(),
         name, fmt::join(ids, " or "));
  }
  std::sort(set.members.begin(), set.members.end(),
            [](const VersionInfo& a, const VersionInfo& b) { return a.branch < b.branch; });
  return set;
}

std::vector<SnapshotSet> take_sets(std::vector<VersionInfo>& versions) {
  std::vector<SnapshotSet> sets;
  std::map<std::string, std::size_t> place_of;
  std::erase_if(versions, [&](VersionInfo& version) {
    const api::Membership of = api::membership_of(version);
    if (of.set.empty()) return false;
    const auto [at, is_new] = place_of.try_emplace(of.id, sets.size());
    if (is_new) sets.push_back({of.set, {}});
    sets[at->second].members.push_back(version);
    return true;
  });
  return sets;
}

void require_free_set(const Store& store, const std::string& name,
                      const std::vector<std::string>& branches) {
  require_good_name(name);
  for (const std::string& branch : branches) {
    const std::string member = member_name(name, branches, branch);
    require_good_name(member);
    if (store.contains(member))
      fail(Errc::already_exists, "the name '{}' is taken in {}; nothing was done", member,
           store.path());
  }
  const auto versions = api::snapshots_named(store, name + "+");
  if (store.contains(name) || std::ranges::any_of(versions, [&](auto& v) {
        return set_of(v) == name || set_id_of(v) == name;
      }))
    fail(Errc::already_exists, "the name '{}' is taken in {}; nothing was done", name,
         store.path());
}

void create_set(Store& store, const std::string& name, const std::vector<std::string>& branches,
                const std::string& message) {
  require_free_set(store, name, branches);
  std::vector<std::string> created;
  try {
    for (const std::string& branch : branches) {
      store.create_snapshot(member_name(name, branches, branch), branch, message);
      created.push_back(member_name(name, branches, branch));
    }
  } catch (...) {
    for (const std::string& made : created) base::try_to([&] { store.remove_snapshot(made); });
    throw;
  }
}

}  // namespace vellum::cli
