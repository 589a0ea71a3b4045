#include "crash/repeats_lib.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace vellum::crash {

namespace {

constexpr std::uint64_t kPagesPerContent = 1000;
constexpr std::uint64_t kMovedWords = 125;
constexpr std::size_t kMaxBranches = 3, kMaxSnapshots = 3;  // every image is read in full

class Repeats {
 public:
  Repeats(Session& session, std::uint64_t seed) : session_(session), random_(seed) {}

  void run(std::size_t steps) {
    begin();
    for (std::size_t i = 0; i < steps; ++i) step();
    session_.close_all();
  }

 private:
  // Content that another branch has, that an earlier version had, and that only a removed version
  // had.
  void begin() {
    session_.create_branch("main", kRepeatedPages);
    session_.create_branch("side", kRepeatedPages);
    commit("main", 0);
    commit("main", 1);  // from here on a power cut cannot revert the commit before
    must_find("side", 0);
    session_.snapshot("main", fresh("s"));
    must_find("main", 0);
    session_.close_all();
    must_find("side", 1);
    commit_moved("main");
    commit_moved("main");
  }

  void step() {
    const std::string name = any(session_.state().branches);
    const std::size_t what = below(100);
    if (what < 34) return commit(name, below(contents_));
    if (what < 42) return commit(name, contents_++);
    if (what < 54) return commit_mixed(name);
    if (what < 60) return commit_small(name);
    if (what < 64) return commit_moved(name);
    if (what < 68) return session_.close_writer(name);
    if (what < 84) return session_.collect_garbage(below(2) == 0, below(2) == 0 ? 3 : 0);
    change_names(name);
  }

  void change_names(const std::string& name) {
    const auto& [exists, branches, snapshots] = session_.state();
    if (snapshots.size() < kMaxSnapshots && below(2) == 0) {
      return session_.snapshot(name, fresh("s"));
    }
    if (snapshots.empty()) return;
    if (branches.size() < kMaxBranches && below(2) == 0) {
      return session_.create_branch_at(fresh("b"), any(snapshots));
    }
    if (branches.size() > 2 && below(2) == 0) return session_.remove_branch(name);
    session_.remove_snapshot(any(snapshots));
  }

  void commit(const std::string& name, std::uint64_t content) {
    put(session_.pages(name), content);
    session_.commit(name, below(2) == 0);
  }
  // The first part of one content, the second part of another, and a few new pages.
  void commit_mixed(const std::string& name) {
    Pages& pages = session_.pages(name);
    const std::array<std::uint64_t, 2> contents{below(contents_), below(contents_)};
    const std::size_t border = below(pages.count()), shift = below(8);
    for (std::size_t p = 0; p < pages.count(); ++p) {
      pages.fill_numbered(p, contents[p < border ? 0 : 1] * kPagesPerContent + p + shift);
    }
    for (int i = 0; i < 4; ++i) pages.fill_numbered(below(pages.count()), random_());
    session_.commit(name, false);
  }
  // A text, shifted a little each time: blocks are based on pages of the previous commit.
  void commit_moved(const std::string& name) {
    Pages& pages = session_.pages(name);
    moved_words_ += kMovedWords;
    for (std::size_t p = 0; p < pages.count(); ++p) {
      pages.fill_moved(p, moved_words_ + p * (format::kPageBytes / 8));
    }
    session_.commit(name, below(2) == 0);
  }
  void commit_small(const std::string& name) {
    session_.pages(name).store64(below(kRepeatedPages), 8 * below(512), random_());
    session_.commit(name, false);
  }

  void must_find(const std::string& name, std::uint64_t content) {
    const std::uint64_t before = session_.pages_found();
    commit(name, content);
    const std::uint64_t found = session_.pages_found() - before;
    if (found >= kRepeatedPages / 2) return;
    throw std::logic_error(fmt::format("a commit on {} has found {} pages only", name, found));
  }

  std::string any(const std::map<std::string, VersionState>& versions) {
    auto at = versions.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(versions.size())));
    return at->first;
  }
  std::string fresh(const char* prefix) { return fmt::format("{}{}", prefix, ++names_); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  Session& session_;
  std::mt19937_64 random_;
  std::size_t contents_ = 2;
  std::uint64_t moved_words_ = 0;
  int names_ = 0;
};

}  // namespace

void put(Pages& pages, std::uint64_t content) {
  for (std::size_t p = 0; p < pages.count(); ++p) {
    pages.fill_numbered(p, content * kPagesPerContent + p);
  }
}

void repeat_after_failure(Session& session, bool without) {
  const std::string failed = session.failed_commit();
  session.reopen();
  if (without && session.state().branches.count(failed) != 0) {
    session.remove_branch_as_found(failed);
  }
  if (session.state().branches.empty()) session.create_branch("again", kRepeatedPages);
  const std::string name = session.state().branches.begin()->first;
  for (const std::uint64_t content : {100u, 101u, 0u, 1u}) {
    put(session.pages(name), content);
    session.commit(name, true);
    session.close_writer(name);
  }
}

void repeat_a_version(Pages& pages, store::StoreDirectory& store, const StoreState& state,
                      std::uint64_t choice) {
  if (pages.count() < kRepeatedPages) return;
  std::vector<std::string> names;
  for (const auto& [name, version] : state.branches) names.push_back(name);
  for (const auto& [name, version] : state.snapshots) names.push_back(name);
  const auto bytes = read_pages(*open_version(store, names[choice % names.size()]));
  const std::size_t count = std::min(pages.count(), bytes.size() / format::kPageBytes);
  for (std::size_t p = 0; p < count; ++p) pages.copy(p, bytes.data() + p * format::kPageBytes);
}

void run_repeats(Session& session, std::uint64_t seed, std::size_t steps) {
  Repeats(session, seed).run(steps);
}

}  // namespace vellum::crash
