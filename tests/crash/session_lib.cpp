#include "crash/session_lib.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "region/api/import.hpp"
#include "region/api/store_impl.hpp"
#include "store/gc/gc.hpp"
#include "store/gc/tier/tier_policy.hpp"

namespace vellum::crash {

using format::kPageBytes;
using store::BranchWriter;
using store::StoreDirectory;

Session::Session(base::Fs& fs, std::string path, StoreState state, Note note)
    : fs_(fs), path_(std::move(path)), note_(std::move(note)) {
  states_.push_back(std::move(state));
  if (states_.back().exists) core_ = StoreDirectory::open(fs_, path_);
}

void Session::allow(std::size_t low) {
  low_ = low;
  if (note_) note_(low, states_.size() - 1);
}

void Session::step(std::vector<StoreState> next, const std::function<void()>& body) {
  if (next.empty()) return body();
  const std::size_t low = states_.size() - 1;
  std::move(next.begin(), next.end(), std::back_inserter(states_));
  allow(low);
  body();
  allow(states_.size() - 1);
}

std::shared_ptr<StoreDirectory> create_store_on(base::Fs& fs, const std::string& path,
                                                const format::Superblock& options) {
  return options.encrypted ? StoreDirectory::create_encrypted(fs, path, options, key_source())
                           : StoreDirectory::create(fs, path, options);
}

void Session::create_store(const format::Superblock& options) {
  StoreState next = state();
  next.exists = true;
  step({next}, [&] { core_ = create_store_on(fs_, path_, options); });
}

void Session::create_branch(const std::string& name, std::size_t pages) {
  StoreState next = state();
  const std::vector<std::byte> zeros(pages * kPageBytes);
  next.branches[name] = state_of(0, zeros);
  step({next}, [&] { core_->create_branch(name, zeros.size(), 0); });
}

// At a snapshot, or at the head of a freshly checkpointed branch.
void Session::create_branch_at(const std::string& name, const std::string& version) {
  StoreState next = state();
  next.branches[name] = state().snapshots.at(version);
  step({next},
       [&] { core_->create_branch_at(name, read_snapshot(*core_, version).version, version); });
}

void Session::import_branch(const std::string& name, const std::vector<std::byte>& content) {
  close_writer(name);
  StoreState next = state();
  VersionState& head = next.branches[name];
  std::vector<std::byte> region = content;
  region.resize(std::max<std::size_t>(head.region_bytes, content.size()));
  head = state_of(head.sequence + 1, region);
  step({next}, [&] {
    std::size_t at = 0;
    store::StreamContent stream(
        [&](void* to, std::size_t capacity_bytes) {
          const std::size_t n = std::min(capacity_bytes, content.size() - at);
          std::memcpy(to, content.data() + at, n);
          at += n;
          return n;
        },
        content.size());
    Store handle = StoreAccess::handle_of(core_);
    api::import_content(handle, name, stream, "", nullptr);
  });
}

void Session::remove_branch(const std::string& name) {
  close_writer(name);
  StoreState next = state();
  next.branches.erase(name);
  step({next}, [&] { core_->remove_branch(name); });
}

void Session::remove_branch_as_found(const std::string& name) {
  StoreState next = state();
  next.branches.erase(name);
  states_.push_back(std::move(next));
  allow(low_);
  core_->remove_branch(name);
  allow(states_.size() - 1);
}

void Session::remove_snapshot(const std::string& name) {
  StoreState next = state();
  next.snapshots.erase(name);
  step({next}, [&] { core_->remove_snapshot(name); });
}

// The next sync of the directory decides whether it is durable: at the latest, the next step allows
// only the new state.
void Session::remove_snapshot_unsynced(const std::string& name) {
  StoreState next = state();
  next.snapshots.erase(name);
  const std::size_t low = states_.size() - 1;
  states_.push_back(std::move(next));
  allow(low);
  fs_.unlink(core_->snapshots_directory() + "/" + name + ".ref");
}

void Session::open_writer(const std::string& branch) {
  if (has_writer(branch)) return;
  Writer w;
  if (keeps_space_ && writers_.empty()) {
    store::WriterPolicy policy;
    policy.gc = {4096, 4096, 4096, true};
    core_->set_writer_policy(policy);
  }
  w.writer = BranchWriter::open(*core_, branch);
  w.pages = Pages(read_pages(*w.writer->source_at_open()));
  if (keeps_space_) {
    w.space = std::make_unique<region::BackgroundGc>(core_, w.writer->head());
  }
  writers_.emplace(branch, std::move(w));
}

void Session::close_writer(const std::string& branch) { writers_.erase(branch); }

void Session::close_all() { writers_.clear(); }

Pages& Session::pages(const std::string& branch) {
  open_writer(branch);
  return writers_.at(branch).pages;
}

StoreState Session::with_commit(const std::string& branch) const {
  StoreState next = state();
  VersionState& head = next.branches[branch];
  head = state_of(head.sequence + 1, writers_.at(branch).pages.bytes());
  return next;
}

void Session::finish_commit(const std::string& branch, bool checkpoint) {
  Writer& w = writers_.at(branch);
  failed_commit_ = branch;
  const format::Superblock& options = core_->superblock();
  try {
    auto commit = w.writer->begin(w.pages.touched());
    auto writes =
        w.pages.take(options.block_bytes / kPageBytes, options.compression, commit->dedup());
    const std::size_t found = writes.found.size();
    commit->add(std::move(writes));
    const auto cost = commit->finish({1, w.pages.bytes().size(), 0, ""}, checkpoint);
    commit.reset();
    if (w.space != nullptr) w.space->note_written(cost.bytes_written);
    pages_found_ += found;
  } catch (...) {
    w.pages.untake();
    throw;
  }
  failed_commit_.clear();
}

void Session::commit(const std::string& branch, bool checkpoint) {
  open_writer(branch);
  step({with_commit(branch)}, [&] { finish_commit(branch, checkpoint); });
}

void Session::snapshot(const std::string& branch, const std::string& name) {
  open_writer(branch);
  const StoreState committed = with_commit(branch);
  StoreState named = committed;
  named.snapshots[name] = committed.branches.at(branch);
  step({committed, named}, [&] {
    finish_commit(branch, true);
    writers_.at(branch).writer->publish_snapshot(name, "");
  });
}

// Freed space stays undecided until a sync, which is optional. This test syncs all packs
// afterwards: otherwise some holes would be missing in every later crash.
void Session::collect_garbage(bool by_another, int recompress_level) {
  const auto core = by_another ? StoreDirectory::open(fs_, path_) : core_;
  store::collect_garbage(*core, false, nullptr, recompress_level);
  for (const std::uint64_t pack : core->packs().list()) {
    fs_.open(core->packs().path_of(pack), base::OpenMode::read_write)->sync_data();
  }
}

void Session::add_tiers() {
  const auto core = StoreDirectory::open(fs_, path_);
  store::add_tier(*core, format::TierKind::archive, path_ + "-archive", 0);
  store::add_tier(*core, format::TierKind::cache, path_ + "-cache", 0);
}

void Session::move_packs(bool to_archive) {
  const auto core = StoreDirectory::open(fs_, path_);
  store::move_packs(*core, {to_archive, {}, 0}, nullptr);
  store::apply_tiers(*core, false, nullptr);
}

void Session::accept_failure() {
  const StoreState found = read_state(fs_, path_);
  const auto allowed = states_.begin() + static_cast<std::ptrdiff_t>(low_);
  if (std::find(allowed, states_.end(), found) == states_.end()) {
    std::string text = "found " + found.text();
    for (auto at = allowed; at != states_.end(); ++at) text += "\n  allowed " + at->text();
    throw std::logic_error(text);
  }
  states_.push_back(found);
  allow(low_);  // the visible state may not be durable yet
}

void Session::reopen() {
  writers_.clear();
  core_.reset();
  accept_failure();
  if (state().exists) core_ = StoreDirectory::open(fs_, path_);
}

SimSession::SimSession(Disk disk, StoreState state)
    : fs(std::move(disk)),
      session(fs, kStorePath, std::move(state),
              [this](std::size_t low, std::size_t high) { fs.allow_states(low, high); }) {
  fs.start_log();
}

}  // namespace vellum::crash
