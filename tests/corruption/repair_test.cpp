// store::repair_store saves versions bit by bit, names the lost ones, and leaves the corrupted
// store unchanged.
#include "store/check/check.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "corruption/sample_lib.hpp"
#include "support/disk/forwarding_fs.hpp"

namespace vellum::corruption {
namespace {

constexpr const char* kNewPath = "/new";

class Repair : public ::testing::Test {
 protected:
  Repair() : sample_(make_sample(300, 5)), fs_(*sample_.fs) {}

  std::string ref(const std::string& name) const {
    return std::string(kStorePath) + "/snapshots/" + name + ".ref";
  }
  std::string journal(const std::string& name) const {
    return std::string(kStorePath) + "/branches/" + name + "/journal";
  }
  std::vector<std::string> packs() const {
    std::vector<std::string> out;
    for (const auto& file : fs_.files()) {
      if (file.find("/packs/") != std::string::npos && file.starts_with(kStorePath))
        out.push_back(file);
    }
    return out;
  }

  RepairReport run(store::Removed removed = store::Removed::left_out) {
    const auto before = contents_of_store();
    auto report = store::repair_store(fs_, kStorePath, kNewPath, nullptr, removed);
    EXPECT_EQ(contents_of_store(), before) << "the corrupted store was changed";
    fresh_ = store::StoreDirectory::open(fs_, kNewPath);
    const auto verified = store::verify_store(*fresh_, true, nullptr);
    for (const auto& d : verified.damages) ADD_FAILURE() << d.object << ": " << d.reason;
    for (const auto& s : report.saved) EXPECT_NO_THROW(read_version(*fresh_, s.name)) << s.name;
    EXPECT_EQ(fresh_->branch_names().size() + snapshot_names(*fresh_).size(), report.saved.size());
    return report;
  }
  std::vector<Bytes> contents_of_store() const {
    std::vector<Bytes> out;
    for (const auto& file : fs_.files()) {
      if (file.starts_with(kStorePath)) out.push_back(fs_.read_file(file));
    }
    return out;
  }
  void expect_saved(const RepairReport& report, const std::string& name) {
    const auto at = find(report, name);
    ASSERT_NE(at, nullptr) << name;
    EXPECT_TRUE(at->exact) << name;
    EXPECT_EQ(read_version(*fresh_, name), sample_.contents.at(name)) << name;
  }
  static const SavedVersion* find(const RepairReport& report, const std::string& name) {
    const auto at = std::find_if(report.saved.begin(), report.saved.end(),
                                 [&](const auto& s) { return s.name == name; });
    return at == report.saved.end() ? nullptr : &*at;
  }
  static std::string reason(const RepairReport& report, const std::string& name) {
    for (const auto& l : report.lost) {
      if (l.name == name) return l.reason;
    }
    return "";
  }

  Sample sample_;
  test::MemoryFs& fs_;
  std::shared_ptr<store::StoreDirectory> fresh_;
};

TEST_F(Repair, AWholeStoreIsCopiedExactly) {
  const auto old = store::StoreDirectory::open(fs_, kStorePath);
  const auto report = run();
  EXPECT_TRUE(report.lost.empty());
  EXPECT_EQ(report.saved.size(), sample_.contents.size());
  for (const auto& [name, bytes] : sample_.contents) expect_saved(report, name);
  for (const auto& name : snapshot_names(*old)) {
    const auto a = read_snapshot(*old, name), b = read_snapshot(*fresh_, name);
    EXPECT_EQ(a.created_ns, b.created_ns);
    EXPECT_EQ(a.order, b.order);
    EXPECT_EQ(a.branch, b.branch);
    EXPECT_EQ(a.version.message, b.version.message);
    EXPECT_EQ(a.version.time_ns, b.version.time_ns);
    EXPECT_EQ(a.version.base_address, b.version.base_address);
  }
  // Deltas and shared pages stay deltas and shared: the copy is not much larger.
  std::uint64_t old_bytes = 0, new_bytes = 0;
  for (const auto& file : fs_.files()) {
    if (file.find("/packs/") == std::string::npos) continue;
    (file.starts_with(kStorePath) ? old_bytes : new_bytes) += fs_.read_file(file).size();
  }
  EXPECT_LT(new_bytes, old_bytes * 5 / 4);
}

TEST_F(Repair, ADryRunWritesNothing) {
  fs_.erase(ref("snap-3"));
  const std::uint64_t changes = fs_.changes();
  const auto report =
      store::repair_store(fs_, kStorePath, std::nullopt, nullptr, store::Removed::saved_too);
  EXPECT_EQ(fs_.changes(), changes);
  EXPECT_TRUE(report.destination.empty());
  EXPECT_EQ(report.saved.size(), sample_.contents.size());
}

TEST_F(Repair, ACorruptedRecordCostsOnlyTheVersionsThatUseIt) {
  // The root of the newest run: the first snapshot is older.
  const auto old = store::StoreDirectory::open(fs_, kStorePath);
  const auto root = read_snapshot(*old, "snap-5").version.runs.front().root;
  const auto pack = old->packs().path_of(root.pack);
  ASSERT_TRUE(fs_.flip(pack, root.offset_bytes + format::kRecordHeaderBytes, std::byte{4}));
  const auto report = run();
  expect_saved(report, "snap-1");
  for (const auto& s : report.saved) {
    if (s.exact) expect_saved(report, s.name);
  }
  EXPECT_NE(reason(report, "snapshot 'snap-5'").find(pack), std::string::npos);
  for (const auto& l : report.lost) EXPECT_NE(l.reason.find(pack), std::string::npos) << l.reason;
}

TEST_F(Repair, EachPackMissingInTurn) {
  for (const auto& pack : packs()) {
    const Bytes bytes = fs_.read_file(pack);
    fs_.erase(pack);
    const auto report = run();
    EXPECT_GT(report.saved.size() + report.lost.size(), 0u);
    for (const auto& s : report.saved) {
      if (s.exact) expect_saved(report, s.name);
    }
    for (const auto& [name, content] : sample_.contents) {
      const bool named = !reason(report, "snapshot '" + name + "'").empty() ||
                         !reason(report, "branch '" + name + "'").empty();
      const auto* saved = find(report, name);
      EXPECT_TRUE(named || (saved != nullptr && saved->exact))
          << name << " is neither saved nor named";
    }
    fs_.write_file(pack, bytes);
    fs_.erase(kNewPath);
  }
}

TEST_F(Repair, ACorruptedJournalFallsBackToTheNewestCopyInThePacks) {
  const auto old = store::StoreDirectory::open(fs_, kStorePath);
  const auto head = old->read_branch("main").journal;
  for (std::uint64_t at = format::kJournalHeaderBytes;
       fs_.flip(journal("main"), at, std::byte{0xff});)
    at += 16;
  const auto report = run();
  EXPECT_NE(reason(report, "branch 'main'").find(journal("main")), std::string::npos);
  const auto* saved = find(report, "main");
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->is_branch);
  EXPECT_FALSE(saved->exact);
  EXPECT_GE(saved->sequence, read_snapshot(*old, "snap-5").version.sequence);
  EXPECT_LE(saved->sequence, head.head_sequence());
  EXPECT_NE(saved->origin.find("copy of version"), std::string::npos) << saved->origin;
  for (const char* name : {"snap-1", "snap-5", "idle", "open"}) expect_saved(report, name);
}

// The commits before the corruption are saved, and the report lists the dropped ones.
TEST_F(Repair, AJournalWithACorruptedLastCommitKeepsTheOthers) {
  const auto old = store::StoreDirectory::open(fs_, kStorePath);
  const auto state = old->read_branch("open").journal;
  ASSERT_GE(state.commits.size(), 2u);
  ASSERT_TRUE(fs_.flip(journal("open"), state.tail_bytes - 16, std::byte{1}));
  const auto report = run();
  EXPECT_NE(reason(report, "branch 'open'").find("is corrupted, newer ones follow"),
            std::string::npos);
  const auto* saved = find(report, "open");
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->is_branch);
  EXPECT_FALSE(saved->exact);
  EXPECT_EQ(saved->sequence, state.head_sequence() - 1);
  EXPECT_NE(saved->origin.find("dropped commits: at least 1"), std::string::npos) << saved->origin;
}

// The journal does not record how many commits were cut off.
TEST_F(Repair, ATruncatedJournalKeepsItsFirstCommits) {
  const auto old = store::StoreDirectory::open(fs_, kStorePath);
  const auto state = old->read_branch("open").journal;
  const std::string path = journal("open");
  auto bytes = fs_.read_file(path);
  bytes.resize(static_cast<std::size_t>(state.tail_bytes) - 16);
  fs_.erase(path);
  fs_.write_file(path, bytes);
  const auto report = run();
  EXPECT_NE(reason(report, "branch 'open'").find("truncated"), std::string::npos);
  const auto* saved = find(report, "open");
  ASSERT_NE(saved, nullptr);
  EXPECT_EQ(saved->sequence, state.head_sequence() - 1);
  EXPECT_NE(saved->origin.find("an unknown number"), std::string::npos) << saved->origin;
}

TEST_F(Repair, ARandomFileAsJournalFallsBackByName) {
  fs_.erase(journal("main"));
  fs_.write_file(journal("main"), Bytes(10, std::byte{1}));
  const auto report = run();
  const auto* saved = find(report, "main");
  ASSERT_NE(saved, nullptr);
  EXPECT_FALSE(saved->exact);
  expect_saved(report, "snap-5");
}

TEST_F(Repair, LostRefsAreFoundInThePacks) {
  const auto old = store::StoreDirectory::open(fs_, kStorePath);
  const auto lost = read_snapshot(*old, "snap-3").version;
  fs_.erase(ref("snap-3"));
  ASSERT_TRUE(fs_.flip(ref("snap-2"), 40, std::byte{1}));
  const auto report = run(store::Removed::saved_too);
  const auto* saved = find(report, fmt::format("recovered-{:x}-{}", lost.branch_id, lost.sequence));
  ASSERT_NE(saved, nullptr);
  EXPECT_NE(saved->origin.find("'snap-3'"), std::string::npos) << saved->origin;
  EXPECT_EQ(read_version(*fresh_, saved->name), sample_.contents.at("snap-3"));
  EXPECT_NE(reason(report, "snapshot 'snap-2'").find("checksum"), std::string::npos);
  const auto again = std::count_if(report.saved.begin(), report.saved.end(),
                                   [](const auto& s) { return s.name.starts_with("recovered-"); });
  EXPECT_EQ(again, 2);
}

// A version without a name counts as removed; a version with an unreadable ref does not.
TEST_F(Repair, ARemovedVersionIsRestoredOnlyOnRequest) {
  store::StoreDirectory::open(fs_, kStorePath)->remove_snapshot("snap-3");
  auto report = run();
  EXPECT_TRUE(report.lost.empty());
  EXPECT_EQ(report.saved.size(), sample_.contents.size() - 1);
  fs_.erase(kNewPath);
  EXPECT_EQ(run(store::Removed::saved_too).saved.size(), sample_.contents.size());
  fs_.erase(kNewPath);
  ASSERT_TRUE(fs_.flip(ref("snap-2"), 40, std::byte{1}));
  report = run();
  EXPECT_EQ(report.lost.size(), 1u);
  EXPECT_EQ(report.saved.size(), sample_.contents.size() - 1);
}

// Removes a name between its listing and its reading.
class Removing final : public test::ForwardingFs {
 public:
  Removing(test::MemoryFs& below, std::string listed, std::string removed)
      : ForwardingFs(below),
        below_(below),
        listed_(std::move(listed)),
        removed_(std::move(removed)) {}
  std::vector<base::DirEntry> list(const std::string& path) const override {
    auto entries = below_.list(path);
    if (path == listed_) below_.erase(removed_);
    return entries;
  }

 private:
  test::MemoryFs& below_;
  const std::string listed_, removed_;
};

TEST_F(Repair, AVersionRemovedMeanwhileIsNotReportedAsLost) {
  const std::string store = kStorePath;
  for (const auto& [listed, removed] : {std::pair{store + "/snapshots", ref("snap-3")},
                                        std::pair{store + "/branches", store + "/branches/idle"},
                                        std::pair{store + "/branches", journal("open")}}) {
    Removing fs(fs_, listed, removed);
    const auto report = store::repair_store(fs, kStorePath, std::nullopt, nullptr);
    EXPECT_FALSE(fs_.exists(removed));
    EXPECT_TRUE(report.lost.empty()) << removed << ": " << report.lost[0].reason;
  }
}

TEST_F(Repair, AStoreWithoutNamesGetsItsNewestVersionBack) {
  for (const char* name : {"/branches", "/snapshots"}) {
    fs_.erase(kStorePath + std::string(name));
    fs_.make_directory(kStorePath + std::string(name));
  }
  const auto report = run(store::Removed::saved_too);
  EXPECT_GE(report.saved.size(), 2u);
  const auto newest =
      std::max_element(report.saved.begin(), report.saved.end(),
                       [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  EXPECT_EQ(newest->region_bytes, sample_.contents.at("main").size());
}

TEST_F(Repair, RefusesToWriteOverAnything) {
  EXPECT_THROW(store::repair_store(fs_, kStorePath, kStorePath, nullptr), Error);
  EXPECT_THROW(store::repair_store(fs_, kStorePath, std::string(kStorePath) + "/x", nullptr),
               Error);
  fs_.make_directory(kNewPath);
  EXPECT_THROW(store::repair_store(fs_, kStorePath, kNewPath, nullptr), Error);
}

TEST_F(Repair, RandomDamageNeverGivesWrongBytes) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 12; ++round) {
    std::vector<std::tuple<std::string, std::uint64_t, std::byte>> flips;
    const auto files = fs_.files();
    for (int i = 0; i < 3; ++i) {
      const auto& file = files[random() % files.size()];
      if (file.ends_with("vellum.store")) continue;
      flips.emplace_back(file, random() % fs_.read_file(file).size(),
                         static_cast<std::byte>(1u << random() % 8));
    }
    for (const auto& [file, at, mask] : flips) fs_.flip(file, at, mask);
    const auto report = run();
    for (const auto& s : report.saved) {
      if (s.exact) expect_saved(report, s.name);
    }
    for (const auto& [file, at, mask] : flips) fs_.flip(file, at, mask);
    fs_.erase(kNewPath);
  }
}

}  // namespace
}  // namespace vellum::corruption
