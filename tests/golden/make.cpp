// golden_make DIR [NAME]: creates the golden stores of this format, DIR/<name>.tar.gz, or one of
// them (see golden_lib.hpp). Run once for a format, before its release, from the top of the
// project:
//   cmake --build --preset release --target golden_make
//   build/release/bin/golden_make tests/golden/1.0
// The stores of format 1.1 are encrypted.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <vellum/atomic_file.hpp>
#include <vellum/datastore.hpp>
#include <vellum/store.hpp>

#include "golden/golden_lib.hpp"
#include "region/api/store_impl.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::golden {
namespace {

namespace fs = std::filesystem;

void archive(const fs::path& directory, const fs::path& to) {
  const std::string command =
      "tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=gnu -S -C '" +
      directory.string() + "' -c . | gzip -9n >'" + to.string() + "'";
  if (std::system(command.c_str()) != 0) throw std::runtime_error(command);
}

// Where the secrets of the encrypted stores are; empty: plain ones are made.
std::string secrets;

void make_encrypted(const std::string& path, const format::Superblock& options) {
  store::StoreDirectory::create_encrypted(base::posix_fs(), path, options,
                                          secret(kSlotKinds[0], secrets));
  Store store = Store::open(path);
  for (const KeySlot::Kind kind : std::span(kSlotKinds).subspan(1)) {
    store.add_key(secret(kind, secrets), "golden");
  }
}

// Packs are sealed early, to give a small store sealed packs; smaller than StoreOptions permits.
void make_store(const std::string& path) {
  format::Superblock options;
  options.pack_bytes = 32 << 10;
  options.journal_half_bytes = 64 << 10;
  if (!secrets.empty()) return make_encrypted(path, options);
  store::StoreDirectory::create(base::posix_fs(), path, options);
}

RegionOptions region_options(const Encoding& encoding = {}) {
  RegionOptions out;
  out.background_gc = false;
  out.working_set = true;
  out.encoding = encoding;
  return out;
}

const Branch& branch_of(const History& history, const GoldenStep& step) {
  for (const Branch& branch : history.branches) {
    if (branch.name == std::string(step.branch)) return branch;
  }
  throw std::logic_error(step.branch);
}

Region open(Store& store, const Branch& branch) {
  if (store.contains(branch.name)) return store.open_region(branch.name, region_options());
  if (branch.from == nullptr) {
    return store.create_region(branch.name, branch.pages * kPageBytes,
                               region_options(branch.encoding));
  }
  store.create_branch(branch.name, branch.from);
  return store.open_region(branch.name, region_options());
}

// `copy`: is created while the last writers have the store open, in the state of a crash.
void play(const History& history, const std::string& path, const std::string& copy = "",
          const store::WriterPolicy& policy = {}) {
  Store store = Store::open(path);
  StoreAccess::core_of(store)->set_writer_policy(policy);
  std::map<std::string, Region> regions;
  for (const GoldenStep& step : history.steps) {
    const Branch& branch = branch_of(history, step);
    const auto at = regions.find(branch.name);
    Region& region = at != regions.end()
                         ? at->second
                         : regions.emplace(branch.name, open(store, branch)).first->second;
    put(step, {static_cast<std::byte*>(region.data()), region.size_bytes()});
    region.commit(std::string("step ") + std::to_string(step.seed));
    if (step.snapshot != nullptr) region.snapshot(step.snapshot, "golden");
  }
  if (!copy.empty()) fs::copy(path, copy, fs::copy_options::recursive);
}

// The store in the state of a crash after the last step.
void play_and_crash(const History& history, const fs::path& work,
                    const store::WriterPolicy& policy = {}) {
  const fs::path whole = work / "whole";
  make_store(whole);
  play(history, whole, work / "store", policy);
  fs::remove_all(whole);
}

void make_plain(const History& history, const fs::path& work) {
  make_store(work / "store");
  play(history, work / "store");
}

// A journal in the state of a crash, whose newest base frame carries commits. The checkpoint is
// written within the commit that starts it; therefore each run carries the same commits.
void make_beside(const History& history, const fs::path& work) {
  store::WriterPolicy policy;
  policy.checkpoints = {0, true};
  play_and_crash(history, work, policy);
}

void add_image(Store& store) {
  RegionOptions mapped = region_options();
  mapped.engine = Engine::mapped;
  Region region = store.create_region("image", 8 * kPageBytes, mapped);
  std::memcpy(region.data(), metadata(8).c_str(), metadata(8).size());
  region.commit("through an image");
}

// Journals in the state of a crash, a working set, an image, and a version that is a plain file of
// 10,000 bytes.
void make_history(const History& history, const fs::path& work) {
  play_and_crash(history, work);
  Store store = Store::open(work / "store");
  std::ofstream(work / "file") << metadata(7) << std::string(10'000 - metadata(7).size(), 'f');
  store.import_file("file", work / "file", "a plain file");
  store.create_snapshot("file-1", "file");
  fs::remove(work / "file");
  if (secrets.empty()) add_image(store);
  Region used = store.open_version("first", region_options());
  volatile char sink = *static_cast<const char*>(used.data());
  static_cast<void>(sink);
  used.close();
}

void collect(Store& store, int level) {
  GcOptions options;
  options.recompress_level = level;
  store.collect_garbage(options);
}

void make_packs(const History& history, const fs::path& work) {
  make_store(work / "store");
  play(history, work / "store");
  Store store = Store::open(work / "store");
  store.remove_snapshot("removed");
  collect(store, 0);
  collect(store, 19);
  collect(store, 0);  // leaves a census
}

void make_tiers(const History& history, const fs::path& work) {
  make_packs(history, work);
  Store store = Store::open(work / "store");
  store.add_archive(work / "archive");
  store.add_cache(work / "cache");
  TierMove move;
  move.home_bytes = 64 << 10;
  store.move_packs(move);
  store.apply_tiers();
}

void make_datastore(const fs::path& work) {
  const std::string path = work / "data";
  DatastoreOptions options;
  options.region = region_options();
  options.store.pack_bytes = 1 << 20;
  options.store.journal_half_bytes = 64 << 10;
  Datastore data = Datastore::create(path, 1 << 30, options);
  data.extend(kSegmentBytes);
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}}) {
    const Bytes content = segment(seed);
    std::memcpy(data.segment(), content.data(), content.size());
    const fs::path file = Datastore::files_directory(path) + "/" + kMetadata;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << metadata(seed);
    if (seed == 1) {
      data.snapshot(path + "@one");
    } else {
      data.commit("two");
    }
  }
  data.close();
}

// The old file, and a journal with commits that it lacks.
void make_atomic(const fs::path& work) {
  const std::string path = work / "whole";
  AtomicFileOptions options;
  options.medium = Medium::disk;
  options.journal_bytes = 64 << 10;
  AtomicFile file = AtomicFile::open_or_create(path, kAtomicBytes, options);
  for (std::uint64_t i = 1; i <= kAtomicCommits; ++i) {
    const Bytes content = atomic_content(i);
    std::memcpy(file.data(), content.data(), content.size());
    file.commit();
  }
  fs::copy(path, work / "file");
  fs::copy(path + ".vellum-journal", work / "file.vellum-journal");
  file.close();
  fs::remove(path);
}

using Maker = std::function<void(const fs::path& work)>;

std::map<std::string, Maker> makers() {
  std::map<std::string, Maker> out;
  if (secrets.empty()) out = {{"datastore", make_datastore}, {"atomic", make_atomic}};
  const std::map<std::string, void (*)(const History&, const fs::path&)> with_history = {
      {"codecs", make_plain}, {"history", make_history}, {"packs", make_packs},
      {"tiers", make_tiers},  {"beside", make_beside},   {"moved", make_plain}};
  for (const History& history : histories()) {
    out[history.name] = [&history, maker = with_history.at(history.name)](const fs::path& work) {
      maker(history, work);
    };
  }
  return out;
}

void make(const std::string& name, const fs::path& to, const Maker& fill) {
  const fs::path work = fs::absolute(to) / ("work-" + name);
  fs::remove_all(work);
  fs::create_directories(work);
  fill(work);
  archive(work, fs::absolute(to) / (name + ".tar.gz"));
  fs::remove_all(work);
}

void make_some(const fs::path& to, const std::string& only) {
  fs::create_directories(to);
  if (to.filename() == kSealedFormat) {
    secrets = fs::absolute(to) / "work-secrets";
    fs::create_directories(secrets);
    set_key_source(secret(kSlotKinds[0], secrets));
  }
  for (const auto& [name, fill] : makers()) {
    if (only.empty() || only == name) make(name, to, fill);
  }
  if (!secrets.empty()) fs::remove_all(secrets);
}

}  // namespace
}  // namespace vellum::golden

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: golden_make DIR [NAME]\n");
    return 2;
  }
  try {
    vellum::golden::make_some(argv[1], argc == 3 ? argv[2] : "");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "golden_make: %s\n", e.what());
    return 1;
  }
}
