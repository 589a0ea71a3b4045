// Every kind of error has a message that names its subject.
#include <sys/resource.h>

#include <fstream>

#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Errors : public StoreTest {};

TEST_P(Errors, PathsThatAreNoStoreAreRefused) {
  expect_error(Errc::not_found, {path()}, [&] { (void)Store::open(path()); });
  expect_error(Errc::not_found, {directory_ / "no/store"},
               [&] { Store::create(directory_ / "no/store"); });
  std::filesystem::create_directory(directory_ / "other");
  std::ofstream(directory_ / "other/file") << "text";
  expect_error(Errc::not_a_store, {directory_ / "other"},
               [&] { (void)Store::open(directory_ / "other"); });
  expect_error(Errc::already_exists, {directory_ / "other"},
               [&] { Store::create(directory_ / "other"); });
  expect_error(Errc::already_exists, {directory_ / "other"},
               [&] { Store::open_or_create(directory_ / "other"); });
  EXPECT_EQ(std::filesystem::file_size(directory_ / "other/file"), 4u);
  std::ofstream(directory_ / "plain") << "text";
  EXPECT_THROW((void)Store::open(directory_ / "plain"), Error);
  EXPECT_THROW(Store::create(directory_ / "plain"), Error);
  EXPECT_THROW(Store::open_or_create(directory_ / "plain"), Error);
  EXPECT_EQ(std::filesystem::file_size(directory_ / "plain"), 4u);
  create();
  expect_error(Errc::already_exists, {path()}, [&] { Store::create(path()); });
  std::filesystem::create_directory(directory_ / "empty");
  Store::create(directory_ / "empty").create_region("main", kMiB, options());
  (void)Store::open_or_create(directory_ / "empty").open_region("main", options());
}

TEST_P(Errors, ANewerFormatIsNotChanged) {
  create().create_region("main", kMiB, options()).commit();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
    if (!entry.is_regular_file()) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    char magic[8] = {};
    file.read(magic, sizeof magic);
    if (std::string(magic, 6) != "VELLUM") continue;
    file.seekp(8);
    file.put(99);
  }
  expect_error(Errc::newer_format, {path()}, [&] { (void)Store::open(path()); });
  expect_error(Errc::newer_format, {path()}, [&] { Store::open_or_create(path()); });
}

TEST_P(Errors, OptionsOutOfRangeAreRefused) {
  const auto refuse = [&](const char* name, auto change) {
    StoreOptions options;
    change(options);
    expect_error(Errc::invalid_argument, {name}, [&] { Store::create(path(), options); });
    EXPECT_FALSE(std::filesystem::exists(path()));
  };
  for (const std::uint32_t bytes : {0u, 1u, 2048u, 4097u, 3u << 16, 256u << 20}) {
    refuse("block_bytes", [&](StoreOptions& o) { o.encoding.block_bytes = bytes; });
  }
  for (const std::uint64_t bytes : {0ULL, 1ULL << 19, 1ULL << 41}) {
    refuse("pack_bytes", [&](StoreOptions& o) { o.pack_bytes = bytes; });
  }
  for (const std::uint32_t bytes : {0u, 4096u, (64u << 10) + 1, 128u << 20}) {
    refuse("journal_half_bytes", [&](StoreOptions& o) { o.journal_half_bytes = bytes; });
  }
  for (const int level : {-1, 0, 20, 256 + 3}) {
    refuse("compression_level", [&](StoreOptions& o) { o.encoding.compression_level = level; });
  }
}

TEST_P(Errors, OptionsAreKept) {
  StoreOptions chosen;
  chosen.encoding.compression = Encoding::Compression::lz4;
  chosen.encoding.block_bytes = 256u << 10;
  chosen.pack_bytes = 16u << 20;
  chosen.journal_half_bytes = 128u << 10;
  const std::string id = create(chosen).id();
  EXPECT_EQ(id.size(), 32u);
  const Store store = Store::open(path());
  EXPECT_EQ(store.id(), id);
  EXPECT_EQ(store.path(), path());
  EXPECT_EQ(store.options().encoding.compression, chosen.encoding.compression);
  EXPECT_EQ(store.options().encoding.block_bytes, chosen.encoding.block_bytes);
  EXPECT_EQ(store.options().pack_bytes, chosen.pack_bytes);
  EXPECT_EQ(store.options().journal_half_bytes, chosen.journal_half_bytes);
}

TEST_P(Errors, ImpossibleRegionSizesAreRefused) {
  Store store = create();
  EXPECT_ERRC(store.create_region("main", 0, options()), Errc::invalid_argument);
  EXPECT_ERRC(store.create_region("main", ~std::uint64_t{0}, options()), Errc::invalid_argument);
  EXPECT_ERRC(store.create_region("main", (1ULL << 46) + 1, options()), Errc::invalid_argument);
  EXPECT_FALSE(store.contains("main"));
  Region region = store.create_region("main", kMiB, options());
  std::byte byte{};
  expect_error(Errc::invalid_argument, {"main"}, [&] { store.read("main", kMiB, &byte, 1); });
  expect_error(Errc::invalid_argument, {"main"},
               [&] { store.read("main", ~std::uint64_t{0}, &byte, 2); });
  store.read("main", kMiB, &byte, 0);
  store.read("main", kMiB - 1, &byte, 1);
}

TEST_P(Errors, MissingAddressSpaceIsAnError_NoSanitizer) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer needs the address space that is limited here";
  create().create_region("main", kMiB, options()).close();
  EXPECT_CHILD_EXIT(run_child([&] {
                      const rlimit limit{8ULL << 30, 8ULL << 30};
                      setrlimit(RLIMIT_AS, &limit);
                      Store store = Store::open(path());
                      RegionOptions huge = options();
                      huge.capacity_bytes = 64ULL << 30;
                      try {
                        (void)store.open_region("main", huge);
                        require(false, "it is refused");
                      } catch (const Error& error) {
                        require(error.code() == Errc::out_of_memory, error.what());
                      }
                      Region region = store.open_region("main", options());
                      word_at(region, 0) = 1;
                      region.commit();
                    }),
                    0);
}

TEST_P(Errors, TheEnvironmentChoosesAnEngine) {
  create().create_region("main", kMiB, options()).close();
  const auto open_with = [&](const char* value) {
    return run_child([&] {
      setenv("VELLUM_ENGINE", value, 1);
      RegionOptions automatic = options();
      automatic.engine = Engine::automatic;
      const Region region = Store::open(path()).open_region("main", automatic);
      require(std::string(value) == engine_name(region.engine()), "the engine that was chosen");
      RegionOptions explicit_one = options();
      Region version = Store::open(path()).open_version("main", explicit_one);
      const bool as_chosen = version.engine() == GetParam();
      const bool has_no_image = GetParam() == Engine::mapped && version.engine() != Engine::mapped;
      require(as_chosen || has_no_image, "the program's own choice counts more");
    });
  };
  EXPECT_CHILD_EXIT(open_with(engine_name(GetParam())), 0);
  const auto end = open_with("magic");
  EXPECT_CHILD_EXIT(end, kThrew);
  EXPECT_NE(end.standard_error.find("VELLUM_ENGINE"), std::string::npos);
}

VELLUM_BOTH_ENGINES(Errors);

}  // namespace
}  // namespace vellum::test
