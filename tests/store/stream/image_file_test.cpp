// A branch's image without a region over it: opening repairs it, whatever happened before.
#include "store/stream/image_file.hpp"

#include "format/wire/types.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/support.hpp"
#include "support/disk/crash_images_lib.hpp"

namespace vellum::store::test {
namespace {

using Bytes = std::vector<std::byte>;

// A writer with an image, used like by a region over it.
struct Session {
  std::unique_ptr<BranchWriter> writer;
  std::unique_ptr<ImageFile> image;

  explicit Session(StoreDirectory& store, const std::string& path = "") {
    writer = BranchWriter::open(store, "main");
    image = ImageFile::open(store, "main", writer->head(), *writer->source_at_open(), path);
  }
  // The pages that `model` has touched.
  void commit(Model& model, bool checkpoint = false) {
    const std::vector<PageNumber> pages(model.touched.begin(), model.touched.end());
    if (image->region_bytes() < model.bytes.size()) image->resize(model.bytes.size());
    image->announce(pages);
    test::commit(*writer, model, checkpoint);
    image->write(pages, [&](PageNumber page) { return model.page(page); });
    image->note_commit();
  }
  // The same for versions that record their file's size, past which the model is zero.
  void commit(Model& model, bool checkpoint, std::uint64_t file_bytes) {
    static base::Compressor compressor;
    image->extend(file_bytes);
    const std::vector<PageNumber> pages(model.touched.begin(), model.touched.end());
    image->announce(pages);
    auto c = writer->begin();
    c->add(model.take(4, compressor));
    c->finish({1, model.bytes.size(), 0, "", file_bytes}, checkpoint);
    const auto end = std::lower_bound(pages.begin(), pages.end(), format::pages_in(file_bytes));
    image->write({pages.begin(), end}, [&](PageNumber page) { return model.page(page); });
    image->note_commit(file_bytes);
  }
  void close() { image->close(writer->head()); }
};

Bytes content_of(base::Fs& fs, const std::string& path) {
  const auto file = fs.open(path, base::OpenMode::read_only);
  Bytes out(file->size_bytes());
  file->pread(out, 0);
  return out;
}

Bytes head_of(StoreDirectory& store) {
  const auto source = open_version(store, "main");
  Bytes out(source->region_bytes());
  source->read(0, out.size() / kPageBytes, out.data());
  return out;
}

// A model whose last commit is this one.
Model with_content(const Bytes& bytes) {
  Model model(bytes.size() / kPageBytes);
  model.bytes = bytes;
  base::Compressor compressor;
  for (PageNumber page = 0; page < model.pages(); ++page) model.touched.insert(page);
  model.take(4, compressor);
  return model;
}

constexpr std::size_t kImageFilePages = 1200;  // three ranges

class ImagePowerCuts {
 public:
  ImagePowerCuts(std::uint64_t seed, bool sized)
      : random_(seed), sized_(sized), fs_(std::make_unique<sim::SimFs>()) {
    fs_->start_log();
    format::Superblock options = small_options();
    options.journal_half_bytes = 16u << 10;
    options.pack_bytes = 64u << 10;
    StoreDirectory::create(*fs_, "/s", options)
        ->create_branch("main", kImageFilePages * kPageBytes, 0);
  }

  void run(int cuts) {
    for (int i = 0; i < cuts && !::testing::Test::HasFatalFailure(); ++i) {
      fs_->cut_power_at(1 + random_() % 60);
      live();
      fs_ = sim::next_boot(*fs_, random_);
      if (random_() % 2 == 0) {
        // Another power cut during the repair of the image.
        fs_->cut_power_at(1 + random_() % 12);
        live();
        fs_ = sim::next_boot(*fs_, random_);
      }
      look();
    }
  }

 private:
  void live() {
    try {
      auto store = StoreDirectory::open(*fs_, "/s");
      auto session = std::make_unique<Session>(*store);
      Model attempt = with_content(head_of(*store));
      for (;;) {
        change(attempt);
        const bool checkpoint = random_() % 8 == 0;
        if (sized_) {
          session->commit(attempt, checkpoint, change_size(attempt, *session));
        } else {
          session->commit(attempt, checkpoint);
        }
        if (random_() % 10 != 0) continue;
        if (random_() % 2 == 0) session->close();
        session.reset();
        session = std::make_unique<Session>(*store);
        expect_whole(*store);
      }
    } catch (const sim::PowerCut&) {
    }
  }

  void change(Model& model) {
    for (std::size_t k = 1 + random_() % 6; k > 0; --k) {
      const PageNumber p = random_() % 3 == 0 ? random_() % kImageFilePages : random_() % 40;
      switch (random_() % 8) {
        case 0:
          model.fill(p, random_);
          break;
        case 1:
          model.zero(p);
          break;
        default:
          model.store64(p, 8 * (random_() % 4), random_() % 2);  // back and forth, often
      }
    }
  }

  // Often the same page, often a few, and sometimes any.
  std::uint64_t change_size(Model& model, const Session& session) {
    std::uint64_t size = session.writer->head().file_bytes.value_or(model.bytes.size());
    const std::uint64_t kind = random_() % 6;
    if (kind == 0) size = random_() % (model.bytes.size() + 1);
    if (kind == 1) size = random_() % (40 * kPageBytes);
    if (kind == 2) size = std::min<std::uint64_t>(size + random_() % 100, model.bytes.size());
    for (std::uint64_t at = size; at < model.bytes.size(); ++at) {
      if (model.bytes[at] == std::byte{0}) continue;
      model.bytes[at] = std::byte{0};
      model.touched.insert(at / kPageBytes);
    }
    return size;
  }

  void expect_whole(StoreDirectory& store) {
    auto head = head_of(store);
    const auto size = open_version(store, "main")->file_bytes().value_or(head.size());
    ASSERT_TRUE(std::all_of(head.begin() + static_cast<std::ptrdiff_t>(size), head.end(),
                            [](std::byte b) { return b == std::byte{0}; }));
    head.resize(size);
    ASSERT_TRUE(content_of(*fs_, "/s/branches/main/image") == head);
  }

  void look() {
    auto store = StoreDirectory::open(*fs_, "/s");
    Session session(*store);
    EXPECT_TRUE(session.image->take_adopted().empty());
    expect_whole(*store);
    if (random_() % 2 == 0) session.close();
  }

  std::mt19937_64 random_;
  const bool sized_;
  std::unique_ptr<sim::SimFs> fs_;
};

class ImageCrash : public ::testing::TestWithParam<int> {};

TEST_P(ImageCrash, AfterEveryPowerCutTheImageIsTheHead) {
  ImagePowerCuts(static_cast<std::uint64_t>(GetParam()), false).run(44);
}

TEST_P(ImageCrash, AndHasTheSizeThatTheHeadSays) {
  ImagePowerCuts(static_cast<std::uint64_t>(GetParam()), true).run(20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ImageCrash, ::testing::Range(1, 7));

class ImageTest : public ::testing::Test {
 protected:
  ImageTest() {
    store_ = StoreDirectory::create(fs_, directory_.path("s"), small_options());
    store_->create_branch("main", kImageFilePages * kPageBytes, 0);
  }

  std::string in_store() const { return directory_.path("s/branches/main/image"); }
  std::string file() const { return directory_.path("plain"); }
  void write_file(const Bytes& bytes) {
    std::filesystem::remove(file());
    fs_.open(file(), base::OpenMode::create_new)->pwrite(bytes, 0);
  }
  void poke(const std::string& path, std::uint64_t at, int value) {
    const std::byte byte{static_cast<unsigned char>(value)};
    fs_.open(path, base::OpenMode::read_write)->pwrite(std::span(&byte, 1), at);
  }
  // Certainly a byte that differs from the current one.
  void spoil(const std::string& path, std::uint64_t at) {
    poke(path, at, std::to_integer<int>(content_of(fs_, path).at(at) ^ std::byte{0xa5}));
  }
  void change(Model& model) {
    for (int k = 0; k < 20; ++k) model.store64(random_() % model.pages(), 64, random_());
  }
  void expect_whole(const std::string& path) {
    EXPECT_TRUE(content_of(fs_, path) == head_of(*store_));
  }

  TempDirectory directory_;
  FaultFs fs_{base::posix_fs()};
  std::shared_ptr<StoreDirectory> store_;
  std::mt19937_64 random_{7};
  Model model_{kImageFilePages};
};

TEST_F(ImageTest, FollowsCommits) {
  Session session(*store_);
  for (int i = 0; i < 5; ++i) {
    change(model_);
    session.commit(model_, i % 2 == 0);
    EXPECT_TRUE(content_of(fs_, in_store()) == model_.bytes);
  }
  expect_whole(in_store());
}

TEST_F(ImageTest, TornRangesAreMendedAndOnlyThose) {
  {
    Session session(*store_);
    change(model_);
    session.commit(model_);
    session.close();
  }
  {
    Session session(*store_);
    model_.store64(3, 0, 1);
    session.commit(model_);
  }  // not closed: as after a crash
  poke(in_store(), 3 * kPageBytes + 9, 0x55);    // in the range that was written
  poke(in_store(), 700 * kPageBytes + 9, 0x55);  // in another range, which cannot be torn
  {
    Session session(*store_);
    EXPECT_TRUE(session.image->take_adopted().empty());
    EXPECT_EQ(content_of(fs_, in_store())[700 * kPageBytes + 9], std::byte{0x55});
    poke(in_store(), 700 * kPageBytes + 9, 0);
    session.close();
  }
  expect_whole(in_store());
}

TEST_F(ImageTest, WithoutACredibleMapOfRangesAllIsCompared) {
  {
    Session session(*store_);
    change(model_);
    session.commit(model_);
  }
  for (const bool gone : {false, true}) {
    poke(in_store(), 1100 * kPageBytes, 0x55);
    const auto map = directory_.path("s/branches/main/image.touched");
    if (gone) {
      std::filesystem::remove(map);
    } else {
      spoil(map, 17);
    }
    const Session session(*store_);
    expect_whole(in_store());
  }
}

TEST_F(ImageTest, ACorruptedStateMeansMakingItAgain) {
  {
    Session session(*store_);
    change(model_);
    session.commit(model_);
    session.close();
  }
  poke(in_store(), 5, 0x77);
  const auto state = directory_.path("s/branches/main/image.state");
  for (std::uint64_t at = 0; at < std::filesystem::file_size(state); at += 13) {
    spoil(state, at);
    poke(in_store(), 5, 0x77);
    Session session(*store_);
    expect_whole(in_store());
    session.close();
  }
}

TEST_F(ImageTest, WhatAnotherProgramWroteIsAdopted) {
  change(model_);
  write_file(model_.bytes);
  {
    Session session(*store_, file());
    const auto adopted = session.image->take_adopted();
    EXPECT_EQ(adopted, std::vector<PageNumber>(model_.touched.begin(), model_.touched.end()));
    session.commit(model_);
    session.image->note_adoption_committed();
    session.close();
  }
  EXPECT_TRUE(content_of(fs_, file()) == model_.bytes);
  EXPECT_TRUE(Session{*store_}.image->take_adopted().empty()) << "nobody has written it";
  {
    Session{*store_}.close();
  }
  poke(file(), 900 * kPageBytes + 1, 0x31);
  Session session(*store_);
  EXPECT_EQ(session.image->path(), file());
  EXPECT_EQ(session.image->take_adopted(), std::vector<PageNumber>{900});
  EXPECT_TRUE(session.image->adopting());
}

TEST_F(ImageTest, AnAdoptionThatCrashesIsAdoptedAgain) {
  write_file(model_.bytes);
  poke(file(), 77 * kPageBytes, 0x31);
  for (int i = 0; i < 3; ++i) {
    Session session(*store_, file());
    EXPECT_EQ(session.image->take_adopted(), std::vector<PageNumber>{77});
  }
  model_.bytes[77 * kPageBytes] = std::byte{0x31};
  {
    Session session(*store_, file());
    model_.touched = {5, 77};
    model_.bytes[5 * kPageBytes] = std::byte{9};
    const std::vector<PageNumber> pages{5, 77};
    session.image->announce(pages);
    commit(*session.writer, model_, false);
  }  // durable, and no part of it in the image
  Session session(*store_, file());
  EXPECT_TRUE(session.image->take_adopted().empty());
  expect_whole(file());
}

TEST_F(ImageTest, WhatIsNotKnownAndDiffersIsRefused) {
  {
    auto writer = BranchWriter::open(*store_, "main");
    change(model_);
    commit(*writer, model_, false);
  }
  write_file(model_.bytes);
  poke(file(), 3, 0x44);
  const auto text =
      error_text(Errc::already_exists, [&] { const Session session(*store_, file()); });
  EXPECT_TRUE(contains(text, file())) << text;
  EXPECT_EQ(content_of(fs_, file())[3], std::byte{0x44}) << "left alone";
  poke(file(), 3, static_cast<int>(model_.bytes[3]));
  Session session(*store_, file());
  EXPECT_TRUE(session.image->take_adopted().empty());
}

TEST_F(ImageTest, FileAndBranchBothChangedIsRefused) {
  write_file(model_.bytes);
  {
    Session session(*store_, file());
    session.close();
  }
  {
    auto writer = BranchWriter::open(*store_, "main");
    change(model_);
    commit(*writer, model_, false);
  }
  {
    Session session(*store_, file());  // only the branch: the image is updated
    expect_whole(file());
    session.close();
  }
  {
    auto writer = BranchWriter::open(*store_, "main");
    change(model_);
    commit(*writer, model_, false);
  }
  poke(file(), 3, 0x44);
  const auto text = error_text(Errc::already_exists, [&] { const Session session(*store_); });
  EXPECT_TRUE(contains(text, file())) << text;
  EXPECT_TRUE(contains(text, "has had commits without it")) << text;
  write_file(model_.bytes);
  {
    Session session(*store_);  // both, to the same content
    EXPECT_TRUE(session.image->take_adopted().empty());
    session.close();
  }
  std::filesystem::remove(file());
  const Session session(*store_);
  expect_whole(file());
}

TEST_F(ImageTest, AnotherFileAfterACrashIsRefused) {
  write_file(model_.bytes);
  {
    Session session(*store_, file());
    change(model_);
    session.commit(model_);
    session.image->note_adoption_committed();
  }
  write_file(Bytes(kImageFilePages * kPageBytes, std::byte{3}));
  const auto text = error_text(Errc::already_exists, [&] { const Session session(*store_); });
  EXPECT_TRUE(contains(text, file())) << text;
}

TEST_F(ImageTest, CommitsWithoutTheImageAreCaughtUpWith) {
  {
    Session session(*store_);
    change(model_);
    session.commit(model_);
  }  // a crash, and then another engine
  {
    auto writer = BranchWriter::open(*store_, "main");
    ImageFile::note_other_writer(*store_, "main", writer->head());
    model_.store64(1150, 0, 5);
    commit(*writer, model_, false);
  }
  const Session session(*store_);
  expect_whole(in_store());
}

TEST_F(ImageTest, AFileKeepsItsSize) {
  const std::size_t bytes = kImageFilePages * kPageBytes - 1000;
  write_file(Bytes(bytes, std::byte{1}));
  Model model(kImageFilePages);
  std::fill_n(model.bytes.begin(), bytes, std::byte{1});
  for (PageNumber page = 0; page < kImageFilePages; ++page) model.touched.insert(page);
  {
    Session session(*store_, file());
    EXPECT_EQ(session.image->region_bytes(), kImageFilePages * kPageBytes);
    session.commit(model);
    session.image->note_adoption_committed();
    model.store64(kImageFilePages - 1, 8, 5);
    session.commit(model);
  }
  EXPECT_EQ(content_of(fs_, file()).size(), bytes);
  {
    Session session(*store_);  // after a crash, too
    EXPECT_EQ(content_of(fs_, file()).size(), bytes);
    EXPECT_TRUE(std::equal(model.bytes.begin(), model.bytes.begin() + static_cast<long>(bytes),
                           content_of(fs_, file()).begin()));
    model.store64(kImageFilePages - 1, 4088, 5);  // past the file's end
    session.commit(model);
    session.close();
  }
  expect_whole(file());
}

TEST_F(ImageTest, AShorterFileIsRefusedAndALongerOneGrowsTheRegion) {
  write_file(Bytes(kImageFilePages * kPageBytes, std::byte{1}));
  Model model(kImageFilePages);
  std::fill(model.bytes.begin(), model.bytes.end(), std::byte{1});
  for (PageNumber page = 0; page < kImageFilePages; ++page) model.touched.insert(page);
  {
    Session session(*store_, file());
    session.commit(model);
    session.image->note_adoption_committed();
    session.close();
  }
  std::filesystem::resize_file(file(), 5000);
  const auto text = error_text(Errc::invalid_argument, [&] { const Session session(*store_); });
  EXPECT_TRUE(contains(text, file())) << text;
  EXPECT_EQ(std::filesystem::file_size(file()), 5000U);
  write_file(Bytes(kImageFilePages * kPageBytes + 5, std::byte{1}));
  Session session(*store_);
  EXPECT_EQ(session.image->region_bytes(), (kImageFilePages + 1) * kPageBytes);
  EXPECT_EQ(session.image->take_adopted(), std::vector<PageNumber>{kImageFilePages});
}

TEST_F(ImageTest, WhatIsNoFileOrInUseIsRefused) {
  std::filesystem::create_directory(directory_.path("d"));
  const auto directory =
      error_text(Errc::corrupted, [&] { const Session session(*store_, directory_.path("d")); });
  EXPECT_TRUE(contains(directory, directory_.path("d"))) << directory;
  write_file(model_.bytes);
  const auto held = fs_.open(file(), base::OpenMode::read_only);
  const auto lock = base::InodeLock::try_take(*held, base::InodeLock::Mode::shared);
  ASSERT_NE(nullptr, lock);
  const auto busy = error_text(Errc::busy, [&] { const Session session(*store_, file()); });
  EXPECT_TRUE(contains(busy, file())) << busy;
}

TEST_F(ImageTest, EveryFailedCallLeavesAnImageThatTheNextOpeningMends) {
  for (const Call call : {Call::write, Call::sync, Call::truncate, Call::rename, Call::create}) {
    for (std::uint64_t nth = 1; nth <= 12; ++nth) {
      SCOPED_TRACE(static_cast<int>(call) * 100 + static_cast<int>(nth));
      change(model_);
      fs_.fail_nth(call, nth, Errc::io);
      try {
        Session session(*store_);
        for (int i = 0; i < 3; ++i) {
          session.commit(model_, i == 1);
          change(model_);
        }
        session.close();
      } catch (const Error&) {
      }
      fs_.heal();
      Session session(*store_);
      EXPECT_TRUE(session.image->take_adopted().empty());
      expect_whole(in_store());
      model_ = with_content(head_of(*store_));
    }
  }
}

// The commit must not start before the ranges of the image that it may tear are recorded durably.
TEST_F(ImageTest, TouchedRangesThatCannotBeWrittenAreAnError) {
  Session session(*store_);
  const std::vector<PageNumber> pages{700};
  for (const Call call : {Call::write, Call::sync}) {
    fs_.fail_nth(call, 1, Errc::io);
    error_text(Errc::io, [&] { session.image->announce(pages); });
    fs_.heal();
  }
  session.image->announce(pages);  // and not counted as touched
  format::TouchedSector ranges{};
  const auto bytes = content_of(fs_, directory_.path("s/branches/main/image.touched"));
  ASSERT_TRUE(format::decode_touched_sector(std::span(bytes).first(format::kTouchedSectorBytes),
                                            store_->superblock().store_id,
                                            session.writer->head().branch_id, 0, ranges));
  EXPECT_NE(ranges[0] & 2, 0u);
}

// The touched ranges may be cleared only when the image is durable.
// The state that close() records becomes durable after the image itself.
TEST_F(ImageTest, IsFlushedBeforeItCountsAsWhole) {
  {
    Session session(*store_);
    change(model_);
    session.commit(model_);
    fs_.fail_nth(Call::sync, 1, Errc::io);
    const std::string text =
        error_text(Errc::io, [&] { session.image->close(session.writer->head()); });
    fs_.heal();
    EXPECT_TRUE(text.starts_with(in_store() + ": ")) << text;
  }
  const auto state =
      ImageFile::last_state(*store_, "main", store_->read_branch("main").journal.base.branch_id);
  ASSERT_TRUE(state.has_value());
  EXPECT_TRUE(state->in_use);
}

TEST_F(ImageTest, TouchedRangesStayWhenTheFlushOfTheImageFails) {
  Session session(*store_);
  const auto touched = directory_.path("s/branches/main/image.touched");
  session.image->announce(std::vector<PageNumber>{700});
  const auto before = content_of(fs_, touched);
  const Bytes content(std::size_t{256} * kPageBytes, std::byte{7});
  for (int i = 0; i < 256; ++i) session.image->write(512, content);  // enough for a flush
  fs_.fail_nth(Call::sync, 1, Errc::io);
  error_text(Errc::io, [&] { session.image->note_commit(); });
  fs_.heal();
  EXPECT_TRUE(content_of(fs_, touched) == before);
}

}  // namespace
}  // namespace vellum::store::test
