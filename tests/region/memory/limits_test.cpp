// Limits of batch systems (ulimit -v, -d, -f, -n) and of containers: a region of the default
// options opens, a missing resource is an error that names the remedy, and no signal ends the
// program.
#include <csignal>

#include <sys/resource.h>

#include <vellum/atomic_file.hpp>

#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Limits : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (kSanitizer) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  }
  RegionOptions options() const {
    RegionOptions options;
    options.engine = GetParam();
    return options;
  }
  static void limit(int resource, rlim_t most) {
    rlimit now{};
    require(getrlimit(static_cast<__rlimit_resource>(resource), &now) == 0, "getrlimit");
    now.rlim_cur = most;
    require(setrlimit(static_cast<__rlimit_resource>(resource), &now) == 0, "setrlimit");
  }
  // A store and a region by the default options, written, committed and read again.
  void use(const std::string& name) const {
    Store store = Store::open_or_create(path());
    {
      Region region = store.open_or_create_region(name, kMiB, options());
      require(region.capacity_bytes() >= 4 * kMiB, "has some room to grow");
      region.grow(4 * kMiB);
      for (std::uint64_t at = 0; at < 4 * kMiB; at += kPage) word_at(region, at) = at + 1;
      region.commit();
      region.snapshot(name + "-1");
      region.snapshot_async(name + "-2").get();
    }
    const Region again = store.open_version(name + "-2", RegionOptions{});
    for (std::uint64_t at = 0; at < 4 * kMiB; at += kPage) {
      require(word_at(again, at) == at + 1, "the content is there");
    }
    store.collect_garbage();
    require(store.verify({.read_data = true}).damages.empty(), "the store is whole");
  }
};

TEST_P(Limits, ADefaultRegionOpensUnderALimitOfAddressSpace_NoSanitizer) {
  for (const rlim_t kib : {rlim_t{2'000'000}, rlim_t{1'000'000}}) {
    EXPECT_CHILD_EXIT(run_child([&] {
                        limit(RLIMIT_AS, kib << 10);
                        use("v" + std::to_string(kib));
                      }),
                      0);
  }
}

TEST_P(Limits, ARegionLeavesAddressSpaceToOthers_NoSanitizer) {
  EXPECT_CHILD_EXIT(
      run_child([&] {
        limit(RLIMIT_AS, rlim_t{4'000'000} << 10);
        Store store = Store::create(path());
        std::vector<Region> regions;
        for (int i = 0; i < 4; ++i) {
          regions.push_back(store.create_region("r" + std::to_string(i), kMiB, options()));
          require(regions.back().capacity_bytes() >= 64 * kMiB, "has room to grow");
        }
        std::vector<char> own(256 * kMiB);  // the program's
        for (const Region& region : regions) region.data();
      }),
      0);
}

TEST_P(Limits, ARefusalNamesTheOptionThatHelps_NoSanitizer) {
  Store::create(path()).create_region("main", kMiB, options()).close();
  EXPECT_CHILD_EXIT(run_child([&] {
                      limit(RLIMIT_AS, rlim_t{2'000'000} << 10);
                      RegionOptions large = options();
                      large.capacity_bytes = 64ULL << 30;
                      try {
                        (void)Store::open(path()).open_region("main", large);
                        require(false, "it is refused");
                      } catch (const Error& e) {
                        require(e.code() == Errc::out_of_memory, e.what());
                        require(std::string(e.what()).find("capacity_bytes") != std::string::npos,
                                e.what());
                      }
                    }),
                    0);
}

TEST_P(Limits, ARegionOpensUnderALimitOfWritableMemory_NoSanitizer) {
  EXPECT_CHILD_EXIT(run_child([&] {
                      limit(RLIMIT_DATA, 512 * kMiB);
                      use("main");
                    }),
                    0);
}

// The kernel's answer to a larger file is a signal that kills (SIGXFSZ).
TEST_P(Limits, AFileSizeLimitIsAnErrorAndNoSignal_NoSanitizer) {
  EXPECT_CHILD_EXIT(
      run_child([&] {
        std::signal(SIGXFSZ, SIG_DFL);
        limit(RLIMIT_FSIZE, 40 * kMiB);
        Store store = Store::create(path());
        Region region = store.create_region("main", 4 * kMiB, options());
        std::uint64_t seed = 1;
        bool refused = false;
        for (int round = 0; round < 40 && !refused; ++round) {
          for (std::uint64_t at = 0; at < region.size_bytes(); at += 8) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            word_at(region, at) = seed ^ seed >> 33;
          }
          try {
            region.commit();
          } catch (const Error& e) {
            require(e.code() == Errc::no_space, e.what());
            require(std::string(e.what()).find("ulimit -f") != std::string::npos, e.what());
            refused = true;
          }
        }
        // Packs may always stay below the limit; a region that is larger than the limit does not.
        try {
          region.grow(std::min<std::uint64_t>(64 * kMiB, region.capacity_bytes()));
          std::memset(bytes_of(region), 1, region.size_bytes());
          region.commit();
        } catch (const Error& e) {
          require(e.code() == Errc::no_space || e.code() == Errc::out_of_memory, e.what());
        }
        limit(RLIMIT_FSIZE, RLIM_INFINITY);
        word_at(region, 0) = 7;
        region.commit();
        region.close();
        require(word_at(store.open_region("main", options()), 0) == 7, "the region is usable");
      }),
      0);
}

TEST_P(Limits, FewDescriptorsSufficeOrAreAnError_NoSanitizer) {
  for (const rlim_t descriptors : {rlim_t{8}, rlim_t{12}, rlim_t{16}, rlim_t{24}, rlim_t{40}}) {
    EXPECT_CHILD_EXIT(run_child([&] {
                        limit(RLIMIT_NOFILE, descriptors);
                        try {
                          use("n" + std::to_string(descriptors));
                        } catch (const Error& e) {
                          require(descriptors < 40, e.what());
                          require(e.code() == Errc::out_of_memory, e.what());
                        }
                      }),
                      0);
  }
}

VELLUM_BOTH_ENGINES(Limits);

TEST(LimitsOfAtomicFiles, AnAtomicFileOpensUnderALimitOfAddressSpace_NoSanitizer) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  const TempDirectory directory;
  const std::string path = directory / "file";
  ASSERT_EQ(close(open(path.c_str(), O_CREAT | O_RDWR, 0600)), 0);
  ASSERT_EQ(truncate(path.c_str(), kMiB), 0);
  EXPECT_CHILD_EXIT(run_child([&] {
                      const rlimit limit{2ULL << 30, 2ULL << 30};
                      require(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
                      AtomicFile file = AtomicFile::open(path);
                      static_cast<char*>(file.data())[5] = 1;
                      file.commit();
                    }),
                    0);
}

}  // namespace
}  // namespace vellum::test
