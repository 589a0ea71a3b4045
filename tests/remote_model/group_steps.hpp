// Steps of a group in the model, and what its versions must contain, in its stores and at its
// remote.
#pragma once

#include "remote_model/stores_group.hpp"

namespace vellum::remote::meeting {

inline constexpr std::size_t kMaxGroupNames = 3;

class GroupSteps {
 public:
  using Step = std::function<void(base::Fs&)>;
  // Runs a step as a process that may fail, and then again as another one.
  using Run = std::function<void(const Step&)>;

  GroupSteps(Names stores, std::string url) : group_(std::move(stores), std::move(url)) {}

  const StoresGroup& group() const { return group_; }
  bool is_in_a_step() const { return is_in_a_step_; }
  bool has_versions_there() const { return there_.newest.has_value(); }
  // Of a partition; empty: the group has no version.
  Bytes newest(std::uint32_t partition) const {
    return here_.newest.has_value() ? here_.newest->at(partition) : Bytes();
  }
  Names names_here() const { return names_of(here_); }
  Names names_there() const { return names_of(there_); }
  bool has_room_for_a_name() const { return there_.named.size() < kMaxGroupNames; }

  void write(const Run& run, const GroupContent& content, const std::string& name, bool with_push) {
    change(run, with_push ? &content : nullptr, &content,
           [&](base::Fs& fs) { group_.write(fs, content, name, with_push); });
    if (!name.empty()) here_.named[name] = content;
    if (!name.empty() && with_push) there_.named[name] = content;
  }
  void push(const Run& run) {
    if (!here_.newest.has_value()) return;
    const GroupContent content = *here_.newest;
    change(run, &content, nullptr, [&](base::Fs& fs) { group_.push(fs); });
  }
  void remove(const Run& run, const std::string& name) {
    here_.named.erase(name);
    change(run, nullptr, nullptr, [&](base::Fs& fs) { group_.remove(fs, name); });
  }
  // Empty: the newest version there.
  void restore(const Run& run, const std::string& version) {
    const GroupContent content = there_.of(version);
    change(run, nullptr, &content, [&](base::Fs& fs) { group_.restore(fs, version); });
    if (!version.empty()) here_.named[version] = content;
  }
  // To stores beside those of the group.
  void restore_elsewhere(const Run& run, base::Fs& disk, const std::string& version) {
    const std::string records = "/h", stores = "/h-{}";
    change(run, nullptr, nullptr,
           [&](base::Fs& fs) { group_.restore(fs, version, records, stores); });
    EXPECT_TRUE(group_.content(disk, "", records) == there_.of(version)) << version;
    remove_directory(disk, records);
    for (std::uint32_t p = 0; p < group_.partitions(); ++p) {
      remove_directory(disk, group::path_of_partition(stores, p));
    }
  }
  // A store of the group is lost: its versions are incomplete until one is restored.
  void lose() { here_ = {}; }

  void expect_all(base::Fs& disk) const {
    if (here_.newest.has_value()) {
      const auto found = group_.content(disk, "");
      EXPECT_TRUE(found == *here_.newest || found == next_) << "newest of the group";
    }
    for (const auto& [name, content] : here_.named) {
      EXPECT_TRUE(group_.content(disk, name) == content) << name << " of the group";
    }
    if (!there_.newest.has_value()) return;
    const auto found = group_.content_there(disk, "");
    EXPECT_TRUE(found == *there_.newest || found == next_there_) << "newest at the group's remote";
    for (const auto& [name, content] : there_.named) {
      EXPECT_TRUE(group_.content_there(disk, name) == content) << name << " at the group's remote";
    }
    for (std::uint32_t p = 0; p < group_.partitions(); ++p) {
      expect_whole_remote(*group_.objects(disk, p));
    }
  }

 private:
  struct Versions {
    std::map<std::string, GroupContent> named;
    std::optional<GroupContent> newest;
    const GroupContent& of(const std::string& version) const {
      return version.empty() ? newest.value() : named.at(version);
    }
  };
  static Names names_of(const Versions& versions) {
    Names out;
    for (const auto& [name, content] : versions.named) out.push_back(name);
    return out;
  }

  // Until the step has ended, the newest version is the old one or this one.
  void change(const Run& run, const GroupContent* newest_there, const GroupContent* newest,
              const Step& step) {
    if (newest != nullptr) next_ = *newest;
    if (newest_there != nullptr) next_there_ = *newest_there;
    is_in_a_step_ = true;
    run(step);
    is_in_a_step_ = false;
    if (newest != nullptr) here_.newest = *newest;
    if (newest_there != nullptr) there_.newest = *newest_there;
    next_.reset();
    next_there_.reset();
  }

  const StoresGroup group_;
  Versions here_, there_;
  std::optional<GroupContent> next_, next_there_;  // what an unfinished step may have made newest
  bool is_in_a_step_ = false;
};

}  // namespace vellum::remote::meeting
