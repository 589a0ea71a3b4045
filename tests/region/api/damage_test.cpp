// Corrupted bytes never reach the program: it gets an exception where one is possible, and otherwise
// SIGBUS.
#include <setjmp.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kDamagePages = 256;

class Corrupted : public StoreTest {
 protected:
  // Random pages, then changes to some of them: blocks, deltas and a page map in one pack.
  void SetUp() override {
    StoreTest::SetUp();
    Store store = create();
    Region region = store.create_region("main", kDamagePages * kPage, options());
    std::mt19937_64 random(1);
    for (std::uint64_t i = 0; i < kDamagePages * kPage / 2; i += 8) word_at(region, i) = random();
    region.snapshot("old");
    for (std::uint64_t page = 0; page < kDamagePages; page += 3)
      word_at(region, page * kPage) = page;
    region.snapshot("new");
    content_ = content_of(region);
    region.close();
    std::filesystem::copy(path(), directory_ / "whole", std::filesystem::copy_options::recursive);
  }

  // A fresh copy of the store with one byte changed. Returns the pack's path.
  std::string damage(std::uint64_t at, std::string* copy) {
    *copy = directory_ / ("corrupted" + std::to_string(copies_++));
    std::filesystem::copy(directory_ / "whole", *copy, std::filesystem::copy_options::recursive);
    const std::string pack = pack_of(*copy);
    std::fstream file(pack, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 0x10));
    return pack;
  }

  static std::string pack_of(const std::string& store) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(store)) {
      if (entry.path().extension() == ".pack") return entry.path();
    }
    return {};
  }

  std::uint64_t pack_bytes() const {
    return std::filesystem::file_size(pack_of(directory_ / "whole"));
  }

  std::vector<std::byte> content_;
  int copies_ = 0;
};

// This is in the middle of the pages' blocks, which are half a megabyte of bytes that do not
// compress.
constexpr std::uint64_t kInABlock = 200'000;

TEST_P(Corrupted, PrefetchAndPinNameTheCorruption) {
  std::string copy;
  const std::string pack = damage(kInABlock, &copy);
  Store store = Store::open(copy);
  Region version = store.open_version("new", options());
  const std::string file = std::filesystem::path(pack).filename();
  for (int round = 0; round < 2; ++round) {  // it is no better the second time
    expect_error(Errc::corrupted, {"new", "page", file},
                 [&] { version.prefetch(version.whole()); });
    const std::uint64_t half = kDamagePages * kPage / 2;
    expect_error(Errc::corrupted, {"new", "page", file},
                 [&] { version.prefetch(std::vector<ByteRange>{{half, half}, {0, half}}); });
    expect_error(Errc::corrupted, {"new", "page", file},
                 [&] { (void)version.pin(version.whole()); });
  }
  // Engine mapped compares an image that is not the recorded one, as after copying a store.
  expect_error(Errc::corrupted, {"main", "page", file}, [&] {
    Region region = store.open_region("main", options());
    EXPECT_NE(region.engine(), Engine::mapped) << "has not compared its image with the store";
    region.prefetch(region.whole());
  });
  std::vector<std::byte> out(content_.size());
  expect_error(Errc::corrupted, {"old", "page", file},
               [&] { store.read("old", 0, out.data(), out.size()); });
  expect_error(Errc::corrupted, {"old", "page", file},
               [&] { store.export_file("old", directory_ / "out"); });
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out"));
  // Whole pages stay readable.
  version.prefetch({kDamagePages * kPage / 2, kDamagePages * kPage / 2});
  EXPECT_TRUE(std::equal(content_.begin() + kDamagePages * kPage / 2, content_.end(),
                         bytes_of(version) + kDamagePages * kPage / 2));
  const auto report = store.verify({.read_data = true});
  ASSERT_EQ(report.damages.size(), 1u);
  EXPECT_NE(report.damages[0].object.find(file), std::string::npos) << report.damages[0].object;
  EXPECT_EQ(report.damages[0].versions.size(), 3u);
}

TEST_P(Corrupted, PlainAccessDiesBySigbusAfterOneLine) {
  std::string copy;
  const std::string pack = damage(kInABlock, &copy);
  for (const std::string& name : {std::string("new"), std::string("main")}) {
    const auto end = run_child([&] {
      Store store = Store::open(copy);
      Region region =
          name == "main" ? store.open_region(name, options()) : store.open_version(name, options());
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < content_.size(); ++i)
        wrong += bytes_of(region)[i] != content_[i];
      require(false, "all of it was read, " + std::to_string(wrong) + " bytes wrong");
    });
    const std::string& text = end.standard_error;
    if (name == "main" && GetParam() == Engine::mapped) {
      EXPECT_CHILD_EXIT(end, kThrew);  // opening it already says so
      EXPECT_NE(text.find(std::filesystem::path(pack).filename()), std::string::npos) << text;
      continue;
    }
    EXPECT_CHILD_SIGNAL(end, SIGBUS);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    const std::string file = std::filesystem::path(pack).filename();
    for (const std::string& part : {std::string("vellum: "), name, std::string("page"), file}) {
      EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
    }
  }
}

// A byte anywhere in the pack: every page is right, or is not delivered.
TEST_P(Corrupted, NoByteOfAPackCanGiveWrongData) {
  std::mt19937_64 random(3);
  int detected = 0;
  const int kRounds = rounds(60, 15);
  for (int round = 0; round < kRounds; ++round) {
    std::string copy;
    // Half of them are near the end, where deltas and page maps are.
    const std::uint64_t size = pack_bytes();
    const std::uint64_t at = random() % 2 == 0 ? random() % size : size - 1 - random() % 16'384;
    damage(at, &copy);
    bool any = false;
    try {
      Store store = Store::open(copy);
      Region version = store.open_version("new", options());
      for (std::uint64_t page = 0; page < kDamagePages; page += 8) {
        try {
          version.prefetch({page * kPage, 8 * kPage});
          ASSERT_EQ(std::memcmp(bytes_of(version) + page * kPage, content_.data() + page * kPage,
                                8 * kPage),
                    0)
              << "byte " << at;
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), Errc::corrupted) << error.what();
          any = true;
        }
      }
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::corrupted) << error.what();
      any = true;
    }
    detected += any;
    std::filesystem::remove_all(copy);
  }
  EXPECT_GT(detected, kRounds / 4);
}

TEST_P(Corrupted, AMissingOrTruncatedPackIsDamage) {
  std::string copy;
  const std::string pack = damage(0, &copy);
  std::filesystem::resize_file(pack, 100'000);
  const auto read_all = [&] {
    Region version = Store::open(copy).open_version("new", options());
    version.prefetch(version.whole());
  };
  expect_error(Errc::corrupted, {std::filesystem::path(pack).filename()}, read_all);
  std::filesystem::remove(pack);
  expect_error(Errc::corrupted, {std::filesystem::path(pack).filename()}, read_all);
}

// A program that handles SIGBUS itself may continue: the region is still served.
sigjmp_buf g_jump;
void* volatile g_address = nullptr;

void jump(int, siginfo_t* info, void*) {
  g_address = info->si_addr;
  siglongjmp(g_jump, 1);
}

const ChildProgram kSurvivor("survives damage", [](const auto& arguments) {
  struct sigaction action{};
  action.sa_sigaction = jump;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
  RegionOptions options;
  options.engine = engine_named(arguments.at(1));
  Store store = Store::open(arguments.at(0));
  Region version = store.open_version("new", options);
  volatile std::uint64_t lost = 0, read = 0;
  while (read + lost < kDamagePages) {
    volatile std::byte* const at = bytes_of(version) + (read + lost) * kPage + 9;
    if (sigsetjmp(g_jump, 1) == 0) {
      [[maybe_unused]] const std::byte seen = *at;
      read = read + 1;
    } else {
      require(g_address == bytes_of(version) + (read + lost) * kPage + 9, "the page's own address");
      lost = lost + 1;
    }
  }
  require(lost > 0 && lost <= 16, "one block is lost: " + std::to_string(lost));
  version.close();
});

TEST_P(Corrupted, AProgramsHandlerMayContinue) {
  std::string copy;
  damage(kInABlock, &copy);
  EXPECT_CHILD_EXIT(run_program("survives damage", {copy, engine_name(GetParam())}), 0);
}

TEST_P(Corrupted, RepairSavesWholeVersions) {
  std::string copy;
  damage(kInABlock, &copy);
  const std::string to = directory_ / ("repaired" + std::to_string(copies_));
  RepairOptions look;
  look.dry_run = true;
  const RepairReport found = Store::repair(copy, to, look);
  EXPECT_EQ(found.lost.size(), 3u);  // each version needs the block
  EXPECT_TRUE(found.destination.empty());
  EXPECT_FALSE(std::filesystem::exists(to));

  int calls = 0;
  const RepairReport whole =
      Store::repair(directory_ / "whole", to, {}, [&](const Progress&) { ++calls; });
  EXPECT_GT(calls, 0);
  EXPECT_EQ(whole.saved.size(), 3u);
  EXPECT_TRUE(whole.lost.empty());
  EXPECT_EQ(whole.destination, to);
  std::vector<std::byte> out(content_.size());
  Store::open(to).read("new", 0, out.data(), out.size());
  EXPECT_EQ(out, content_);
  EXPECT_ERRC(Store::repair(copy, to), Errc::already_exists);
  EXPECT_ERRC(Store::repair(copy, ""), Errc::invalid_argument);
}

// A name that cannot be read keeps its version from opening, not from being saved.
TEST_P(Corrupted, RepairFindsAVersionWhoseNameIsCorrupted) {
  std::string copy;
  const std::string pack = damage(kInABlock, &copy);
  std::filesystem::copy_file(pack_of(directory_ / "whole"), pack,
                             std::filesystem::copy_options::overwrite_existing);
  std::fstream(copy + "/snapshots/new.ref", std::ios::in | std::ios::out) << "damage";
  EXPECT_ERRC(Store::open(copy).version("new"), Errc::corrupted);
  const RepairReport report = Store::repair(copy, directory_ / "repaired");
  ASSERT_GE(report.saved.size(), 2u);
  EXPECT_EQ(std::count_if(report.saved.begin(), report.saved.end(),
                          [](const SavedVersion& saved) { return !saved.exact; }),
            1);
}

VELLUM_BOTH_ENGINES(Corrupted);

}  // namespace
}  // namespace vellum::test
