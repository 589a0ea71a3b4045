// A store with snapshots in many small packs, and directories for its tiers.
#pragma once

#include <filesystem>
#include <fstream>

#include "store/gc/recompress_support.hpp"
#include "store/gc/tier/tier_policy.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::store::test {

using format::TierKind;

class TiersTest : public SnapshotsTest {
 protected:
  static constexpr std::size_t kPages = 256;

  // Snapshots s0, s1, ...; each rewrites some pages. Packs of 32 KiB.
  void make(std::size_t snapshots, std::size_t changed = 40, const char* name = "s") {
    format::Superblock options = small_options();
    options.pack_bytes = 32u << 10;
    const auto writer = create(options, kPages, name);
    Model model(kPages);
    for (PageNumber p = 0; p < kPages; ++p) fill_text(model, p, random);
    for (std::size_t i = 0; i < snapshots; ++i) {
      for (std::size_t n = 0; i != 0 && n < changed; ++n) {
        fill_text(model, random() % kPages, random);
      }
      commit(*writer, model, true);
      name_head(*writer, model, "s" + std::to_string(i));
    }
  }
  std::shared_ptr<StoreDirectory> fresh() { return StoreDirectory::open(fs, store->path()); }
  void add_archive() { add_tier(*fresh(), TierKind::archive, archive, 0); }
  void add_cache(std::uint64_t limit_bytes = 0) {
    add_tier(*fresh(), TierKind::cache, cache, limit_bytes);
  }
  TierReport move(bool to_archive, std::optional<std::uint64_t> home_bytes = {},
                  std::uint64_t keep_last = 0) {
    return move_packs(*fresh(), {to_archive, home_bytes, keep_last}, nullptr);
  }
  TierReport apply() { return apply_tiers(*fresh(), false, nullptr); }

  // The pack files in a directory.
  std::vector<std::uint64_t> packs_in(const std::string& directory) {
    return store->packs().places().list_in(directory);
  }
  std::string home() const { return store->path() + "/packs"; }
  static std::string file_in(const std::string& directory, std::uint64_t pack) {
    return directory + "/" + pack_file_name(pack);
  }
  static void flip(const std::string& file, std::uint64_t at) {
    std::fstream io(file, std::ios::in | std::ios::out | std::ios::binary);
    io.seekg(static_cast<std::streamoff>(at));
    const int byte = io.get();
    io.seekp(static_cast<std::streamoff>(at));
    io.put(static_cast<char>(byte ^ 0x40));
    ASSERT_TRUE(io.good()) << file;
  }
  // A writer that continues: fills some pages, or all, and creates a snapshot.
  void go_on(const std::string& name, std::size_t changed = 30) {
    auto writer = BranchWriter::open(*store, "main");
    Model now(kPages);
    now.bytes = contents.at("main");
    for (std::size_t n = 0; n < changed; ++n) {
      fill_text(now, changed == kPages ? n : random() % kPages, random);
    }
    commit(*writer, now, true);
    name_head(*writer, now, name);
  }

  // Rewrites everything until no page map names the old packs any more.
  void rewrite(const std::string& name) {
    for (int i = 0; i < 8; ++i) {
      go_on(name, kPages);
      if (i < 7) remove(name);
    }
  }

  std::mt19937_64 random{3};
  std::string archive = dir.path("archive"), cache = dir.path("cache");
};

}  // namespace vellum::store::test
