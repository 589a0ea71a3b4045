// Privateer's versions as directories: created, removed, copied by programs; settings; errors.
#include <filesystem>
#include <fstream>

#include "interfaces/privateer/fixture.hpp"
#include "support/working_directory.hpp"

namespace vellum::test {
namespace {

namespace files = std::filesystem;

// Does what Metall does after a snapshot, and to copy a datastore.
void copy_files(const std::string& from, const std::string& to) {
  files::create_directories(to);
  for (const auto& entry : files::directory_iterator(from)) {
    if (!entry.is_regular_file()) continue;
    files::copy_file(entry, files::path(to) / entry.path().filename(),
                     files::copy_options::overwrite_existing);
  }
}

class PrivateerVersions : public PrivateerTest {};

TEST_F(PrivateerVersions, AVersionsDirectoryMayExist) {
  files::create_directories(path_of("v0") + "/management");
  Privateer privateer(Privateer::CREATE, base().c_str());
  EXPECT_FALSE(privateer.version_exists("v0"));
  words(privateer.create(nullptr, "v0", kBlock, false))[0] = 1;
  files::create_directories(path_of("v1") + "/management");
  EXPECT_TRUE(privateer.snapshot("v1"));
  EXPECT_TRUE(files::exists(path_of("v1") + "/management"));
  EXPECT_EQ(first_word("v1"), 1u);
}

TEST_F(PrivateerVersions, AVersionIsReplacedOnlyOnRequest) {
  make("v0", 1);
  std::ofstream(path_of("v0") + "/mine") << "stays";
  Privateer privateer(Privateer::CREATE, base().c_str());
  expect_error(Errc::already_exists, {path_of("v0")},
               [&] { privateer.create(nullptr, "v0", 2 * kBlock, false); });
  EXPECT_EQ(first_word("v0"), 1u);
  auto* const data = words(privateer.create(nullptr, "v0", 2 * kBlock, true));
  EXPECT_EQ(data[0], 0u);
  EXPECT_EQ(privateer.region_size(), 2 * kBlock);
  EXPECT_TRUE(files::exists(path_of("v0") + "/mine"));
  data[0] = 2;
  ASSERT_TRUE(privateer.snapshot("v1"));
  words(privateer.create(nullptr, "v1", kBlock, true))[0] = 3;             // also a snapshot
  EXPECT_EQ(words(privateer.create(nullptr, "v1", kBlock, true))[0], 0u);  // also what it has open
  EXPECT_EQ(first_word("v0"), 2u);
}

TEST_F(PrivateerVersions, CopiesOfARelativeBaseAreKept) {
  const WorkingDirectory inside(base());
  Privateer privateer(Privateer::CREATE, ".");
  words(privateer.create(nullptr, "v0", kBlock, false))[0] = 1;
  ASSERT_TRUE(privateer.snapshot("v1"));
  copy_files("v1", "copy");
  words(privateer.create(nullptr, "v1", kBlock, true))[0] = 2;
  EXPECT_EQ(first_word("copy"), 1u);
}

TEST_F(PrivateerVersions, AVersionIsRemovedWithItsDirectory) {
  make("v0", 1);
  {
    Privateer privateer(Privateer::OPEN, base().c_str());
    privateer.open(nullptr, "v0");
    ASSERT_TRUE(privateer.snapshot("v1"));
  }
  files::remove_all(path_of("v0"));
  files::remove_all(path_of("v1"));
  Privateer privateer(Privateer::OPEN, base().c_str());
  EXPECT_FALSE(privateer.version_exists("v0"));
  expect_error(Errc::not_found, {path_of("v0")}, [&] { privateer.open(nullptr, "v0"); });
  expect_error(Errc::not_found, {path_of("v1")},
               [&] { Privateer::version_capacity(path_of("v1")); });
  EXPECT_EQ(words(privateer.create(nullptr, "v0", kBlock, false))[0], 0u);
  words(privateer.data())[0] = 2;
  files::create_directories(path_of("v1") + "/management");  // created again, as Metall does
  EXPECT_TRUE(privateer.snapshot("v1"));
  EXPECT_EQ(first_word("v1"), 2u);
  // A directory whose name the store lacks is not a version either.
  store().remove_snapshot("v1");
  EXPECT_FALSE(privateer.version_exists("v1"));
  expect_error(Errc::not_found, {path_of("v1")}, [&] { privateer.open(nullptr, "v1"); });
}

TEST_F(PrivateerVersions, AVersionStaysItselfWithFilesOfAnother) {
  Privateer privateer(Privateer::CREATE, base().c_str());
  auto* const data = words(privateer.create(nullptr, "v0", kBlock, false));
  data[0] = 1;
  ASSERT_TRUE(privateer.snapshot("v1"));
  copy_files(path_of("v0"), path_of("v1"));
  data[0] = 2;
  privateer.msync();
  EXPECT_EQ(first_word("v1"), 1u);
  EXPECT_FALSE(privateer.snapshot("v1"));
  Privateer other(Privateer::OPEN, base().c_str());
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(words(other.open(nullptr, "v1"))[0], i == 0 ? 1 : 9 + i);
    words(other.data())[0] = 10 + i;
  }
  EXPECT_EQ(data[0], 2u);
}

TEST_F(PrivateerVersions, AVersionIsCopiedByItsFiles) {
  make("v0", 1);
  copy_files(path_of("v0"), path_of("copy"));
  copy_files(path_of("v0"), path_of("second"));
  Privateer privateer(Privateer::OPEN, base().c_str());
  EXPECT_TRUE(privateer.version_exists("copy"));
  EXPECT_EQ(Privateer::version_capacity(path_of("copy")), kBlock);
  EXPECT_EQ(words(privateer.open_read_only(nullptr, "copy"))[0], 1u);
  words(privateer.open(nullptr, "copy"))[0] = 2;
  privateer.msync();
  EXPECT_EQ(first_word("v0"), 1u);
  EXPECT_EQ(first_word("copy"), 2u);
  // The original of the copy is written, and is then removed.
  words(privateer.open(nullptr, "v0"))[0] = 3;
  privateer.msync();
  EXPECT_EQ(first_word("second"), 1u);
  words(privateer.open(nullptr, "v0"))[0] = 4;
  EXPECT_EQ(first_word("second"), 1u);
  copy_files(path_of("second"), path_of("third"));
  privateer.create(nullptr, "second", kBlock, true);
  EXPECT_EQ(first_word("third"), 1u);
}

// A copy of files that were being written has a state that never existed.
TEST_F(PrivateerVersions, ACopyOfALostStateIsAnError) {
  make("v0", 1);
  Privateer privateer(Privateer::OPEN, base().c_str());
  words(privateer.open(nullptr, "v0"))[0] = 3;
  copy_files(path_of("v0"), path_of("late"));
  privateer.msync();
  expect_error(Errc::not_found, {path_of("late"), "v0"}, [&] { first_word("late"); });
  EXPECT_FALSE(privateer.version_exists("late"));
}

TEST_F(PrivateerVersions, ACopyReplacesTheEarlierVersion) {
  make("v0", 1);
  make("v1", 2);
  files::remove_all(path_of("v1"));
  copy_files(path_of("v0"), path_of("v1"));
  EXPECT_EQ(first_word("v1"), 1u);
  Privateer privateer(Privateer::OPEN, base().c_str());
  EXPECT_EQ(words(privateer.open(nullptr, "v1"))[0], 1u);
}

TEST_F(PrivateerVersions, VersionsMoveWithTheirBase) {
  make("v0", 1);
  const std::string moved = directory_ / "moved";
  files::rename(base(), moved);
  EXPECT_EQ(Privateer::version_capacity(moved + "/v0"), kBlock);
  Privateer privateer(Privateer::OPEN, moved.c_str());
  EXPECT_EQ(words(privateer.open(nullptr, "v0"))[0], 1u);
}

TEST_F(PrivateerVersions, AVersionMayHaveAnyName) {
  const std::vector<std::string> names = {"a b", "a+b",   "a+20b",  ".hidden", "-",      "run/1",
                                          "run", "\x80z", "Zürich", "a:b@c#",  "/rooted"};
  for (std::size_t i = 0; i < names.size(); ++i) make(names[i], i + 1);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(first_word(names[i]), i + 1) << names[i];
    EXPECT_EQ(Privateer::version_capacity(path_of(names[i])), kBlock) << names[i];
  }
  EXPECT_TRUE(store().contains("Zürich"));
  Privateer privateer(Privateer::CREATE, base().c_str());
  for (const char* name : {"", ".", "..", "../out", "blocks", "blocks/x", "a/../.."}) {
    expect_error(Errc::invalid_argument, {base(), name},
                 [&] { privateer.create(nullptr, name, kBlock, true); });
  }
  EXPECT_ERRC(privateer.create(nullptr, std::string(201, 'x').c_str(), kBlock, true),
              Errc::invalid_argument);
  EXPECT_ERRC(privateer.create(nullptr, nullptr, kBlock, true), Errc::invalid_argument);
}

TEST_F(PrivateerVersions, ErrorsNameTheVersionAndTheCause) {
  expect_error(Errc::not_found, {base()}, [&] { Privateer p(Privateer::OPEN, base().c_str()); });
  expect_error(Errc::invalid_argument, {base(), "7"}, [&] { Privateer p(7, base().c_str()); });
  Privateer privateer(Privateer::CREATE, base().c_str());
  expect_error(Errc::not_found, {path_of("v0")}, [&] { privateer.open_read_only(nullptr, "v0"); });
  privateer.msync();  // nothing is open, and nothing to do
  expect_error(Errc::invalid_argument, {"snapshot"}, [&] { privateer.snapshot("v1"); });
  expect_error(Errc::invalid_argument, {"0 bytes"},
               [&] { privateer.create(nullptr, "v0", 0, false); });
  EXPECT_ERRC(privateer.create(nullptr, "v0", ~std::size_t{0}, false), Errc::invalid_argument);
  EXPECT_FALSE(files::exists(path_of("v0")));
  make("v0", 1);
  std::ofstream(path_of("v0") + "/_vellum") << "of something else\n";
  expect_error(Errc::corrupted, {path_of("v0")}, [&] { privateer.open(nullptr, "v0"); });
}

TEST_F(PrivateerVersions, BlocksOfTheOriginalAreNotChanged) {
  files::create_directories(base() + "/blocks");
  std::ofstream(base() + "/blocks/_granularity") << 2097152;
  Privateer privateer(Privateer::CREATE, base().c_str());
  EXPECT_THROW(privateer.create(nullptr, "v0", kBlock, true), Error);
  EXPECT_FALSE(files::exists(path_of("v0")));
}

TEST_F(PrivateerVersions, AStashIsADirectoryOfItsOwn) {
  const std::string stash = directory_ / "stash", other = directory_ / "other";
  {
    Privateer privateer(Privateer::CREATE, (stash + "<stash>" + base()).c_str());
    words(privateer.create(nullptr, "v0", kBlock, true))[0] = 1;
  }
  EXPECT_TRUE(files::is_directory(stash));
  EXPECT_TRUE(files::is_directory(base()));
  Privateer privateer(Privateer::OPEN, base().c_str(), other.c_str());
  EXPECT_TRUE(files::is_directory(other));
  EXPECT_EQ(words(privateer.open(nullptr, "v0"))[0], 1u);
  EXPECT_EQ(Privateer::version_capacity(stash + "<stash>" + path_of("v0")), kBlock);
}

TEST_F(PrivateerVersions, TheEnvironmentSetsTheBlockSize) {
  {
    const Variable size("PRIVATEER_BLOCK_SIZE", "16384"), blocks("PRIVATEER_NUM_BLOCKS", "7");
    Privateer privateer(Privateer::CREATE, base().c_str());
    EXPECT_EQ(privateer.get_block_size(), 16384u);
    privateer.create(nullptr, "v0", 16385, false);
    EXPECT_EQ(privateer.region_size(), 32768u);
    ASSERT_TRUE(privateer.snapshot("v1"));
  }
  const Variable blocks("PRIVATEER_NUM_BLOCKS", "10");
  Privateer privateer(Privateer::OPEN, base().c_str());
  privateer.open(nullptr, "v1");
  EXPECT_EQ(privateer.get_block_size(), 16384u);
  EXPECT_EQ(Privateer::version_block_size(path_of("v1")), 16384u);
  privateer.create(nullptr, "v2", 10 * kMiB, false);
  EXPECT_EQ(privateer.get_block_size(), kMiB);
  EXPECT_EQ(privateer.region_size(), 10 * kMiB);
  expect_error(Errc::invalid_argument, {"PRIVATEER_NUM_BLOCKS=10", "4096"},
               [&] { privateer.create(nullptr, "v3", 4096, false); });
  for (const char* bad : {"2M", "-1", "4097", "1e6", "99999999999999999999", " 4096"}) {
    const Variable size("PRIVATEER_BLOCK_SIZE", bad);
    expect_error(Errc::invalid_argument, {std::string("PRIVATEER_BLOCK_SIZE=") + bad},
                 [&] { Privateer other(Privateer::CREATE, base().c_str()); });
  }
}

// A region stays within the limit: more is written, and all of it is read back.
TEST_F(PrivateerVersions, TheEnvironmentLimitsTheMemory) {
  const std::string stash = directory_ / "stash";
  constexpr std::uint64_t kBytes = 48 * kMiB;
  const Variable most("PRIVATEER_MAX_MEM_BLOCKS", "1");
  Privateer privateer(Privateer::CREATE, base().c_str(), stash.c_str());
  auto* const data = words(privateer.create(nullptr, "v0", kBytes, false));
  for (std::uint64_t i = 0; i < kBytes / 8; ++i) data[i] = i * 0x9e3779b97f4a7c15u;
  privateer.msync();
  for (std::uint64_t i = 0; i < kBytes / 8; ++i) ASSERT_EQ(data[i], i * 0x9e3779b97f4a7c15u);
  const Variable bad("PRIVATEER_MAX_MEM_BLOCKS", "many");
  expect_error(Errc::invalid_argument, {"PRIVATEER_MAX_MEM_BLOCKS=many"},
               [&] { privateer.create(nullptr, "v1", kBlock, false); });
  EXPECT_FALSE(privateer.version_exists("v1"));
}

}  // namespace
}  // namespace vellum::test
