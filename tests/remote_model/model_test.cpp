// A model of stores that exchange versions: random steps of several full and lazy clones at one
// remote, some of them killed at a random call, and shadow copies of the expected content.
//
// VELLUM_MODEL_STEPS and VELLUM_MODEL_SEED are for long runs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "remote_model/stations.hpp"
#include "store/catalog/lock/version_pin.hpp"

namespace vellum::remote::meeting {
namespace {

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
  Contents snapshots, own, pulled;  // `own`, `pulled`: branches
};

// An open version of another process.
struct Reader {
  std::shared_ptr<StoreDirectory> store;
  std::shared_ptr<store::PageSource> source;
  Bytes bytes;
};

void copy_directory(base::Fs& fs, const std::string& from, const std::string& to) {
  fs.make_directory(to);
  for (const auto& entry : fs.list(from)) {
    const std::string old = from + "/" + entry.name, fresh = to + "/" + entry.name;
    if (entry.is_directory) {
      copy_directory(fs, old, fresh);
    } else {
      fs.open(fresh, base::OpenMode::create_new)->pwrite(base::read_whole(fs, old, 1u << 30), 0);
    }
  }
}

class StoresModel : public testing::TestWithParam<std::uint64_t> {
 protected:
  explicit StoresModel()
      : seed_(from_environment("VELLUM_MODEL_SEED", 0) + GetParam()), texts_(seed_) {
    format::Superblock made = options(std::uint64_t{64u << 10} << (2 * pick(4)));
    if (pick(2) == 0) made.compression = base::Compression::lz4;
    if (pick(3) == 0) made.sha256 = true;
    if (pick(3) == 0) made.block_bytes = 16u << 10;
    places_.push_back({"/a", false, {}, {}, {}});
    Station(*fs_, "/a").create(made);
  }

  std::size_t pick(std::size_t n) { return texts_.random()() % n; }
  const std::string& pick_name(const Contents& from) {
    return std::next(from.begin(), static_cast<std::ptrdiff_t>(pick(from.size())))->first;
  }
  Names pick_names(const Contents& from) {
    Names out;
    for (const auto& [name, bytes] : from) {
      if (pick(3) == 0) out.push_back(name);
    }
    return out;
  }
  Station at(const StationContent& place) { return {*fs_, place.path}; }

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

  // Does the step; sometimes kills it first and repeats it on the resulting disk.
  void run(const std::function<void()>& step) {
    ++steps_;
    if (pick(4) == 0) {
      readers_.clear();
      fs_->cut_power_at(1 + pick(pick(2) == 0 ? 12 : 100));
      bool was_killed = false;
      try {
        step();
      } catch (const sim::PowerCut&) {
        was_killed = true;
      } catch (const Error&) {
        was_killed = true;
      }
      fs_ = std::make_unique<sim::SimFs>(fs_->disk());
      if (!was_killed) return;
      ++kills_;
      expect_all();
    }
    step();
  }

  // gc is refused beside a reader of a version that it cannot find.
  void run_beside_readers(const std::function<void()>& step) {
    try {
      return run(step);
    } catch (const Error& e) {
      if (e.code() != Errc::busy || readers_.empty()) throw;
    }
    ++refused_;
    readers_.clear();
    step();
  }

  void open_reader(const StationContent& place) {
    if (place.snapshots.empty()) return;
    const std::string name = pick_name(place.snapshots);
    const auto store = at(place).open();
    store::NamesShared names(*store);
    auto source = store::test::open_version(*store, name);
    source->keep(
        store::VersionPin(*store, std::move(names), store::resolve_version(*store, name).version));
    readers_.push_back({store, source, place.snapshots.at(name)});
  }

  // A branch must have one writer: the copy gets none of the original's branches.
  void copy(const StationContent& place) {
    if (place.lazy) return;
    StationContent other = place;
    other.path = "/c" + std::to_string(++names_);
    copy_directory(*fs_, place.path, other.path);
    for (const auto& [branch, bytes] : place.own) at(other).open()->remove_branch(branch);
    other.own.clear();
    add(std::move(other));
  }

  void add(StationContent place) {
    if (places_.size() == kMaxStations) places_.erase(places_.begin() + 1);
    places_.push_back(std::move(place));
  }

  void import(StationContent& place) {
    const std::string branch = place.own.empty() || (pick(6) == 0 && place.own.size() < 3)
                                   ? "b" + std::to_string(++names_)
                                   : pick_name(place.own);
    const bool is_new = !place.own.contains(branch);
    const std::string from =
        is_new && !place.snapshots.empty() ? pick_name(place.snapshots) : std::string();
    const Bytes start = !is_new         ? place.own[branch]
                        : !from.empty() ? place.snapshots[from]
                                        : texts_.of(kModelBlocks * kBlockBytes);
    const Bytes bytes = make_content(place, start);
    const std::string snapshot =
        place.snapshots.size() < kMaxNames && pick(4) != 0 ? "s" + std::to_string(++names_) : "";
    hidden_.insert(branch);
    run([&] {
      Station station = at(place);
      const auto store = station.open();
      if (is_new && !from.empty() && !store::has_branch(*store, branch)) {
        station.branch(branch, from);
      }
      const bool is_named = !snapshot.empty() && store::has_snapshot(*store, snapshot);
      station.import(branch, bytes, is_named ? "" : snapshot, ++time_);
    });
    hidden_.clear();
    place.own[branch] = bytes;
    if (!snapshot.empty()) place.snapshots[snapshot] = bytes;
  }

  void remove(StationContent& place) {
    for (const std::string& name : pick_names(place.snapshots)) {
      place.snapshots.erase(name);
      run([&] {
        if (store::has_snapshot(*at(place).open(), name)) at(place).remove({name});
      });
    }
  }

  void push(StationContent& place) {
    Contents all = place.snapshots;
    all.insert(place.own.begin(), place.own.end());
    const Names names = pick_names(all);
    if (names.empty()) return;
    for (const std::string& name : names) hidden_there_.insert(name);
    run([&] { at(place).push(names); });
    hidden_there_.clear();
    for (const std::string& name : names) {
      (place.own.contains(name) ? branches_there_ : there_)[name] = all[name];
    }
  }

  void pull(StationContent& place) {
    Names names = pick_names(there_);
    for (const std::string& name : pick_names(branches_there_)) {
      if (!place.own.contains(name)) names.push_back(name);
    }
    if (names.empty()) return;
    for (const std::string& name : names) hidden_.insert(name);
    run([&] { at(place).pull(names); });
    hidden_.clear();
    for (const std::string& name : names) {
      if (there_.contains(name)) place.snapshots[name] = there_[name];
      if (branches_there_.contains(name)) place.pulled[name] = branches_there_[name];
    }
  }

  void clone() {
    if (there_.empty()) return;
    Names names = pick_names(there_);
    if (names.empty()) names.push_back(pick_name(there_));
    StationContent place{"/c" + std::to_string(++names_), pick(2) == 0, {}, {}, {}};
    run([&] {
      if (!at(place).is_there()) at(place).clone(names, place.lazy);
    });
    for (const std::string& name : names) place.snapshots[name] = there_[name];
    add(std::move(place));
  }

  void materialize_packs(StationContent& place) {
    if (!place.lazy) return;
    // Names of the remote that the store has already.
    Names names;
    for (const auto& [name, bytes] : place.snapshots) {
      if (there_.contains(name)) names.push_back(name);
    }
    if (names.empty()) return;
    run([&] { at(place).pull(names, true); });
    place.lazy = false;
  }

  void forget() {
    const Names names = pick_names(there_);
    if (names.empty() || there_.size() - names.size() < 2) return;
    for (const std::string& name : names) {
      there_.erase(name);
      run([&] {
        if (store::has_snapshot(*at_url(*fs_), name)) forget_there(*fs_, {name});
      });
    }
  }

  void step() {
    StationContent& place = places_[pick(places_.size())];
    const std::size_t kind = pick(23);
    SCOPED_TRACE("seed " + std::to_string(seed_) + ", step " + std::to_string(steps_) + ", kind " +
                 std::to_string(kind) + " at " + place.path);
    if (kind < 6) return import(place);
    if (kind < 8) return remove(place);
    if (kind == 8) return run_beside_readers([&] { at(place).gc(); });
    if (kind < 11) return run_beside_readers([&] { at(place).gc(9); });
    if (kind < 14) return push(place);
    if (kind < 16) return pull(place);
    if (kind == 16) return clone();
    if (kind == 17) return materialize_packs(place);
    if (kind == 18) return forget();
    if (kind == 19) return open_reader(place);
    if (kind == 20) return readers_.clear();
    if (kind == 21) return copy(place);
    if (!there_.empty()) run([&] { gc_there(*fs_); });
  }

  void expect_all() {
    for (const Reader& reader : readers_) store::test::expect_same(*reader.source, reader.bytes);
    for (const StationContent& place : places_) {
      Contents all = place.snapshots;
      all.insert(place.own.begin(), place.own.end());
      all.insert(place.pulled.begin(), place.pulled.end());
      for (const std::string& name : hidden_) all.erase(name);
      at(place).expect(all);
    }
    if (there_.empty()) return;
    Contents all = there_;
    all.insert(branches_there_.begin(), branches_there_.end());
    for (const std::string& name : hidden_there_) all.erase(name);
    const auto store = at_url(*fs_);
    for (const auto& [name, bytes] : all) {
      EXPECT_TRUE(read_all(*store, name) == bytes) << name << " at the remote";
    }
    expect_whole_remote(*fs_);
  }

  const std::uint64_t seed_;
  Texts texts_;
  std::unique_ptr<sim::SimFs> fs_ = std::make_unique<sim::SimFs>();
  std::vector<StationContent> places_;
  std::vector<Reader> readers_;
  Contents there_, branches_there_;
  std::set<std::string> hidden_, hidden_there_;  // that the step changes
  std::uint64_t steps_ = 0, kills_ = 0, refused_ = 0;
  std::uint64_t names_ = 0;
  std::int64_t time_ = 0;
};

TEST_P(StoresModel, LoseNothing) {
  const auto steps = from_environment("VELLUM_MODEL_STEPS", 40);
  while (steps_ < steps) {
    step();
    if (HasFailure()) {
      std::printf("  seed %llu, step %llu\n", static_cast<unsigned long long>(seed_),
                  static_cast<unsigned long long>(steps_));
      return;
    }
    if (steps_ % 5 == 0) expect_all();
  }
  expect_all();
  std::printf("  %llu steps, %llu kills, %llu gcs refused beside readers\n",
              static_cast<unsigned long long>(steps_), static_cast<unsigned long long>(kills_),
              static_cast<unsigned long long>(refused_));
}

INSTANTIATE_TEST_SUITE_P(Seeds, StoresModel, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace vellum::remote::meeting
