// The tail of an image: bytes past the head's end that no commit has yet. After a kill the next
// opening finds it whole, or the last one before it.
#include "store/stream/image_tail.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "format/wire/types.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/stream/image_file.hpp"
#include "store/support.hpp"
#include "support/disk/crash_images_lib.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kTailPages = 8;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(base::Fs& fs, const std::string& path) {
  const auto file = fs.open(path, base::OpenMode::read_only);
  std::string out(file->size_bytes(), '\0');
  file->pread(std::as_writable_bytes(std::span(out)), 0);
  return out;
}

std::string head_text_of(StoreDirectory& store) {
  const auto source = open_version(store, "main");
  std::string out(source->region_bytes(), '\0');
  source->read(0, out.size() / kPageBytes, reinterpret_cast<std::byte*>(out.data()));
  out.resize(source->file_bytes().value_or(0));
  return out;
}

// A writer of a file that is only appended to, like a region over it.
struct Appender {
  std::unique_ptr<BranchWriter> writer;
  std::unique_ptr<ImageFile> image;

  explicit Appender(StoreDirectory& store, const std::string& path = "") {
    writer = BranchWriter::open(store, "main");
    image = ImageFile::open(store, "main", writer->head(), *writer->source_at_open(), path);
  }
  void commit(const std::string& text) {
    static base::Compressor compressor;
    Model model(kTailPages);
    std::copy_n(bytes_of(text).data(), text.size(), model.bytes.data());
    std::vector<PageNumber> pages;
    for (PageNumber page = 0; page < format::pages_in(text.size()); ++page) pages.push_back(page);
    model.touched.insert(pages.begin(), pages.end());
    image->extend(text.size());
    image->announce(pages);
    auto c = writer->begin();
    c->add(model.take(4, compressor));
    c->finish({1, model.bytes.size(), 0, "", text.size()}, false);
    image->write(pages, [&](PageNumber page) { return model.page(page); });
    image->note_commit(text.size());
  }
  bool keep(const std::string& text) {
    image->extend(text.size());
    return image->write_tail(writer->head(), bytes_of(text).subspan(*writer->head().file_bytes));
  }
};

std::string longer(const std::string& text, std::size_t bytes, char with) {
  return text + std::string(bytes, with);
}

class ImageTailTest : public ::testing::Test {
 protected:
  ImageTailTest() {
    store_ = StoreDirectory::create(fs_, directory_.path("s"), small_options());
    store_->create_branch("main", kTailPages * kPageBytes, 0);
    Appender(*store_).commit(head_);
  }
  std::string image() const { return directory_.path("s/branches/main/image"); }
  std::string record() const { return directory_.path("s/branches/main/image.tail"); }
  void spoil(const std::string& path, std::uint64_t at) {
    const auto file = fs_.open(path, base::OpenMode::read_write);
    std::byte byte{};
    file->pread({&byte, 1}, at);
    byte ^= std::byte{1};
    file->pwrite({&byte, 1}, at);
  }
  // What the next opening makes the file.
  std::string opened(bool with_tail) {
    Appender next(*store_);
    EXPECT_EQ(with_tail, next.image->found_tail());
    EXPECT_EQ(with_tail, !next.image->take_adopted().empty());
    return text_of(fs_, image());
  }

  TempDirectory directory_;
  FaultFs fs_{base::posix_fs()};
  std::shared_ptr<StoreDirectory> store_;
  const std::string head_ = longer("", 6000, 'h');
  const std::string first_ = longer(head_, 3000, '1'), second_ = longer(first_, 9000, '2');
};

TEST_F(ImageTailTest, IsFoundAfterAKillUntilItIsCommitted) {
  {
    Appender session(*store_);
    EXPECT_TRUE(session.keep(first_));
    EXPECT_TRUE(first_ == text_of(fs_, image()));
    EXPECT_TRUE(session.keep(second_));
    EXPECT_TRUE(session.keep(second_)) << "nothing to do";
    session.image->extend(second_.size() + 100);  // written, and not closed yet
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(second_ == opened(true));
  {
    Appender session(*store_);
    session.commit(second_);
    EXPECT_TRUE(std::string(format::kImageTailBytes, '\0') == text_of(fs_, record()));
  }
  EXPECT_TRUE(second_ == opened(false));
  EXPECT_TRUE(second_ == head_text_of(*store_));
}

TEST_F(ImageTailTest, OfAnEarlierHeadIsIgnored) {
  std::string old;
  {
    Appender session(*store_);
    EXPECT_TRUE(session.keep(first_));
    old = text_of(fs_, record());
    session.commit(longer(head_, 10, 'c'));
  }
  fs_.open(record(), base::OpenMode::read_write)->pwrite(bytes_of(old), 0);
  fs_.open(image(), base::OpenMode::read_write)->pwrite(bytes_of(first_), 0);
  EXPECT_TRUE(longer(head_, 10, 'c') == opened(false));
}

TEST_F(ImageTailTest, IsIgnoredUnlessRecordAndBytesMatch) {
  const std::uint64_t boot_at = 56;
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{30}, boot_at, std::uint64_t{70}}) {
    ASSERT_TRUE(Appender(*store_).keep(first_));
    spoil(record(), at);
    EXPECT_TRUE(head_ == opened(false)) << at;
  }
  ASSERT_TRUE(Appender(*store_).keep(first_));
  {
    // A whole record, of another boot.
    format::ImageTail tail;
    const std::string bytes = text_of(fs_, record());
    const format::Uuid& id = store_->superblock().store_id;
    ASSERT_TRUE(format::decode_image_tail(bytes_of(bytes), id, tail));
    tail.boot ^= 2;
    fs_.open(record(), base::OpenMode::read_write)->pwrite(format::encode_image_tail(tail, id), 0);
  }
  EXPECT_TRUE(head_ == opened(false));
  ASSERT_TRUE(Appender(*store_).keep(first_));
  spoil(image(), 8000);
  EXPECT_TRUE(head_ == opened(false));
  ASSERT_TRUE(Appender(*store_).keep(first_));
  fs_.open(image(), base::OpenMode::read_write)->truncate(8500);
  EXPECT_TRUE(head_ == opened(false));
  EXPECT_TRUE(head_ == opened(false)) << "also with the bytes of the tail";
}

TEST_F(ImageTailTest, ThatIsDiscardedDoesNotComeBack) {
  ASSERT_TRUE(Appender(*store_).keep(first_));
  spoil(image(), 8000);
  {
    Appender session(*store_);
    session.image->extend(first_.size());
  }
  fs_.open(image(), base::OpenMode::read_write)->pwrite(bytes_of(first_), 0);
  EXPECT_TRUE(head_ == opened(false));
}

TEST_F(ImageTailTest, KeepsOtherWritersAway) {
  const std::string path = directory_.path("plain");
  {
    Appender first(*store_, path);
    first.image->close(first.writer->head());
  }
  ASSERT_TRUE(Appender(*store_, path).keep(first_));
  const auto other_writes = [&] {
    const auto writer = BranchWriter::open(*store_, "main");
    ImageFile::note_other_writer(*store_, "main", writer->head());
  };
  try {
    other_writes();
    ADD_FAILURE() << "the tail would be lost";
  } catch (const Error& error) {
    EXPECT_EQ(Errc::busy, error.code()) << error.what();
  }
  spoil(path, 8000);
  EXPECT_NO_THROW(other_writes());
}

TEST_F(ImageTailTest, ThatIsTooLongIsRefused) {
  Appender session(*store_);
  EXPECT_FALSE(session.image->write_tail(session.writer->head(),
                                         std::vector<std::byte>(format::kMaxImageTailBytes + 1)));
  EXPECT_TRUE(head_ == text_of(fs_, image()));
}

TEST_F(ImageTailTest, AFailedCallLeavesTheTailBeforeIt) {
  for (const Call call : {Call::write, Call::create}) {
    for (std::uint64_t nth = 1; nth <= 6; ++nth) {
      SCOPED_TRACE(static_cast<int>(call) * 100 + static_cast<int>(nth));
      std::string kept = head_;
      {
        Appender session(*store_);
        if (session.image->found_tail()) kept = first_;
        fs_.fail_nth(call, nth, Errc::no_space);
        try {
          session.keep(first_);
          kept = first_;
          session.keep(second_);
          kept = second_;
        } catch (const Error&) {
        }
        fs_.heal();
      }
      EXPECT_TRUE(kept == opened(kept != head_));
      Appender(*store_).commit(head_);
      Appender(*store_).commit(longer(head_, 1, 'x'));
      Appender(*store_).commit(head_);
    }
  }
}

// Power cuts on the simulated disk, in the same boot: the checks of record and bytes alone keep
// torn tails out.
TEST(ImageTailCrash, AfterAPowerCutTheImageIsTheHeadOrHasAWholeTail) {
  std::mt19937_64 random(41);
  auto fs = std::make_unique<sim::SimFs>();
  fs->start_log();
  StoreDirectory::create(*fs, "/s", small_options())
      ->create_branch("main", kTailPages * kPageBytes, 0);
  Appender(*StoreDirectory::open(*fs, "/s")).commit("first");
  int with_tail = 0;
  std::string last_tail;  // empty: none
  for (int cut = 0; cut < 150; ++cut) {
    std::set<std::string> tails;
    if (!last_tail.empty()) tails.insert(last_tail);
    std::string content;
    fs->cut_power_at(1 + random() % 40);
    try {
      const auto store = StoreDirectory::open(*fs, "/s");
      Appender session(*store);
      content = text_of(*fs, "/s/branches/main/image");
      for (;;) {
        if (random() % 3 == 0) {
          if (content.size() > 20000) content.resize(100);
          content = longer(content, 1 + random() % 2000, static_cast<char>('a' + random() % 26));
          session.commit(content);
          tails.clear();
        } else {
          content = longer(content, 1 + random() % 5000, static_cast<char>('a' + random() % 26));
          if (content.size() > (kTailPages - 1) * kPageBytes) break;
          tails.insert(content);
          session.keep(content);
        }
      }
    } catch (const sim::PowerCut&) {
    }
    fs = sim::next_boot(*fs, random);
    const auto store = StoreDirectory::open(*fs, "/s");
    const Appender session(*store);
    const std::string found = text_of(*fs, "/s/branches/main/image"), head = head_text_of(*store);
    if (session.image->found_tail()) {
      ++with_tail;
      EXPECT_TRUE(tails.contains(found)) << cut;
      EXPECT_TRUE(found.starts_with(head)) << cut;
      last_tail = found;
    } else {
      EXPECT_TRUE(head == found) << cut;
      last_tail.clear();
    }
  }
  EXPECT_GT(with_tail, 5);
}

}  // namespace
}  // namespace vellum::store::test
