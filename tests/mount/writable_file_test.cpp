// WritableFile, without a mount: writes beside a commit, and writes that fail.
#include "mount/writable_file.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "base/temp_directory.hpp"
#include "region/api/store_impl.hpp"
#include "support/disk/hook_fs.hpp"

namespace vellum::mount {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class WritableFileTest : public testing::Test {
 protected:
  WritableFileTest() { store::StoreDirectory::create(disk, path(), {}); }

  std::string path() const { return directory_ / "s"; }
  Store open(base::Fs& fs) const {
    return StoreAccess::handle_of(store::StoreDirectory::open(fs, path()));
  }
  std::string committed() {
    const Store store = open(disk);
    std::string out(store.version("main").file_bytes, '\0');
    store.read("main", 0, out.data(), out.size());
    return out;
  }

  base::Fs& disk = base::posix_fs();

 private:
  test::TempDirectory directory_;
};

TEST_F(WritableFileTest, AWriteDuringACommitBelongsToTheNextOne) {
  test::HookFs fs(disk);
  WritableFile file(open(fs), "main");
  file.write(0, bytes_of("first"));
  std::atomic<bool> is_due{true};
  fs.hooks.before_write = [&](const std::string& path) {
    if (path.find("/branches/") == std::string::npos || !is_due.exchange(false)) return;
    file.write(0, bytes_of("later"));  // the commit has collected its pages
  };
  file.commit();
  ASSERT_FALSE(is_due);
  EXPECT_EQ(committed(), "first");
  file.commit();
  EXPECT_EQ(committed(), "later");
}

// Its records cannot be read.
class UnreadablePacks final : public test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  bool are_unreadable = false;
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<File>(*this, ForwardingFs::open(path, mode));
  }

 private:
  class File final : public test::ForwardingFile {
   public:
    File(UnreadablePacks& fs, std::unique_ptr<base::File> below)
        : ForwardingFile(std::move(below)), fs_(fs) {}
    int try_pread(std::span<std::byte> out, std::uint64_t at) const noexcept override {
      return is_lost() ? EIO : ForwardingFile::try_pread(out, at);
    }
    void pread(std::span<std::byte> out, std::uint64_t at) const override {
      if (is_lost()) throw Error(Errc::io, path() + ": Input/output error");
      ForwardingFile::pread(out, at);
    }

   private:
    bool is_lost() const noexcept {
      return fs_.are_unreadable && path().find("/packs/") != std::string::npos;
    }
    UnreadablePacks& fs_;
  };
};

TEST_F(WritableFileTest, AnAppendThatFailsLeavesTheSize) {
  std::string text(5000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * i % 23);
  {
    WritableFile file(open(disk), "main");
    file.write(0, bytes_of(text));
    file.close();
  }
  UnreadablePacks fs(disk);
  WritableFile file(open(fs), "main");
  fs.are_unreadable = true;
  for (const std::uint64_t at : {std::uint64_t{text.size()}, std::uint64_t{8192}}) {
    EXPECT_THROW(file.write(at, bytes_of("more")), Error) << at;
    EXPECT_EQ(file.size_bytes(), text.size());
  }
  fs.are_unreadable = false;
  file.commit();
  EXPECT_TRUE(committed() == text);
}

TEST_F(WritableFileTest, ATruncationThatFailsLeavesTheFile) {
  const std::string text(9000, 'x');
  {
    WritableFile file(open(disk), "main");
    file.write(0, bytes_of(text));
    file.close();
  }
  UnreadablePacks fs(disk);
  WritableFile file(open(fs), "main");
  fs.are_unreadable = true;
  for (const std::uint64_t bytes : {8999u, 5000u, 4096u, 0u}) {
    EXPECT_THROW(file.resize(bytes), Error) << bytes;
    EXPECT_EQ(file.size_bytes(), text.size());
  }
  fs.are_unreadable = false;
  file.commit();
  EXPECT_TRUE(committed() == text);
  file.resize(5000);
  file.commit();
  EXPECT_TRUE(committed() == text.substr(0, 5000));
}

}  // namespace
}  // namespace vellum::mount
