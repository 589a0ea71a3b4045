// The storage classes that Metall's manager is built on, driven as its kernel drives them (0.30):
// the same calls in the same order, with metadata of the test's own. Needs nothing of Metall.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vellum/metall_storage.hpp>

#include "base/temp_directory.hpp"

namespace vellum::test {
namespace {

namespace fs = std::filesystem;

struct Traits {
  struct segment_header_type {
    void* manager_kernel_address = nullptr;
  };
  static void error(const char* text) { errors() += std::string(text) + "\n"; }
  static std::string& errors() {
    static std::string all;
    return all;
  }
};
using Storage = basic_metall_storage<Traits>;
using Segment = basic_metall_segment_storage<Traits>;

// Uses the two classes as Metall's kernel does. Its metadata is one file: the number of used words
// of the segment.
class Kernel {
 public:
  ~Kernel() { close(); }

  bool create(const fs::path& path, std::size_t capacity) {
    if (!Storage::create(path) || !fs::create_directory(Storage::get_path(path, "management"))) {
      return false;
    }
    path_ = path;
    if (!segment_.create(path, capacity)) return false;
    segment_.get_segment_header().manager_kernel_address = this;
    write(path, "manager_metadata", "uuid of " + path.filename().string());
    return write_metadata() && segment_.sync(true);
  }
  bool open(const fs::path& path, std::size_t capacity, bool read_only) {
    if (read(path, "manager_metadata").empty() || !Storage::consistent(path)) return false;
    path_ = path;
    if (!segment_.open(path, capacity, read_only)) return false;
    segment_.get_segment_header().manager_kernel_address = this;
    words_ = std::stoul(read(path, "metadata"));
    return true;
  }
  void close() {
    if (!segment_.is_open()) return;
    if (!segment_.read_only()) {
      write_metadata();
      segment_.sync(true);
    }
    segment_.release();
  }
  bool flush(bool wait) { return write_metadata() && segment_.sync(wait); }
  bool snapshot(const fs::path& to) {
    write_metadata();
    if (!Storage::create(to)) return false;
    fs::create_directory(Storage::get_path(to, "management"));
    if (!segment_.snapshot(to, true, 1)) return false;
    fs::copy_file(Storage::get_path(path_, {"management", "metadata"}),
                  Storage::get_path(to, {"management", "metadata"}),
                  fs::copy_options::overwrite_existing);
    write(to, "manager_metadata", "uuid of " + to.filename().string());
    return true;
  }

  void push_back(std::uint64_t value) {
    const std::size_t needed = (words_ + 1) * 8;
    if (needed > segment_.size()) {
      ASSERT_TRUE(segment_.extend(needed));
    }
    static_cast<std::uint64_t*>(segment_.get_segment())[words_++] = value;
  }
  // Every used word of the segment is its index.
  bool is_whole() const {
    for (std::size_t i = 0; i < words_; ++i) {
      if (static_cast<const std::uint64_t*>(segment_.get_segment())[i] != i) return false;
    }
    return true;
  }
  std::size_t words() const { return words_; }
  Segment& segment() { return segment_; }

  static std::string read(const fs::path& path, const std::string& name) {
    std::ifstream in(Storage::get_path(path, {"management", name}));
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  static bool write(const fs::path& path, const std::string& name, const std::string& text) {
    std::ofstream out(Storage::get_path(path, {"management", name}));
    return static_cast<bool>(out << text);
  }
  bool write_metadata() { return write(path_, "metadata", std::to_string(words_)); }

  fs::path path_;
  Segment segment_;
  std::size_t words_ = 0;
};

class MetallStorage : public testing::Test {
 protected:
  MetallStorage() { Traits::errors().clear(); }
  fs::path path(const std::string& name = "ds") const { return fs::path(directory_ / name); }
  static void fill(Kernel& kernel, std::size_t words) {
    while (kernel.words() < words) kernel.push_back(kernel.words());
  }
  void expect_words(const fs::path& at, std::size_t words) const {
    Kernel kernel;
    ASSERT_TRUE(kernel.open(at, kCapacity, true)) << at << ": " << Traits::errors();
    EXPECT_EQ(kernel.words(), words) << at;
    EXPECT_TRUE(kernel.is_whole()) << at;
  }

  static constexpr std::size_t kCapacity = 1u << 30;
  TempDirectory directory_;
};

TEST_F(MetallStorage, CreateCloseOpen) {
  {
    Kernel kernel;
    ASSERT_TRUE(kernel.create(path(), kCapacity)) << Traits::errors();
    EXPECT_TRUE(kernel.segment().is_open());
    EXPECT_FALSE(kernel.segment().read_only());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(kernel.segment().get_segment()) % (2u << 20), 0u);
    fill(kernel, 100'000);
  }
  expect_words(path(), 100'000);
  {
    Kernel kernel;
    ASSERT_TRUE(kernel.open(path(), kCapacity, false));
    EXPECT_TRUE(kernel.is_whole());
    fill(kernel, 10'000'000);  // larger than the first extent
  }
  expect_words(path(), 10'000'000);
  EXPECT_EQ(Traits::errors(), "");
}

TEST_F(MetallStorage, TheHeaderIsOnePageBeforeTheSegmentAndPrivate) {
  Kernel kernel;
  ASSERT_TRUE(kernel.create(path(), kCapacity));
  auto* const header = reinterpret_cast<std::byte*>(&kernel.segment().get_segment_header());
  EXPECT_EQ(header + 4096, static_cast<std::byte*>(kernel.segment().get_segment()));
  EXPECT_EQ(kernel.segment().get_segment_header().manager_kernel_address, &kernel);
  kernel.close();
  Kernel first, second;
  ASSERT_TRUE(first.open(path(), 0, true));
  ASSERT_TRUE(second.open(path(), 0, true));  // any number of readers
  EXPECT_EQ(first.segment().get_segment_header().manager_kernel_address, &first);
  EXPECT_EQ(second.segment().get_segment_header().manager_kernel_address, &second);
}

TEST_F(MetallStorage, SnapshotsHaveTheirOwnIdentity) {
  {
    Kernel kernel;
    ASSERT_TRUE(kernel.create(path(), kCapacity));
    fill(kernel, 10);
    ASSERT_TRUE(kernel.snapshot(path("one")));
    fill(kernel, 20);
    ASSERT_TRUE(kernel.snapshot(path("ds@two")));
    fill(kernel, 30);
    ASSERT_TRUE(kernel.snapshot(path("one")));  // replaces it, as Metall does
    fill(kernel, 40);
    expect_words(path("one"), 30);
    expect_words(path("ds@two"), 20);
  }
  expect_words(path(), 40);
  EXPECT_EQ(Kernel::read(path(), "manager_metadata"), "uuid of ds");
  EXPECT_EQ(Kernel::read(path("one"), "manager_metadata"), "uuid of one");
  EXPECT_EQ(Kernel::read(path("ds@two"), "manager_metadata"), "uuid of ds@two");
}

TEST_F(MetallStorage, CopyAndRemove) {
  {
    Kernel kernel;
    ASSERT_TRUE(kernel.create(path(), kCapacity));
    fill(kernel, 1000);
  }
  ASSERT_TRUE(Storage::create(path("copy")));
  ASSERT_TRUE(Segment::copy(path(), path("copy"), true, 1)) << Traits::errors();
  EXPECT_TRUE(
      Storage::consistent(path("copy")));  // as the kernel says when it has copied its files
  ASSERT_TRUE(Storage::remove(path()));
  EXPECT_FALSE(fs::exists(path()));
  expect_words(path("copy"), 1000);
}

TEST_F(MetallStorage, FreedPagesAreZeroAndTakeNoSpace) {
  Kernel kernel;
  ASSERT_TRUE(kernel.create(path(), kCapacity));
  fill(kernel, 1'000'000);
  ASSERT_TRUE(kernel.segment().free_region(4096, 7'000'000 / 4096 * 4096));
  EXPECT_EQ(static_cast<std::uint64_t*>(kernel.segment().get_segment())[512], 0u);
  EXPECT_EQ(static_cast<std::uint64_t*>(kernel.segment().get_segment())[511], 511u);
  EXPECT_FALSE(kernel.segment().free_region(0, kCapacity));
  EXPECT_FALSE(kernel.segment().free_region(-4096, 4096));
}

TEST_F(MetallStorage, FailuresReturnFalseAndAReason) {
  Kernel kernel;
  EXPECT_FALSE(kernel.open(path(), kCapacity, true));
  ASSERT_TRUE(kernel.create(path(), kCapacity));
  Traits::errors().clear();
  Segment second;
  EXPECT_FALSE(second.open(path(), kCapacity, false));
  EXPECT_NE(Traits::errors().find("has a writer"), std::string::npos) << Traits::errors();
  EXPECT_NE(vellum::detail::metall_last_error().find("has a writer"), std::string::npos);
  EXPECT_FALSE(second.is_open());
  EXPECT_FALSE(second.sync(true));
  EXPECT_FALSE(second.extend(1));
  EXPECT_FALSE(second.release());
  EXPECT_FALSE(kernel.segment().create(path("other"), kCapacity));  // one at a time
  EXPECT_FALSE(kernel.segment().extend(kCapacity + 1));
  EXPECT_NE(vellum::detail::metall_last_error().find("capacity"), std::string::npos);
  kernel.close();
  ASSERT_TRUE(kernel.open(path(), kCapacity, true));
  EXPECT_TRUE(kernel.segment().read_only());
  EXPECT_FALSE(kernel.segment().extend(kCapacity));
  EXPECT_FALSE(kernel.segment().snapshot(path("s"), true, 1));
  EXPECT_TRUE(kernel.segment().sync(true));  // nothing to do
}

TEST_F(MetallStorage, AStorageMovesWithItsSegment) {
  Segment a;
  ASSERT_TRUE(Storage::create(path()));
  ASSERT_TRUE(a.create(path(), kCapacity));
  void* const segment = a.get_segment();
  Segment b(std::move(a));
  EXPECT_EQ(b.get_segment(), segment);
  Segment c;
  c = std::move(b);
  EXPECT_EQ(c.get_segment(), segment);
  EXPECT_TRUE(c.is_open());
  *static_cast<std::uint64_t*>(segment) = 5;
  EXPECT_TRUE(c.sync(true));
}

// flush(false): earlier stores are included, later ones are not.
TEST_F(MetallStorage, AStorageSyncsInTheBackground) {
  {
    Kernel kernel;
    ASSERT_TRUE(kernel.create(path(), kCapacity));
    fill(kernel, 1'000);
    ASSERT_TRUE(kernel.flush(false));
    fill(kernel, 2'000);
    kernel.segment().release();  // waits for the asynchronous commit, and commits no more
  }
  expect_words(path(), 1'000);
}

}  // namespace
}  // namespace vellum::test
