// A file of a newer minor format, in a store that is otherwise readable: every
// call that needs it is refused, with the file and both numbers, and no part of the store is lost
// or reported as corrupted.
#include "format/wire/number.hpp"
#include "store/check/check.hpp"
#include "store/gc/tier/tiers_fixture.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kWhole = 0;  // the checksum is at the file's end

class Newer : public TiersTest {
 protected:
  Newer() { make(3); }

  std::vector<std::byte> bytes_of(const std::string& file) {
    return base::read_whole(fs, file, 64u << 20);
  }
  // Format 1.7 in a header of `bytes` bytes, with a right checksum.
  void make_newer(const std::string& file, std::size_t header_bytes) {
    auto bytes = bytes_of(file);
    if (header_bytes == kWhole) header_bytes = bytes.size();
    const std::uint32_t number = format::format_number(1, 7);
    std::memcpy(bytes.data() + 8, &number, sizeof number);
    const std::uint64_t sum =
        base::checksum64(std::span(bytes).first(header_bytes - 8), store->checksum_seed());
    std::memcpy(bytes.data() + header_bytes - 8, &sum, sizeof sum);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::string path() const { return store->path(); }

  void expect_refused(const std::string& file, const std::function<void()>& body) {
    const std::string text = error_text(Errc::newer_format, body);
    EXPECT_TRUE(contains(text, file)) << text;
    EXPECT_TRUE(contains(text, "format 1.7")) << text;
    EXPECT_TRUE(contains(text, "up to 1.1")) << text;
  }
  // Calls that read all of the store, and calls that change it permanently.
  void expect_left_alone(const std::string& file) {
    std::map<std::string, std::vector<std::byte>> before;
    for (const auto& e : std::filesystem::recursive_directory_iterator(dir.path())) {
      if (e.is_regular_file()) before[e.path()] = bytes_of(e.path());
    }
    expect_refused(file, [&] { verify_store(*fresh(), true, nullptr); });
    expect_refused(file, [&] { collect_garbage(*fresh(), false, nullptr); });
    expect_refused(file, [&] { repair_store(fs, path(), dir.path("saved"), nullptr); });
    EXPECT_FALSE(std::filesystem::exists(dir.path("saved")));
    for (const auto& [name, bytes] : before) EXPECT_EQ(bytes_of(name) == bytes, true) << name;
  }
};

TEST_F(Newer, ASnapshotIsRefused) {
  const std::string file = path() + "/snapshots/s1.ref";
  make_newer(file, kWhole);
  expect_refused(file, [&] { read_snapshot(*fresh(), "s1"); });
  expect_left_alone(file);
  expect_same(*open_version(*fresh(), "s2"), contents["s2"]);
}

TEST_F(Newer, AJournalIsRefused) {
  const std::string file = path() + "/branches/main/journal";
  make_newer(file, format::kJournalHeaderBytes);
  expect_refused(file, [&] { BranchWriter::open(*fresh(), "main"); });
  expect_refused(file, [&] { fresh()->create_branch("other", 4096, 0); });
  expect_left_alone(file);
  expect_same(*open_version(*fresh(), "s2"), contents["s2"]);
}

TEST_F(Newer, APackIsRefused) {
  const std::string file = file_in(path() + "/packs", fresh()->packs().list().front());
  make_newer(file, format::kPackHeaderBytes);
  expect_refused(file, [&] { open_version(*fresh(), "s0"); });
  expect_left_alone(file);
}

TEST_F(Newer, AListOfTiersIsRefused) {
  add_archive();
  move(true, 0);
  const std::string file = path() + "/vellum.tiers";
  make_newer(file, kWhole);
  expect_left_alone(file);
}

// A number that is not covered by the checksum is damage: it can be repaired.
TEST_F(Newer, AFlippedNumberIsDamage) {
  const std::string journal = path() + "/branches/main/journal";
  flip(journal, 10);
  EXPECT_TRUE(contains(error_text(Errc::corrupted, [&] { fresh()->read_branch("main"); }),
                       "checksum mismatch"));
  EXPECT_GE(repair_store(fs, path(), dir.path("saved"), nullptr).saved.size(), 3u);
}

TEST_F(Newer, TheSuperblockSaysBothNumbers) {
  const std::string file = path() + "/vellum.store";
  make_newer(file, kWhole);
  const std::string text =
      error_text(Errc::newer_format, [&] { StoreDirectory::open(fs, path()); });
  EXPECT_TRUE(contains(text, file + ": format 1.7")) << text;
}

TEST(FormatNumber, OrdersMajorBeforeMinor) {
  using format::format_number;
  EXPECT_FALSE(format::number_is_newer(format_number(1, 0)));
  EXPECT_FALSE(format::number_is_newer(format_number(1, 1)));
  EXPECT_TRUE(format::number_is_newer(format_number(1, 2)));
  EXPECT_TRUE(format::number_is_newer(format_number(2, 0)));
  EXPECT_FALSE(format::number_is_newer(format_number(0, 3)));
  EXPECT_EQ(format::number_text(format_number(2, 13)), "2.13");
}

}  // namespace
}  // namespace vellum::store::test
