// Corrupted files: always an error with the file's name, never wrong bytes, never a crash.
#include <unistd.h>

#include <fstream>

#include "store/check/check.hpp"
#include "store/page_map/diff.hpp"
#include "store/support.hpp"
#include "support/sanitizers.hpp"

namespace vellum::store::test {
namespace {

using Versions = std::map<std::string, std::vector<std::byte>>;

std::vector<char> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    format::Superblock options = small_options();
    options.pack_bytes = 24u << 10;
    auto store = StoreDirectory::create(base::posix_fs(), path(), options);
    store->create_branch("main", 64 * kPageBytes, 0);
    Model model(64);
    auto writer = BranchWriter::open(*store, "main");
    for (PageNumber p = 0; p < 60; ++p) model.fill(p, random_);
    for (int i = 0; i < 6; ++i) {
      for (int k = 0; k < 6; ++k) model.store64(random_() % 64, 8 * (random_() % 512), random_());
      model.fill(random_() % 64, random_);
      commit(*writer, model, true);
      const std::string name = "s" + std::to_string(i);
      writer->publish_snapshot(name, "");
      versions_[name] = model.bytes;
    }
    writer.reset();
    writer = BranchWriter::open(*store, "main");
    for (int i = 0; i < 3; ++i) {
      model.store64(random_() % 64, 8 * (random_() % 512), random_());
      commit(*writer, model, false);
      heads_.push_back(model.bytes);
    }
    copy_directory(path(), path("-crashed"));
    writer.reset();
    store.reset();
    std::filesystem::remove_all(path());
    std::filesystem::rename(path("-crashed"), path());
  }

  std::string path(const std::string& suffix = "") const { return directory_.path("s") + suffix; }

  // Reads everything of every version. Each gives its own bytes or an error with `file`. The
  // head of a branch may also be an earlier one: a corrupted last frame looks like a torn frame.
  // Returns the number of versions with errors.
  int look(const std::string& file) {
    int errors = 0;
    std::shared_ptr<StoreDirectory> store;
    try {
      store = StoreDirectory::open(base::posix_fs(), path());
    } catch (const Error& e) {
      EXPECT_TRUE(contains(e.what(), file)) << e.what();
      return 1;
    }
    std::vector<std::byte> got(64 * kPageBytes);
    for (const auto& [name, bytes] : versions_) {
      try {
        open_version(*store, name)->read(0, 64, got.data());
        EXPECT_TRUE(got == bytes) << name << " after damage in " << file;
      } catch (const Error& e) {
        ++errors;
        EXPECT_EQ(e.code(), Errc::corrupted) << e.what();
        EXPECT_TRUE(contains(e.what(), file)) << e.what();
      }
    }
    try {
      open_version(*store, "main")->read(0, 64, got.data());
      EXPECT_TRUE(got == versions_["s5"] ||
                  std::find(heads_.begin(), heads_.end(), got) != heads_.end())
          << "main after damage in " << file;
    } catch (const Error& e) {
      ++errors;
      EXPECT_EQ(e.code(), Errc::corrupted) << e.what();
      EXPECT_TRUE(contains(e.what(), file)) << e.what();
    }
    return errors;
  }

  TempDirectory directory_;
  std::mt19937_64 random_{23};
  Versions versions_;
  std::vector<std::vector<std::byte>> heads_;
};

TEST_F(DamageTest, UntouchedIsWhole) {
  EXPECT_EQ(look("nothing"), 0);
  auto store = StoreDirectory::open(base::posix_fs(), path());
  const auto report = verify_store(*store, true, {});
  EXPECT_TRUE(report.damages.empty());
  EXPECT_GE(report.packs, 2u);
}

TEST_F(DamageTest, FlippedBitsInPacksNeverGiveWrongBytes) {
  int with_errors = 0, flips = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path() + "/packs")) {
    const std::string file = entry.path().string();
    const std::vector<char> good = read_file(file);
    for (std::size_t at = random_() % 64; at < good.size(); at += 1 + random_() % 400) {
      auto bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << random_() % 8));
      write_file(file, bad);
      ++flips;
      const int errors = look(file);
      with_errors += errors > 0;
      auto store = StoreDirectory::open(base::posix_fs(), path());
      const auto report = verify_store(*store, true, {});
      if (errors > 0) {
        EXPECT_FALSE(report.damages.empty()) << file << " at " << at;
        std::set<std::string> hurt;
        for (const auto& d : report.damages) {
          EXPECT_TRUE(contains(d.object, file)) << d.object;
          hurt.insert(d.versions.begin(), d.versions.end());
        }
        EXPECT_EQ(hurt.size(), static_cast<std::size_t>(errors)) << file << " at " << at;
      }
    }
    write_file(file, good);
  }
  EXPECT_GT(with_errors, flips / 3);
}

TEST_F(DamageTest, TruncatedAndMissingPacks) {
  for (const auto& entry : std::filesystem::directory_iterator(path() + "/packs")) {
    const std::string file = entry.path().string();
    const std::vector<char> good = read_file(file);
    for (const std::size_t keep :
         {good.size() / 2, good.size() / 4, std::size_t{64}, std::size_t{10}, std::size_t{0}}) {
      write_file(file, std::vector<char>(good.begin(), good.begin() + static_cast<long>(keep)));
      EXPECT_GT(look(file), 0) << file << " " << keep;
      auto store = StoreDirectory::open(base::posix_fs(), path());
      EXPECT_FALSE(verify_store(*store, false, {}).damages.empty()) << file << " " << keep;
    }
    std::filesystem::remove(file);
    EXPECT_GT(look(file), 0);
    auto store = StoreDirectory::open(base::posix_fs(), path());
    const auto report = verify_store(*store, false, {});
    ASSERT_FALSE(report.damages.empty());
    EXPECT_EQ(report.damages[0].object, file);
    EXPECT_FALSE(report.damages[0].versions.empty());
    std::filesystem::create_symlink("/dev/zero", file);
    EXPECT_GT(look(file), 0);
    std::filesystem::remove(file);
    write_file(file, good);
  }
}

TEST_F(DamageTest, FlippedBitsInRefsAndSuperblock) {
  for (const std::string& file : {path() + "/snapshots/s2.ref", path() + "/vellum.store"}) {
    const std::vector<char> good = read_file(file);
    for (std::size_t at = 0; at < good.size(); ++at) {
      auto bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << random_() % 8));
      write_file(file, bad);
      if (contains(file, "snapshots")) {
        EXPECT_EQ(look(file), 1) << at;
      } else {
        EXPECT_THROW(StoreDirectory::open(base::posix_fs(), path()), Error) << at;
      }
    }
    write_file(file, good);
  }
  // A ref under another name is not that snapshot.
  std::filesystem::copy_file(path() + "/snapshots/s2.ref", path() + "/snapshots/other.ref");
  auto store = StoreDirectory::open(base::posix_fs(), path());
  const auto text = error_text(Errc::corrupted, [&] { read_snapshot(*store, "other"); });
  EXPECT_TRUE(contains(text, "other.ref")) << text;
}

TEST_F(DamageTest, FlippedBitsInTheJournal) {
  constexpr std::uint32_t kStep = vellum::test::kSanitizer ? 40 : 5;
  const std::string file = path() + "/branches/main/journal";
  const std::vector<char> good = read_file(file);
  int with_errors = 0;
  for (std::size_t at = 0; at < good.size(); at += 1 + random_() % (good[at] == 0 ? 509 : kStep)) {
    auto bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << random_() % 8));
    write_file(file, bad);
    with_errors += look(file) > 0;
  }
  EXPECT_GT(with_errors, 10);
  // A corrupted commit is not skipped if newer ones follow.
  const std::string marker = "VFRM";
  std::vector<std::size_t> frames;
  for (auto it = good.begin();;) {
    it = std::search(it, good.end(), marker.begin(), marker.end());
    if (it == good.end()) break;
    frames.push_back(static_cast<std::size_t>(it - good.begin()));
    ++it;
  }
  ASSERT_GE(frames.size(), 4u);
  auto bad = good;
  bad[frames[frames.size() - 2] + 45] ^= 1;
  write_file(file, bad);
  auto store = StoreDirectory::open(base::posix_fs(), path());
  const auto text = error_text(Errc::corrupted, [&] { store->read_branch("main"); });
  EXPECT_TRUE(contains(text, file)) << text;
  EXPECT_THROW(BranchWriter::open(*store, "main"), Error);
  const auto report = verify_store(*store, false, {});
  ASSERT_EQ(report.damages.size(), 1u);
  EXPECT_EQ(report.damages[0].object, file);
  EXPECT_EQ(report.damages[0].versions, std::vector<std::string>{"branch 'main'"});
}

TEST_F(DamageTest, TheMessageNamesVersionPageFileAndOffset) {
  // The first record of the first pack has pages. The oldest snapshot needs all of it.
  const std::string file = std::filesystem::directory_iterator(path() + "/packs")->path().string();
  auto store = StoreDirectory::open(base::posix_fs(), path());
  auto source = open_version(*store, "s0");
  const auto chain = source->chain(0);
  ASSERT_FALSE(chain.empty());
  const auto& record = chain.back().record;
  const std::string pack = store->packs().path_of(record.pack);
  auto bytes = read_file(pack);
  bytes[record.offset_bytes + 80] ^= 1;
  write_file(pack, bytes);
  std::vector<std::byte> page(kPageBytes);
  const std::string text = error_text(Errc::corrupted, [&] { source->read(0, 1, page.data()); });
  EXPECT_EQ(text, "snapshot 's0' of " + path() + ": page 0: " + pack + " at byte " +
                      std::to_string(record.offset_bytes) + ": checksum mismatch");
  ReadFailure failure;
  EXPECT_FALSE(source->try_read(0, 1, page.data(), failure));
  char small[20];
  source->describe(failure, small);
  EXPECT_EQ(std::string(small), text.substr(0, 19));
}

TEST_F(DamageTest, StrangeDirectoriesAreNoVersions) {
  namespace fs = std::filesystem;
  fs::create_directory(path() + "/branches/empty");
  fs::create_directory(path() + "/branches/.hidden");
  fs::create_directory_symlink("/tmp", path() + "/branches/link");
  write_file(path() + "/snapshots/-x.ref", {'x'});
  write_file(path() + "/snapshots/readme", {'x'});
  write_file(path() + "/packs/readme", {'x'});
  fs::create_directory(path() + "/snapshots/dir.ref");
  fs::create_symlink("/etc/passwd", path() + "/snapshots/pw.ref");
  auto store = StoreDirectory::open(base::posix_fs(), path());
  EXPECT_EQ(store->branch_names(), std::vector<std::string>{"main"});
  error_text(Errc::not_found, [&] { resolve_version(*store, "link"); });
  error_text(Errc::not_found, [&] { resolve_version(*store, "empty"); });
  error_text(Errc::not_found, [&] { resolve_version(*store, "../s/branches/main"); });
  error_text(Errc::corrupted, [&] { read_snapshot(*store, "dir"); });
  error_text(Errc::corrupted, [&] { read_snapshot(*store, "pw"); });
  EXPECT_EQ(verify_store(*store, true, {}).damages.size(), 2u);
  store->create_branch("empty", 4096, 0);  // remains of a crash do not interfere

  fs::rename(path() + "/packs", path() + "-packs");
  fs::create_directory_symlink(path() + "-packs", path() + "/packs");
  error_text(Errc::corrupted, [&] { StoreDirectory::open(base::posix_fs(), path()); });
  error_text(Errc::not_found, [&] { StoreDirectory::open(base::posix_fs(), path() + "/none"); });
  error_text(Errc::not_a_store, [&] { StoreDirectory::open(base::posix_fs(), "/tmp"); });
  error_text(Errc::already_exists,
             [&] { StoreDirectory::create(base::posix_fs(), path(), small_options()); });
}

}  // namespace
}  // namespace vellum::store::test
