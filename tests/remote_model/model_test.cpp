// A model of stores that exchange versions: random steps of several full and lazy clones at one
// remote, two of them also as a group with a remote of its own, and shadow copies of the expected
// content. Actors are killed, find a full disk or a server that fails, and are stopped while others
// work.
//
// VELLUM_MODEL_STEPS, VELLUM_MODEL_SEED and VELLUM_MODEL_SECONDS are for long runs (tools/soak.sh
// --stores). The remote is a directory, or at the server of VELLUM_TEST_S3_URL.
#include <gtest/gtest.h>

#include <cstdlib>
#include <list>

#include "remote/replicator.hpp"
#include "remote_model/actor.hpp"
#include "remote_model/group_steps.hpp"
#include "remote_model/stations.hpp"
#include "store/branch/changed_branch.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/tier/tier_policy.hpp"
#include "support/s3_url.hpp"

namespace vellum::remote::meeting {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kModelBlocks = 6;
constexpr std::size_t kMaxNames = 7;     // of snapshots in a store
constexpr std::size_t kMaxStations = 4;  // the origin included

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct StationContent {
  std::string path;
  bool lazy = false;
  bool has_hold = false;  // of its own at the remote; a copy has none before it pulls
  bool has_tiers = false;
  Contents snapshots, own, pulled;  // `own`, `pulled`: branches
};
using Place = std::shared_ptr<StationContent>;

// An open version of another process.
struct Reader {
  std::shared_ptr<StoreDirectory> store;
  std::shared_ptr<store::PageSource> source;
  Bytes bytes;
};

struct Counts {
  std::uint64_t steps = 0, kills = 0, full_disks = 0, server_failures = 0, pauses = 0;
  std::uint64_t refused = 0;  // pulls beside readers, and steps beside a stopped process
  std::uint64_t stations = 1, of_groups = 0;    // `of_groups`: steps
  std::uint64_t replications = 0, commits = 0;  // `commits`: that they have sent
  void add(const Counts& other) {
    steps += other.steps;
    kills += other.kills;
    full_disks += other.full_disks;
    server_failures += other.server_failures;
    pauses += other.pauses;
    refused += other.refused;
    stations += other.stations;
    of_groups += other.of_groups;
    replications += other.replications;
    commits += other.commits;
  }
};

std::string archive_of(const std::string& path) { return path + "-archive"; }
std::string cache_of(const std::string& path) { return path + "-cache"; }

class StoresModel {
 public:
  explicit StoresModel(std::uint64_t seed) : seed_(seed), texts_(seed) {
    format::Superblock made = options(std::uint64_t{64u << 10} << (2 * pick(4)));
    if (pick(2) == 0) made.compression = base::Compression::lz4;
    if (pick(3) == 0) made.sha256 = true;
    if (pick(3) == 0) made.block_bytes = 16u << 10;
    if (const std::string url = vellum::test::new_s3_url(); !url.empty()) {
      server_ = open_object_store(base::posix_fs(), url);
    }
    places_.push_back(std::make_shared<StationContent>());
    places_.front()->path = "/a";
    at(*places_.front()).create(made);
  }

  // False: something was lost.
  bool run(std::uint64_t steps) {
    try {
      while (counts_.steps < steps && !testing::Test::HasFailure()) {
        step();
        while (!owed_.empty()) {
          const auto owed = std::move(owed_.front());
          owed_.pop_front();
          owed();
        }
        if (counts_.steps - checked_at_ >= 5) expect_all();
      }
      expect_all();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    if (!testing::Test::HasFailure()) return true;
    std::printf("  seed %llu, step %llu: %s\n", static_cast<unsigned long long>(seed_),
                static_cast<unsigned long long>(counts_.steps), last_step_.c_str());
    return false;
  }
  const Counts& counts() const { return counts_; }

 private:
  using Body = std::function<void()>;

  std::size_t pick(std::size_t n) { return texts_.random()() % n; }
  const std::string& pick_name(const Contents& from) {
    return std::next(from.begin(), static_cast<std::ptrdiff_t>(pick(from.size())))->first;
  }
  // Not those that an unfinished step changes.
  Names pick_names(const Contents& from) {
    Names out;
    for (const auto& [name, bytes] : from) {
      if (pick(3) == 0 && !is_changing(name)) out.push_back(name);
    }
    return out;
  }
  bool is_changing(const std::string& name) const {
    return hidden_.contains(name) || hidden_there_.contains(name);
  }
  bool is_stopped(const StationContent& place) const {
    return std::ranges::count(stopped_, place.path) != 0;
  }
  bool is_in_group(const StationContent& place) const {
    return group_.has_value() && group_->group().has_store(place.path);
  }
  // The clock is set back and forth.
  std::int64_t now() { return static_cast<std::int64_t>(texts_.random()() >> 16); }

  std::shared_ptr<ObjectStore> open_objects(base::Fs& fs) const {
    return server_ != nullptr ? server_ : objects_on(fs);
  }
  base::Fs& fs() { return actor_ != nullptr ? static_cast<base::Fs&>(actor_->fs) : disk_; }
  std::shared_ptr<ObjectStore> objects() {
    return actor_ != nullptr ? actor_->objects : open_objects(disk_);
  }
  Station at(const StationContent& place) { return {fs(), place.path, objects()}; }

  // Whole and half blocks of the store's content, new blocks, and small changes.
  Bytes make_content(const StationContent& place, const Bytes& now) {
    Bytes out;
    for (std::size_t i = 0; i < kModelBlocks; ++i) {
      const Bytes& from = place.snapshots.empty() || pick(2) == 0
                              ? now
                              : place.snapshots.at(pick_name(place.snapshots));
      const auto half = [&](std::size_t h) {
        const std::size_t start = i * kBlockBytes + h * kBlockBytes / 2;
        return part(from, start, start + kBlockBytes / 2);
      };
      const std::size_t kind = pick(6);
      if (kind < 2) out = out + half(0) + half(1);
      if (kind == 2) out = out + half(0) + texts_.of(kBlockBytes / 2);
      if (kind == 3) out = out + texts_.of(kBlockBytes / 2) + half(1);
      if (kind > 3) out = out + texts_.of(kBlockBytes);
    }
    for (std::size_t n = pick(12); n > 0; --n) {
      const std::uint64_t value = texts_.random()();
      std::memcpy(out.data() + pick(out.size() / 8) * 8, &value, sizeof value);
    }
    return out;
  }

  Fate pick_fate() {
    Fate fate;
    if (depth_ == 0 && pick(5) == 0) fate.pause_at = 1 + pick(pick(2) == 0 ? 40 : 400);
    fate.after = pick(2) == 0;
    const std::size_t kind = pick(24);
    fate.end_at = 1 + pick(pick(2) == 0 ? 12 : 100);
    if (kind < 6) fate.end = Fate::End::killed;
    if (kind == 6) fate.end = Fate::End::disk_full;
    if (kind < 7) return fate;
    fate.end_at = 1 + pick(12);
    if (kind == 7) fate.end = Fate::End::server_gone;
    if (kind == 8) fate.end = Fate::End::server_fails_once;
    if (kind == 9) fate.end = Fate::End::bytes_damaged;
    return fate;
  }

  void count(const Fate& fate) {
    if (fate.end == Fate::End::killed) {
      ++counts_.kills;
    } else if (fate.end == Fate::End::disk_full) {
      ++counts_.full_disks;
    } else {
      ++counts_.server_failures;
    }
  }

  // Runs the step as a process that may fail. Then it is repeated by another one.
  // `place`: the store whose process it is; null: none.
  void run(const StationContent* place, const Body& step) {
    ++counts_.steps;
    const Fate fate = pick_fate();
    if (fate.end == Fate::End::none && fate.pause_at == 0) return step();
    Actor* const before = actor_;
    Actor actor(
        disk_, [this](base::Fs& fs) { return open_objects(fs); }, fate,
        [&] {
          actor_ = before;
          work_beside(place);
          actor_ = &actor;
        });
    actor_ = &actor;
    bool failed = false;
    try {
      step();
    } catch (const sim::PowerCut&) {
      failed = true;
    } catch (const Error& e) {
      actor_ = before;
      if (!actor.fate.has_struck()) throw;
      failed = true;
    }
    actor_ = before;
    if (!failed) return;
    count(fate);
    if (depth_ == 0) expect_all();
    step();
  }

  // What others do while a process of `place` is stopped.
  void work_beside(const StationContent* place) {
    ++depth_;
    ++counts_.pauses;
    const auto before = stopped_;
    if (place != nullptr) stopped_ = {place->path};
    try {
      for (std::size_t n = 1 + pick(3); n > 0; --n) step();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    stopped_ = before;
    --depth_;
  }

  // A step in a store whose other process is stopped may find it busy. It is then done later.
  // `finish` changes the expected content.
  void perform(const Place& place, const Body& body, const Body& finish) {
    try {
      run(place.get(), body);
    } catch (const Error& e) {
      if (e.code() != Errc::busy || !is_stopped(*place)) throw;
      ++counts_.refused;
      owed_.push_back([this, place, body, finish] {
        run(place.get(), body);
        finish();
      });
      return;
    }
    finish();
  }

  // Names that others have removed meanwhile are left out. Open readers hinder no pull.
  void run_beside_removals(const Place& place, const Body& step) {
    const std::uint64_t forgotten = forgotten_;
    for (;;) {
      try {
        return run(place.get(), step);
      } catch (const Error& e) {
        if (forgotten == forgotten_ || e.code() != Errc::not_found) throw;
      }
      ++counts_.refused;
    }
  }

  void open_reader(const Place& place) {
    if (place->snapshots.empty()) return;
    const std::string name = pick_name(place->snapshots);
    if (is_changing(name)) return;
    const auto store = Station(disk_, place->path, open_objects(disk_)).open();
    try {
      store::NamesShared names(*store);
      auto source = store::test::open_version(*store, name);
      source->keep(store::VersionPin(*store, std::move(names),
                                     store::resolve_version(*store, name).version));
      readers_.push_back({store, source, place->snapshots.at(name)});
    } catch (const Error& e) {
      if (e.code() != Errc::busy || !is_stopped(*place)) throw;
      ++counts_.refused;
    }
  }

  // A branch must have one writer: the copy gets none of the original's branches.
  void copy(const Place& place) {
    if (place->has_tiers || !has_room()) return;
    const auto other = std::make_shared<StationContent>(*place);
    other->path = new_path();
    other->has_hold = false;
    copy_directory(disk_, place->path, other->path);
    for (const auto& [branch, bytes] : place->own) at(*other).open()->remove_branch(branch);
    other->own.clear();
    const auto store = at(*other).open();
    if (store::has_branch(*store, kGroupBranch)) store->remove_branch(kGroupBranch);
    add(other);
  }

  std::string new_path() { return "/c" + std::to_string(++names_); }
  bool has_room() const { return depth_ == 0 || places_.size() < kMaxStations; }
  void add(const Place& place) {
    if (places_.size() == kMaxStations) {
      places_.erase(std::find_if(places_.begin() + 1, places_.end(),
                                 [&](const Place& one) { return !is_in_group(*one); }));
    }
    places_.push_back(place);
    ++counts_.stations;
  }

  void import(const Place& place) {
    std::string branch;
    if (!place->own.empty()) branch = pick_name(place->own);
    if (place->own.empty() || (pick(6) == 0 && place->own.size() < 3 && depth_ == 0)) {
      branch = "b" + std::to_string(++names_);
    }
    if (is_changing(branch)) return;
    const bool is_new = !place->own.contains(branch);
    const std::string from =
        is_new && !place->snapshots.empty() ? pick_name(place->snapshots) : std::string();
    if (is_changing(from)) return;
    const Bytes start = !is_new         ? place->own[branch]
                        : !from.empty() ? place->snapshots[from]
                                        : texts_.of(kModelBlocks * kBlockBytes);
    const Bytes bytes = make_content(*place, start);
    const std::string snapshot =
        place->snapshots.size() < kMaxNames && pick(4) != 0 ? "s" + std::to_string(++names_) : "";
    hidden_.insert(branch);
    std::string file;  // that is backed up
    if (pick(3) == 0) {
      file = "/file" + std::to_string(++names_);
      disk_.open(file, base::OpenMode::create_new)->pwrite(bytes, 0);
    }
    const auto body = [=, this] {
      Station station = at(*place);
      const auto store = station.open();
      if (is_new && !from.empty() && !store::has_branch(*store, branch)) {
        station.branch(branch, from);
      }
      const bool is_named = !snapshot.empty() && store::has_snapshot(*store, snapshot);
      if (!file.empty()) return station.back_up(file, branch, is_named ? "" : snapshot);
      station.import(branch, bytes, is_named ? "" : snapshot, now());
    };
    perform(place, body, [=, this] {
      hidden_.erase(branch);
      if (!file.empty()) disk_.unlink(file);
      place->own[branch] = bytes;
      if (!snapshot.empty()) place->snapshots[snapshot] = bytes;
    });
  }

  void remove(const Place& place) {
    for (const std::string& name : pick_names(place->snapshots)) {
      place->snapshots.erase(name);
      run(place.get(), [&] {
        if (store::has_snapshot(*at(*place).open(), name)) at(*place).remove({name});
      });
    }
  }

  // Refused beside a reader of a version that it cannot find.
  void gc(const Place& place, int level) {
    const auto patience = std::chrono::milliseconds(is_stopped(*place) ? 20 : 5000);
    const auto collect = [=, this] { at(*place).gc(level, patience); };
    const auto beside_readers = [=, this] {
      try {
        collect();
      } catch (const Error& e) {
        if (e.code() != Errc::busy || readers_.empty()) throw;
        ++counts_.refused;
        readers_.clear();
        collect();
      }
    };
    perform(place, beside_readers, [] {});
  }

  void add_tier(store::StoreDirectory& store, format::TierKind kind, const std::string& path) {
    const auto tiers = store::list_tiers(store);
    if (std::ranges::none_of(tiers, [&](const auto& tier) { return tier.directory == path; })) {
      store::add_tier(store, kind, path, 0);
    }
  }
  // Packs move to the archive, or home.
  void archive(const Place& place) {
    if (place->lazy) return;
    TierMove move;
    move.to_archive = pick(3) != 0;
    if (pick(2) == 0) move.home_bytes = pick(1u << 20);
    place->has_tiers = true;
    run(place.get(), [&] {
      const auto store = at(*place).open();
      add_tier(*store, format::TierKind::archive, archive_of(place->path));
      store::move_packs(*store, move, nullptr);
    });
  }
  // A cache gets copies of packs, or loses them.
  void cache(const Place& place) {
    if (place->lazy) return;
    const std::string path = cache_of(place->path);
    if (disk_.exists(path) && pick(3) == 0) return lose_packs(path);
    place->has_tiers = true;
    run(place.get(), [&] {
      const auto store = at(*place).open();
      add_tier(*store, format::TierKind::cache, path);
      store::apply_tiers(*store, false, nullptr);
    });
  }

  void lose_packs(const std::string& directory) {
    std::uint64_t pack = 0;
    for (const auto& entry : disk_.list(directory)) {
      if (store::parse_pack_file_name(entry.name, pack)) disk_.unlink(directory + "/" + entry.name);
    }
  }

  void push(const Place& place) {
    Contents all = place->snapshots;
    all.insert(place->own.begin(), place->own.end());
    const Names names = pick_names(all);
    if (names.empty()) return;
    for (const std::string& name : names) hidden_there_.insert(name);
    perform(
        place, [=, this] { at(*place).push(names); },
        [=, this] {
          for (const std::string& name : names) {
            hidden_there_.erase(name);
            (place->own.contains(name) ? branches_there_ : there_)[name] = all.at(name);
          }
        });
  }

  void pull(const Place& place) {
    Contents wanted;
    for (const std::string& name : pick_names(there_)) wanted[name] = there_[name];
    for (const std::string& name : pick_names(branches_there_)) {
      if (!place->own.contains(name)) wanted[name] = branches_there_[name];
    }
    if (wanted.empty()) return;
    for (const auto& [name, bytes] : wanted) hidden_.insert(name);
    PullReport report;
    run_beside_removals(place, [&] {
      Names names;
      for (const auto& [name, bytes] : wanted) {
        if (is_there(name)) names.push_back(name);
      }
      if (!names.empty()) report = at(*place).pull(names);
    });
    place->has_hold = place->has_hold || (place->lazy && !report.versions.empty());
    Names older;  // than before: the remote was restored
    for (const PulledVersion& one : report.versions) {
      if (one.is_older) older.push_back(one.name);
    }
    EXPECT_TRUE(was_restored_ || older.empty());
    const auto store = Station(disk_, place->path, open_objects(disk_)).open();
    for (const auto& [name, bytes] : wanted) {
      hidden_.erase(name);
      if (std::ranges::count(older, name) != 0) continue;
      if (branches_there_.contains(name)) {
        place->pulled[name] = bytes;
      } else if (is_there(name) || store::has_snapshot(*store, name)) {
        place->snapshots[name] = bytes;
      }
    }
  }
  bool is_there(const std::string& name) const {
    return there_.contains(name) || branches_there_.contains(name);
  }

  void clone() {
    if (!there_.empty() && has_room()) clone_to(new_path(), pick(2) == 0);
  }
  // A store is lost with its tiers, and is made again from the remote.
  void restore(const Place& place) {
    if (depth_ != 0 || there_.empty() || is_in_group(*place)) return;
    lose(place);
    clone_to(place->path, false);
  }
  void lose(const Place& place) {
    readers_.clear();
    std::erase(places_, place);
    for (const std::string& path : {place->path, archive_of(place->path), cache_of(place->path)}) {
      remove_directory(disk_, path);
    }
  }
  void clone_to(const std::string& path, bool lazy) {
    Contents wanted;
    for (const std::string& name : pick_names(there_)) wanted[name] = there_[name];
    if (wanted.empty()) return;
    const auto place = std::make_shared<StationContent>();
    place->path = path;
    place->lazy = lazy;
    bool is_whole = true;
    run_beside_removals(place, [&] {
      is_whole = true;
      Names names;
      for (const auto& [name, bytes] : wanted) {
        names.push_back(name);
        if (!there_.contains(name)) is_whole = false;
      }
      if (is_whole && !at(*place).is_there()) at(*place).clone(names, place->lazy);
    });
    if (!is_whole && !at(*place).is_there()) return;  // others have removed a name
    place->snapshots = wanted;
    place->has_hold = lazy;
    add(place);
  }

  void materialize_packs(const Place& place) {
    if (!place->lazy) return;
    // Names of the remote that the store has already.
    run_beside_removals(place, [&] {
      Names names;
      for (const auto& [name, bytes] : place->snapshots) {
        if (there_.contains(name) && !hidden_there_.contains(name)) names.push_back(name);
      }
      if (!names.empty()) at(*place).pull(names, true);
    });
    place->lazy = has_missing_pieces(disk_, place->path);
  }
  // Once each copy that is lazy has a hold of its own.
  void release(const Place& place) {
    if (place->lazy || !place->has_hold || depth_ != 0) return;
    for (const Place& other : places_) {
      if (other->lazy && !other->has_hold) return;
    }
    readers_.clear();
    run(place.get(), [&] { at(*place).release(); });
    place->has_hold = false;
  }

  void rename(const Place& place) {
    if (place->own.empty()) return;
    const std::string from = pick_name(place->own), to = "b" + std::to_string(++names_);
    if (is_changing(from)) return;
    const Bytes bytes = place->own[from];
    hidden_.insert(from);
    perform(
        place,
        [=, this] {
          const auto store = at(*place).open();
          if (!store::has_branch(*store, to)) return store::rename_branch(*store, from, to);
          if (store::has_branch(*store, from)) store->remove_branch(from);  // of a killed renaming
        },
        [=, this] {
          hidden_.erase(from);
          place->own.erase(from);
          place->own[to] = bytes;
        });
  }

  // The remote is copied, as a backup of a bucket does; later it gets back the content of then.
  // What is not restored: the pieces that lazy clones have got meanwhile.
  void back_up_remote() {
    if (depth_ != 0 || there_.empty()) return;
    backup_ = {there_, branches_there_, {}};
    const auto objects = open_objects(disk_);
    for (const ObjectInfo& object : objects->list("", SIZE_MAX)) {
      backup_->objects[object.key] = objects->get(object.key, 1u << 30);
    }
  }
  void restore_remote() {
    if (depth_ != 0 || !backup_.has_value()) return;
    if (std::ranges::any_of(places_, [](const Place& place) { return place->lazy; })) return;
    ++counts_.steps;
    was_restored_ = true;
    const auto objects = open_objects(disk_);
    for (const ObjectInfo& object : objects->list("", SIZE_MAX)) objects->remove(object.key);
    for (const auto& [key, bytes] : backup_->objects) objects->put(key, bytes);
    there_ = backup_->names;
    branches_there_ = backup_->branches;
    for (const Place& place : places_) place->has_hold = false;
  }

  // A process replicates all versions of the store, whose branches are all its own, with small commits
  // to one of them. Between two of these others work, and the remote may be restored from its backup.
  void replicate(const Place& place) {
    if (place->own.empty()) return import(place);
    Names names;
    for (const Contents* all : {&place->own, &place->snapshots}) {
      for (const auto& [name, bytes] : *all) names.push_back(name);
    }
    if (std::ranges::any_of(names, [&](const auto& name) { return is_changing(name); })) return;
    const std::string branch = pick_name(place->own);
    std::vector<Bytes> contents{place->own[branch]};
    for (std::size_t n = 1 + pick(8); n > 0; --n) contents.push_back(small_change(contents.back()));
    const std::size_t others_at = pick(2 * contents.size());  // perhaps never
    const bool restores = pick(2) == 0, stays_open = pick(2) == 0;
    for (const std::string& name : names) hidden_there_.insert(name);
    hidden_.insert(branch);
    run(place.get(), [&] {
      const auto store = at(*place).open();
      Replicator replicator(*store, kRemoteUrl, {1000ms, false}, objects());
      push_new(replicator);
      Bytes now = read_all(*store, branch);
      auto writer = store::BranchWriter::open(*store, branch);
      for (std::size_t i = 1; i < contents.size(); ++i) {
        if (i == others_at && depth_ == 0) {
          if (restores) restore_beside();
          const auto mine = std::exchange(actor_, nullptr);
          work_beside(place.get());
          actor_ = mine;
        }
        commit_content(*writer, now, contents[i], this->now(), false);
        now = contents[i];
        push_new(replicator);
        ++counts_.commits;
      }
      if (stays_open) return;
      writer.reset();  // a checkpoint
      push_new(replicator);
    });
    ++counts_.replications;
    hidden_.erase(branch);
    for (const std::string& name : names) hidden_there_.erase(name);
    place->own[branch] = contents.back();
    note_replicated(*place, names);
  }
  // Stores of the group have a branch of one name.
  void replicate_one() {
    std::vector<Place> able;
    for (const Place& place : places_) {
      if (place->pulled.empty() && !is_in_group(*place) && !is_stopped(*place)) {
        able.push_back(place);
      }
    }
    if (able.empty()) return depth_ == 0 ? copy(places_.front()) : void();
    replicate(able[pick(able.size())]);
  }
  // A failure of the server passes, or the process ends.
  void push_new(Replicator& replicator) {
    for (int i = 0; i < 3; ++i) {
      if (!replicator.push_new()) continue;
      is_unsettled_ = false;
      return;
    }
    throw Error(Errc::io, replicator.state().failure);
  }
  // Until the next push ends, a kill may leave a head that names what is lost.
  void restore_beside() {
    const std::uint64_t steps = counts_.steps;
    restore_remote();
    is_unsettled_ |= counts_.steps != steps;
  }
  Bytes small_change(Bytes bytes) {
    for (std::size_t n = 1 + pick(3); n > 0; --n) {
      const std::uint64_t value = texts_.random()();
      std::memcpy(bytes.data() + pick(bytes.size() / 8) * 8, &value, sizeof value);
    }
    return bytes;
  }
  // Snapshots that the remote has forgotten are not sent again, nor those that it has lost, if
  // another store had sent them.
  void note_replicated(const StationContent& place, const Names& names) {
    const auto store = at_url(disk_, open_objects(disk_));
    for (const std::string& name : names) {
      if (const auto own = place.own.find(name); own != place.own.end()) {
        branches_there_[name] = own->second;
      } else if (store::has_snapshot(*store, name)) {
        there_[name] = place.snapshots.at(name);
      } else {
        EXPECT_TRUE(was_restored_ || was_forgotten_.contains(name)) << name;
      }
    }
  }

  void forget() {
    const Names names = pick_names(there_);
    if (names.empty() || there_.size() - names.size() < 2) return;
    for (const std::string& name : names) {
      there_.erase(name);
      was_forgotten_.insert(name);
      hidden_there_.insert(name);
      ++forgotten_;
      run(nullptr, [&] {
        if (store::has_snapshot(*at_url(fs(), objects()), name)) forget_there(*objects(), {name});
      });
      hidden_there_.erase(name);
    }
  }

  void gc_remote() {
    if (!there_.empty()) run(nullptr, [&] { gc_there(*objects()); });
  }

  // Two whole stores become a group; a copy of the origin if there is only that one.
  void make_group() {
    Names whole;
    for (const Place& place : places_) {
      if (!place->lazy && !is_stopped(*place)) whole.push_back(place->path);
    }
    if (whole.size() < 2) return copy(places_.front());
    std::shuffle(whole.begin(), whole.end(), texts_.random());
    std::string url = vellum::test::new_s3_url();
    if (url.empty()) {
      disk_.make_directory("/rg");
      url = "file:///rg";
    }
    group_.emplace(Names{whole[0], whole[1]}, url);
  }
  // A step of the group is a process in all of its stores.
  GroupSteps::Run as_group() {
    return [this](const GroupSteps::Step& step) {
      ++counts_.of_groups;
      const auto before = stopped_;
      for (const Place& place : places_) {
        if (is_in_group(*place)) stopped_.push_back(place->path);
      }
      run(nullptr, [&] { step(fs()); });
      stopped_ = before;
    };
  }
  void group_step(std::size_t kind) {
    if (!group_.has_value()) return depth_ == 0 ? make_group() : void();
    if (kind < 2) return gc_of_group_remote();
    if (group_->is_in_a_step()) return;
    for (const Place& place : places_) {
      if (is_in_group(*place) && is_stopped(*place)) return;
    }
    if (kind < 6) return write_group();
    if (kind == 6) return group_->push(as_group());
    if (kind == 7) return remove_of_group();
    if (!group_->has_versions_there()) return;
    const std::string version = pick_or_none(group_->names_there());
    if (kind == 8) return group_->restore(as_group(), version);
    if (kind == 9) return group_->restore_elsewhere(as_group(), disk_, version);
    lose_of_group(version);
  }
  std::string pick_or_none(const Names& names) {
    return names.empty() || pick(3) == 0 ? "" : names[pick(names.size())];
  }
  void write_group() {
    GroupContent content;
    for (std::uint32_t p = 0; p < 2; ++p) {
      const Place place = *std::ranges::find_if(
          places_, [&](const Place& one) { return one->path == group_->group().store(p); });
      const Bytes now = group_->newest(p);
      content.push_back(
          make_content(*place, now.empty() ? texts_.of(kModelBlocks * kBlockBytes) : now));
    }
    const bool is_named = group_->has_room_for_a_name() && pick(3) == 0;
    group_->write(as_group(), content, is_named ? "v" + std::to_string(++names_) : "",
                  pick(2) == 0);
  }
  void remove_of_group() {
    const Names names = group_->names_here();
    if (!names.empty()) group_->remove(as_group(), names[pick(names.size())]);
  }
  // A store of the group is lost, perhaps with the records, and is restored from the group's remote.
  void lose_of_group(const std::string& version) {
    const auto found = std::ranges::find_if(places_, [&](const Place& place) {
      return place != places_.front() && is_in_group(*place);
    });
    if (depth_ != 0 || found == places_.end()) return;
    const Place lost = *found;
    lose(lost);
    const auto place = std::make_shared<StationContent>();
    place->path = lost->path;
    if (pick(3) == 0) remove_directory(disk_, kGroupRecords);
    group_->lose();
    group_->restore(as_group(), version);
    const auto store = StoreDirectory::open(disk_, place->path);
    remove_remote_file(*store, kDefaultRemoteName);  // the partition's
    add_remote_file(*store, kDefaultRemoteName, kRemoteUrl, false);
    add(place);
  }
  void gc_of_group_remote() {
    if (!group_->has_versions_there()) return;
    const auto partition = static_cast<std::uint32_t>(pick(2));
    run(nullptr, [&] { gc_there(*group_->group().objects(fs(), partition)); });
  }

  void step() {
    const Place place = places_[pick(places_.size())];
    std::size_t kind = pick(48);
    // In the store of a stopped process: only what does not change the names that it uses.
    static constexpr std::size_t kBeside[] = {0, 0, 0, 8, 9, 11, 12, 19};
    if (is_stopped(*place)) kind = kBeside[pick(std::size(kBeside))];
    last_step_ = "kind " + std::to_string(kind) + " at " + place->path;
    if (kind < 6) return import(place);
    if (kind < 8) return remove(place);
    if (kind == 8) return gc(place, 0);
    if (kind < 11) return gc(place, 9);
    if (kind < 14) return push(place);
    if (kind < 16) return pull(place);
    if (kind == 16) return clone();
    if (kind == 17) return materialize_packs(place);
    if (kind == 18) return forget();
    if (kind == 19) return open_reader(place);
    if (kind == 20) return readers_.clear();
    if (kind == 21) return copy(place);
    if (kind == 22) return archive(place);
    if (kind < 25) return cache(place);
    if (kind == 25 && place != places_.front()) return restore(place);
    if (kind == 28) return release(place);
    if (kind == 29) return rename(place);
    if (kind == 30) return back_up_remote();
    if (kind == 31) return restore_remote();
    if (kind > 43 && !is_stopped(*place)) return replicate_one();
    if (kind > 31) return group_step(kind - 32);
    gc_remote();
  }

  void expect_all() {
    checked_at_ = counts_.steps;
    for (const Reader& reader : readers_) store::test::expect_same(*reader.source, reader.bytes);
    for (const Place& place : places_) {
      Contents all = place->snapshots;
      all.insert(place->own.begin(), place->own.end());
      all.insert(place->pulled.begin(), place->pulled.end());
      for (const std::string& name : hidden_) all.erase(name);
      at(*place).expect(all);
    }
    if (group_.has_value()) group_->expect_all(disk_);
    if (there_.empty() || is_unsettled_) return;
    Contents all = there_;
    all.insert(branches_there_.begin(), branches_there_.end());
    for (const std::string& name : hidden_there_) all.erase(name);
    const auto store = at_url(disk_, objects());
    for (const auto& [name, bytes] : all) {
      EXPECT_TRUE(read_all(*store, name) == bytes) << name << " at the remote";
    }
    expect_whole_remote(*objects());
  }

  const std::uint64_t seed_;
  Texts texts_;
  sim::SimFs disk_;
  std::shared_ptr<ObjectStore> server_;  // null: the remote is a directory of the disk
  Actor* actor_ = nullptr;
  Names stopped_;  // the stores of a stopped process
  int depth_ = 0;  // of stopped processes
  std::vector<Place> places_;
  std::vector<Reader> readers_;
  Contents there_, branches_there_;
  std::multiset<std::string> hidden_, hidden_there_;  // that unfinished steps change
  std::set<std::string> was_forgotten_;
  std::list<Body> owed_;
  struct Backup {
    Contents names, branches;
    std::map<std::string, Bytes> objects;
  };
  std::optional<Backup> backup_;
  std::optional<GroupSteps> group_;
  bool was_restored_ = false, is_unsettled_ = false;
  Counts counts_;
  std::uint64_t names_ = 0, forgotten_ = 0, checked_at_ = 0;
  std::string last_step_;
};

void print(const Counts& all, std::uint64_t seed) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "  %llu steps (%llu of groups) in %llu stores: %llu kills, %llu full disks, %llu failures of "
      "the server, %llu stopped, %llu refused; %llu replications of %llu commits; next seed %llu\n",
      number(all.steps), number(all.of_groups), number(all.stations), number(all.kills),
      number(all.full_disks), number(all.server_failures), number(all.pauses), number(all.refused),
      number(all.replications), number(all.commits), number(seed));
  std::fflush(stdout);
}

class StoresModelTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(StoresModelTest, LoseNothing) {
  const auto steps = from_environment("VELLUM_MODEL_STEPS", 40);
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(from_environment("VELLUM_MODEL_SECONDS", 0));
  std::uint64_t seed = from_environment("VELLUM_MODEL_SEED", 0) + GetParam();
  Counts all;
  bool is_whole = true;
  for (auto line_at = std::chrono::steady_clock::now() + 1min;;) {
    StoresModel model(seed);
    is_whole = model.run(steps);
    all.add(model.counts());
    seed += 1000;
    const auto now = std::chrono::steady_clock::now();
    if (!is_whole || now >= end) break;
    if (now < line_at) continue;
    print(all, seed);
    line_at = now + 1min;
  }
  print(all, seed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StoresModelTest, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace vellum::remote::meeting
