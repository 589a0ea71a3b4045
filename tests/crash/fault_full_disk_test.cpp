// A real disk that fills up: ext4 on a small file, mounted in the test's own mount namespace.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <vellum/store.hpp>

#include "support/child.hpp"

namespace vellum::crash {
namespace {

constexpr int kCannotMount = 42;
constexpr std::size_t kRegionBytes = 24 << 20;

// An ext4 of 24 MiB, in a mount namespace that ends with the process.
void mount_small_disk(const std::string& directory) {
  const std::string image = directory + "/disk", mount_point = directory + "/mnt";
  std::filesystem::create_directory(mount_point);
  std::ofstream(image).close();
  std::filesystem::resize_file(image, 24 << 20);
  const bool private_mounts = ::unshare(CLONE_NEWNS) == 0 &&
                              ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  const std::string command =
      fmt::format("mkfs.ext4 -q '{0}' && mount -o loop '{0}' '{1}'", image, mount_point);
  if (!private_mounts || std::system(command.c_str()) != 0) ::_exit(kCannotMount);
}

void fill(Region& region, std::size_t from, std::size_t to, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto* words = static_cast<std::uint64_t*>(region.data());
  for (std::size_t i = from / 8; i < to / 8; ++i) words[i] = random();
}

bool holds(const void* data, std::size_t from, std::size_t to, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto* words = static_cast<const std::uint64_t*>(data);
  for (std::size_t i = from / 8; i < to / 8; ++i) {
    if (words[i] != random()) return false;
  }
  return true;
}

Errc commit_error(Region& region) {
  try {
    region.commit();
  } catch (const Error& e) {
    return e.code();
  }
  return Errc::ok;
}

void expect_last_commit(const Store& store) {
  std::vector<std::byte> first(1 << 20);
  store.read("main", 0, first.data(), first.size());
  test::require(holds(first.data(), 0, first.size(), 1), "the last commit is the head");
  std::uint64_t beyond = 1;
  store.read("main", 1 << 20, &beyond, sizeof beyond);
  test::require(beyond == 0, "nothing of the failed commit shows");
}

void fill_and_free(const std::string& mount_point, Engine engine) {
  const std::string ballast = mount_point + "/ballast";
  std::ofstream(ballast).write(std::vector<char>(8 << 20).data(), 8 << 20);
  auto store = Store::create(mount_point + "/s");
  RegionOptions options;
  options.engine = engine;
  {
    auto region = store.create_region("main", kRegionBytes, options);
    fill(region, 0, 1 << 20, 1);
    region.commit();
    fill(region, 1 << 20, 14 << 20, 2);  // does not fit
    for (int tries = 0; tries < 3; ++tries) {
      test::require(commit_error(region) == Errc::no_space, "the disk is full");
      expect_last_commit(store);
      fill(region, 20 << 20, (20 << 20) + 65536, 3);  // the region stays usable
      test::require(holds(region.data(), 1 << 20, 14 << 20, 2), "memory is as it was");
    }
    std::filesystem::remove(ballast);
    test::require(commit_error(region) == Errc::ok, "with free space, the commit succeeds");
  }
  auto region = store.open_region("main", options);
  test::require(holds(region.data(), 0, 1 << 20, 1) && holds(region.data(), 1 << 20, 14 << 20, 2) &&
                    holds(region.data(), 20 << 20, (20 << 20) + 65536, 3),
                "all content exists after reopening");
  region.close();
  test::require(store.verify({.read_data = true}).damages.empty(), "nothing is corrupted");
}

class FullDisk : public testing::TestWithParam<Engine> {};

TEST_P(FullDisk, TheLastCommitStaysAndTheRegionStaysUsable) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may mount a file system";
  std::string directory = "/tmp/vellum-disk-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const auto end = test::run_child([&] {
    mount_small_disk(directory);
    fill_and_free(directory + "/mnt", GetParam());
  });
  std::filesystem::remove_all(directory);
  if (end.exited_with(kCannotMount)) GTEST_SKIP() << "cannot mount an ext4 over a loop device";
  EXPECT_CHILD_EXIT(end, 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, FullDisk, testing::Values(Engine::automatic, Engine::sigsegv));

}  // namespace
}  // namespace vellum::crash
