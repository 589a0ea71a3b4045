// Versions as plain files, and plain files as versions.
#include <sys/stat.h>
#include <algorithm>

#include <filesystem>
#include <fstream>

#include "support/child.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class ExportImport : public StoreTest {
 protected:
  static std::vector<std::byte> read_file(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::vector<char> text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::vector<std::byte> bytes(text.size());
    std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return std::byte(c); });
    return bytes;
  }
  static void write_file(const std::string& file, const std::vector<std::byte>& bytes) {
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  static std::uint64_t occupied_bytes(const std::string& file) {
    struct stat info{};
    return stat(file.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * 512 : 0;
  }
};

TEST_P(ExportImport, RoundTrip) {
  Store store = create();
  Region region = store.create_region("main", 3 * kMiB, options());
  std::memset(region.data(), 5, kMiB);
  word_at(region, 2 * kMiB) = 1;
  region.snapshot("s");
  const auto expected = content_of(region);
  std::uint64_t last = 0;
  store.export_file("s", directory_ / "s.img", [&](const Progress& progress) {
    EXPECT_GE(progress.done, last);
    last = progress.done;
    EXPECT_EQ(progress.total, 3 * kMiB);
  });
  EXPECT_EQ(last, 3 * kMiB);
  EXPECT_EQ(read_file(directory_ / "s.img"), expected);
  EXPECT_LE(occupied_bytes(directory_ / "s.img"), kMiB + 64 * 1024);

  const auto report = store.import_file("copy", directory_ / "s.img", "from a file");
  EXPECT_EQ(report.pages_changed, 257u);
  EXPECT_EQ(content_of(store, "copy"), expected);
  EXPECT_EQ(store.version("copy").message, "from a file");
  EXPECT_EQ(store.diff("s", "copy", nullptr).bytes_different, 0u);
  EXPECT_EQ(content_of(store.open_region("copy", options())), expected);
}

TEST_P(ExportImport, OnlyPagesThatDifferAreStored) {
  Store store = create();
  std::vector<std::byte> content(2 * kMiB);
  std::uint64_t random = 1;
  for (auto& b : content) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<std::byte>(random >> 56);
  }
  write_file(directory_ / "file", content);
  EXPECT_EQ(store.import_file("main", directory_ / "file", "").pages_changed, 512u);
  EXPECT_EQ(store.import_file("main", directory_ / "file", "").pages_changed, 0u);
  content[5 * kPage + 1] ^= std::byte{1};
  content[300 * kPage] ^= std::byte{1};
  write_file(directory_ / "file", content);
  const auto report = store.import_file("main", directory_ / "file", "");
  EXPECT_EQ(report.pages_changed, 2u);
  EXPECT_LT(report.bytes_written, 1000u);
  EXPECT_EQ(content_of(store, "main"), content);
}

TEST_P(ExportImport, FilesOfOtherSizes) {
  Store store = create();
  write_file(directory_ / "long", std::vector<std::byte>(40 * kPage + 100, std::byte{3}));
  write_file(directory_ / "short", std::vector<std::byte>(7 * kPage + 5, std::byte{4}));
  store.import_file("main", directory_ / "short", "");
  EXPECT_EQ(store.version("main").region_bytes, 8 * kPage);
  store.import_file("main", directory_ / "long", "");
  EXPECT_EQ(store.version("main").region_bytes, 41 * kPage);
  auto content = content_of(store, "main");
  EXPECT_EQ(content[40 * kPage + 99], std::byte{3});
  EXPECT_TRUE(all_zero(content.data() + 40 * kPage + 100, kPage - 100));
  store.import_file("main", directory_ / "short", "");
  content = content_of(store, "main");
  EXPECT_EQ(content[7 * kPage + 4], std::byte{4});
  EXPECT_TRUE(all_zero(content.data() + 7 * kPage + 5, content.size() - 7 * kPage - 5));
}

TEST_P(ExportImport, AFileOfAnySizeIsExportedUnchanged) {
  Store store = create();
  std::vector<std::vector<std::byte>> files;
  for (const std::uint64_t size : {40 * kPage + 100, 7 * kPage + 5, std::uint64_t{0}, 2 * kPage,
                                   std::uint64_t{1}, 40 * kPage + 101}) {
    files.emplace_back(size, static_cast<std::byte>(files.size() + 1));
    const auto n = std::to_string(files.size());
    write_file(directory_ / ("in" + n), files.back());
    EXPECT_EQ(store.import_file("main", directory_ / ("in" + n), "").sequence, files.size());
    EXPECT_EQ(store.import_file("main", directory_ / ("in" + n), "").sequence, files.size());
    store.create_snapshot("v" + n, "main");
    EXPECT_EQ(store.version("main").file_bytes, size);
    EXPECT_EQ(store.version("main").region_bytes, 41 * kPage);
    const auto content = content_of(store, "main");
    EXPECT_TRUE(all_zero(content.data() + size, content.size() - size)) << size;
  }
  write_file(directory_ / "empty", {});
  store.import_file("new", directory_ / "empty", "");
  store.export_file("new", directory_ / "new");
  EXPECT_TRUE(std::filesystem::exists(directory_ / "new"));
  EXPECT_EQ(std::filesystem::file_size(directory_ / "new"), 0u);
  for (std::size_t i = 1; i <= files.size(); ++i) {
    const auto n = std::to_string(i);
    std::uint64_t done = 0;
    store.export_file("v" + n, directory_ / ("out" + n), [&](const Progress& progress) {
      done = progress.done;
      EXPECT_EQ(progress.total, files[i - 1].size());
    });
    EXPECT_EQ(done, files[i - 1].size());
    EXPECT_EQ(read_file(directory_ / ("out" + n)), files[i - 1]);
  }
  Store other = Store::create(directory_ / "other");
  other.import_version("copy", store, "v1", "");
  other.import_version("copy", store, "v2", "");
  EXPECT_EQ(other.version("copy").file_bytes, 7 * kPage + 5);
  EXPECT_EQ(content_of(other, "copy"), content_of(store, "v2"));
  other.export_file("copy", directory_ / "copy");
  EXPECT_EQ(read_file(directory_ / "copy"), files[1]);
}

// It need not know how long it is.
TEST_P(ExportImport, AStreamIsReadToItsEnd) {
  Store store = create();
  for (const std::size_t length : {5 * kMiB + 77, std::size_t{0}, kPage + 1}) {
    const std::vector<std::byte> content(length, std::byte{9});
    std::size_t at = 0;
    const auto read = [&](void* to, std::size_t capacity_bytes) {
      const std::size_t n = std::min({capacity_bytes, length - at, std::size_t{12345}});
      std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(at), n,
                  static_cast<std::byte*>(to));
      at += n;
      return n;
    };
    store.import_stream("main", read, 3 * kPage, "");
    EXPECT_EQ(store.version("main").file_bytes, length);
    const std::string file = directory_ / ("of" + std::to_string(length));
    store.export_file("main", file);
    EXPECT_EQ(read_file(file), content);
  }
}

TEST_P(ExportImport, AFailedStreamCreatesNothing) {
  Store store = create();
  int pieces = 0;
  const auto fails = [&](void* to, std::size_t capacity_bytes) -> std::size_t {
    if (++pieces % 2 == 0) throw Error(Errc::busy, "changed meanwhile");
    std::memset(to, 1, capacity_bytes);
    return capacity_bytes;
  };
  expect_error(Errc::busy, {"changed"}, [&] { store.import_stream("new", fails, kMiB, ""); });
  EXPECT_FALSE(store.contains("new"));
  write_file(directory_ / "file", {std::byte{1}});
  store.import_file("main", directory_ / "file", "");
  expect_error(Errc::busy, {"changed"}, [&] { store.import_stream("main", fails, kMiB, ""); });
  EXPECT_EQ(store.version("main").sequence, 1u);
  EXPECT_EQ(store.version("main").file_bytes, 1u);
}

// The branch is not visible before it is whole, and gc removes its leftovers.
TEST_P(ExportImport, AKilledImportLeavesNoVisibleBranch) {
  Store store = create();
  const auto packs_and_branches = [&] {
    std::size_t count = 0;
    for (const char* directory : {"/packs", "/branches"}) {
      const std::filesystem::directory_iterator files(path() + directory);
      count += static_cast<std::size_t>(std::distance(begin(files), end(files)));
    }
    return count;
  };
  const auto end = run_child([&] {
    int pieces = 0;
    std::uint64_t random = 1;
    Store::open(path()).import_stream(
        "new",
        [&](void* to, std::size_t capacity_bytes) -> std::size_t {
          if (++pieces == 8) ::kill(::getpid(), SIGKILL);
          auto* const words = static_cast<std::uint64_t*>(to);
          for (std::size_t i = 0; i < capacity_bytes / 8; ++i) {
            words[i] = random = random * 6364136223846793005u + 1442695040888963407u;
          }
          return capacity_bytes;
        },
        64 * kMiB, "");
  });
  EXPECT_CHILD_SIGNAL(end, SIGKILL);
  EXPECT_GE(packs_and_branches(), 2u) << "it was on its way";
  EXPECT_FALSE(store.contains("new"));
  EXPECT_TRUE(store.versions().empty());
  store.collect_garbage();
  EXPECT_EQ(packs_and_branches(), 0u);
  EXPECT_TRUE(store.verify().damages.empty());
}

// The data of an import belongs to its branch, which continues in the same pack.
TEST_P(ExportImport, ANewBranchContinuesInItsOwnPack) {
  Store store = create();
  for (int i = 1; i <= 3; ++i) {
    write_file(directory_ / "file", std::vector<std::byte>(static_cast<std::size_t>(i) * kMiB,
                                                           static_cast<std::byte>(i)));
    store.import_file("main", directory_ / "file", "");
    if (i == 1) {
      EXPECT_EQ(store.version("main").pages_changed, 256u);
    }
  }
  const std::filesystem::directory_iterator packs(path() + "/packs");
  EXPECT_EQ(std::distance(begin(packs), end(packs)), 1);
}

TEST_P(ExportImport, SparseStaysSparse) {
  Store store = create();
  constexpr std::uint64_t kHuge = 64ULL << 30;
  RegionOptions huge = options();
  huge.capacity_bytes = 0;
  {
    Region region = store.create_region("main", kHuge, huge);
    word_at(region, 0) = 1;
    word_at(region, kHuge - 8) = 2;
    region.commit();
  }
  store.export_file("main", directory_ / "huge.img");
  EXPECT_EQ(std::filesystem::file_size(directory_ / "huge.img"), kHuge);
  EXPECT_LE(occupied_bytes(directory_ / "huge.img"), 64 * 1024u);
}

// If each MiB were read, as in a full file, progress would have 16,384 steps. Only one of the files
// has the first page: what it was becomes zero.
TEST_P(ExportImport, HolesOfAFileAreNotRead) {
  Store store = create();
  constexpr std::uint64_t kSize = 16ULL << 30;
  const auto make = [&](const std::string& name, const std::vector<std::uint64_t>& pages) {
    std::ofstream out(directory_ / name, std::ios::binary);
    for (const std::uint64_t page : pages) {
      out.seekp(static_cast<std::streamoff>(page * kPage));
      out << name;
    }
    out.close();
    std::filesystem::resize_file(directory_ / name, kSize + 7);
  };
  const auto import = [&](const std::string& name) {
    std::uint64_t steps = 0, last = 0;
    const auto report =
        store.import_file("main", directory_ / name, "", [&](const Progress& progress) {
          ++steps;
          EXPECT_GT(progress.done, last);
          last = progress.done;
        });
    EXPECT_LE(steps, 10u) << name;
    EXPECT_EQ(last, kSize + 7) << name;
    return report.pages_changed;
  };
  const auto word = [&](std::uint64_t page) {
    std::string text(5, ' ');
    store.read("main", page * kPage, text.data(), text.size());
    return text;
  };
  make("first", {0, 1'000'000, 4'000'000});
  make("other", {1'000'000, 3'000'000});
  EXPECT_EQ(import("first"), 3u);
  EXPECT_EQ(import("first"), 0u);
  EXPECT_EQ(import("other"), 4u);
  EXPECT_EQ(word(0), std::string(5, '\0'));
  EXPECT_EQ(word(1'000'000), "other");
  EXPECT_EQ(word(3'000'000), "other");
  EXPECT_EQ(word(4'000'000), std::string(5, '\0'));

  std::uint64_t steps = 0;
  store.export_file("main", directory_ / "out", [&](const Progress&) { ++steps; });
  EXPECT_LE(steps, 10u);
  EXPECT_EQ(std::filesystem::file_size(directory_ / "out"), kSize + 7);
  EXPECT_LE(occupied_bytes(directory_ / "out"), 64 * 1024u);
  EXPECT_EQ(import("out"), 0u);
}

TEST_P(ExportImport, ErrorsNameTheFile) {
  Store store = create();
  store.create_region("main", kMiB, options()).commit();
  write_file(directory_ / "there", {std::byte{1}});
  expect_error(Errc::already_exists, {"there"},
               [&] { store.export_file("main", directory_ / "there"); });
  EXPECT_EQ(read_file(directory_ / "there").size(), 1u);
  expect_error(Errc::not_found, {"gone"},
               [&] { store.import_file("main", directory_ / "gone", ""); });
  EXPECT_FALSE(store.contains("gone"));
  Region region = store.open_region("main", options());
  expect_error(Errc::busy, {"main"}, [&] { store.import_file("main", directory_ / "there", ""); });
}

VELLUM_BOTH_ENGINES(ExportImport);

}  // namespace
}  // namespace vellum::test
