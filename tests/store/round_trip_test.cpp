// Writing pages to a store and reading them, step by step.
#include "store/check/check.hpp"
#include "store/support.hpp"

namespace vellum::store::test {
namespace {

class RoundTrip : public ::testing::Test {
 protected:
  TempDirectory directory_;
  std::shared_ptr<StoreDirectory> store_ =
      StoreDirectory::create(base::posix_fs(), directory_.path("s"), small_options());
  std::mt19937_64 random_{7};

  void reopen() { store_ = StoreDirectory::open(base::posix_fs(), directory_.path("s")); }
};

TEST_F(RoundTrip, EmptyBranchReadsZero) {
  store_->create_branch("main", 64 * kPageBytes, 0x10000000);
  const auto v = resolve_version(*store_, "main");
  EXPECT_TRUE(v.is_branch);
  EXPECT_EQ(v.label, "branch 'main'");
  EXPECT_EQ(v.version.base_address, 0x10000000u);
  expect_same(*open_version(*store_, "main"), std::vector<std::byte>(64 * kPageBytes));
  EXPECT_EQ(open_version(*store_, "main")->zeros_from(0, 1u << 20), 1u << 20);
}

TEST_F(RoundTrip, JournalCommitsAreSeenByReadersAndByTheNextWriter) {
  store_->create_branch("main", 64 * kPageBytes, 0);
  Model model(64);
  auto writer = BranchWriter::open(*store_, "main");
  model.store64(3, 8, 42);
  model.store64(63, 4088, 43);
  const CommitCost cost = commit(*writer, model, false);
  EXPECT_FALSE(cost.checkpointed);
  EXPECT_EQ(cost.flushes, 1u);
  EXPECT_EQ(cost.sequence, 1u);
  EXPECT_LT(cost.bytes_written, 200u);
  expect_same(*open_version(*store_, "main"), model.bytes);

  model.fill(5, random_);
  model.store64(3, 16, 44);
  EXPECT_FALSE(commit(*writer, model, false).checkpointed);
  model.zero(63);
  EXPECT_FALSE(commit(*writer, model, false).checkpointed);
  EXPECT_EQ(writer->head().sequence, 3u);
  expect_same(*open_version(*store_, "main"), model.bytes);
  writer.reset();
  expect_same(*open_version(*store_, "main"), model.bytes);
  EXPECT_TRUE(resolve_version(*store_, "main").commits.empty()) << "closing checkpoints";

  reopen();
  writer = BranchWriter::open(*store_, "main");
  EXPECT_EQ(writer->head().sequence, 3u);
  expect_same(*writer->source_at_open(), model.bytes);
}

// A clean close releases the space after the base frame, so it must checkpoint such a commit first.
TEST_F(RoundTrip, ACommitWithoutPagesSurvivesAClose) {
  store_->create_branch("main", 64 * kPageBytes, 0);
  auto writer = BranchWriter::open(*store_, "main");
  const std::string message(format::kMaxMessageBytes, 'm');  // its frame crosses a block's end
  EXPECT_FALSE(writer->begin()->finish({1, 64 * kPageBytes, 0, message}, false).checkpointed);
  writer.reset();
  const auto head = resolve_version(*store_, "main");
  EXPECT_EQ(head.head_sequence(), 1u);
  EXPECT_EQ(head.head_info().message, message);
}

TEST_F(RoundTrip, TheFileSizeGoesWithEveryVersion) {
  using Size = std::optional<std::uint64_t>;
  const auto commit_size = [](BranchWriter& writer, Size bytes, bool checkpoint) {
    return writer.begin()->finish({1, 64 * kPageBytes, 0, "", bytes}, checkpoint).sequence;
  };
  const auto size_of = [&](const std::string& name) {
    return open_version(*store_, name)->file_bytes();
  };
  store_->create_branch("main", 64 * kPageBytes, 0);
  EXPECT_EQ(size_of("main"), Size());
  auto writer = BranchWriter::open(*store_, "main");
  EXPECT_EQ(commit_size(*writer, 5000, false), 1U) << "nothing else has changed";
  EXPECT_EQ(size_of("main"), 5000U) << "in the journal";
  Model model(64);
  model.store64(0, 0, 1);
  auto c = writer->begin();
  base::Compressor compressor;
  c->add(model.take(4, compressor));
  c->finish({1, 64 * kPageBytes, 0, "", 4097}, false);
  c.reset();  // before its writer
  EXPECT_EQ(size_of("main"), 4097U);
  expect_same(*open_version(*store_, "main"), model.bytes);
  copy_directory(directory_.path("s"), directory_.path("crashed"));
  EXPECT_EQ(BranchWriter::open(*StoreDirectory::open(base::posix_fs(), directory_.path("crashed")),
                               "main")
                ->head()
                .file_bytes,
            4097U)
      << "after a crash";
  writer.reset();
  EXPECT_TRUE(resolve_version(*store_, "main").commits.empty());
  EXPECT_EQ(size_of("main"), 4097U) << "closing checkpoints";

  reopen();
  writer = BranchWriter::open(*store_, "main");
  EXPECT_EQ(writer->head().file_bytes, 4097U);
  commit_size(*writer, 0, true);
  writer->publish_snapshot("empty", "");
  commit_size(*writer, 64 * kPageBytes, true);
  writer->publish_snapshot("full", "");
  commit_size(*writer, Size(), false);
  EXPECT_EQ(size_of("main"), Size());
  error_text(Errc::invalid_argument, [&] { commit_size(*writer, 64 * kPageBytes + 1, false); });
  writer.reset();
  reopen();
  EXPECT_EQ(size_of("empty"), 0U);
  EXPECT_EQ(size_of("full"), 64 * kPageBytes);
  EXPECT_EQ(size_of("main"), Size());
  store_->create_branch_at("side", read_snapshot(*store_, "empty").version, "empty");
  EXPECT_EQ(size_of("side"), 0U);
  repair_store(base::posix_fs(), directory_.path("s"), directory_.path("saved"), nullptr);
  store_ = StoreDirectory::open(base::posix_fs(), directory_.path("saved"));
  EXPECT_EQ(size_of("empty"), 0U);
  EXPECT_EQ(size_of("full"), 64 * kPageBytes);
  EXPECT_EQ(size_of("main"), Size());
  EXPECT_EQ(size_of("side"), 0U);
}

TEST_F(RoundTrip, SnapshotsKeepTheirContent) {
  store_->create_branch("main", 256 * kPageBytes, 0);
  Model model(256);
  auto writer = BranchWriter::open(*store_, "main");
  std::map<std::string, std::vector<std::byte>> expected;
  for (int i = 0; i < 30; ++i) {
    for (int k = 0; k < 20; ++k) model.store64(random_() % 256, 8 * (random_() % 512), random_());
    if (i % 7 == 0) model.fill(random_() % 256, random_);
    if (i % 5 == 0) model.zero(random_() % 256);
    const CommitCost cost = commit(*writer, model, true);
    EXPECT_TRUE(cost.checkpointed);
    const std::string name = "s" + std::to_string(i);
    writer->publish_snapshot(name, "message " + name);
    expected[name] = model.bytes;
    EXPECT_EQ(writer->head().parent, name);
  }
  for (const auto& [name, bytes] : expected) expect_same(*open_version(*store_, name), bytes);
  expect_same(*open_version(*store_, "main"), model.bytes);
  const auto ref = read_snapshot(*store_, "s9");
  EXPECT_EQ(ref.version.parent, "s8");
  EXPECT_EQ(ref.version.message, "message s9");
  EXPECT_EQ(ref.branch, "main");
  EXPECT_GT(ref.version.pages_changed, 10u);
  EXPECT_LT(ref.version.pages_changed, 30u);
  EXPECT_GT(ref.version.bytes_added, 100u);
  writer.reset();
  reopen();
  EXPECT_EQ(resolve_version(*store_, "main").version.parent, "s29") << "kept by a clean close";
  for (const auto& [name, bytes] : expected) expect_same(*open_version(*store_, name), bytes);
}

TEST_F(RoundTrip, LargeCommitsAreStreamed) {
  store_->create_branch("main", 4096 * kPageBytes, 0);
  Model model(4096);
  auto writer = BranchWriter::open(*store_, "main");
  for (PageNumber p = 0; p < 4096; ++p) model.fill(p, random_);
  base::Compressor compressor;
  auto c = writer->begin();
  PageWrites all = model.take(4, compressor);
  for (auto& block : all.blocks) {
    PageWrites piece;
    piece.blocks.push_back(std::move(block));
    c->add(std::move(piece));
  }
  const CommitCost cost = c->finish(meta_for(model), false);
  EXPECT_TRUE(cost.checkpointed);
  expect_same(*open_version(*store_, "main"), model.bytes, 64);

  // One with adjacent deltas and blocks, on top of journal commits.
  model.store64(1, 0, 1);
  model.store64(900, 0, 1);
  EXPECT_FALSE(commit(*writer, model, false).checkpointed);
  for (PageNumber p = 800; p < 1000; ++p) model.fill(p, random_);
  model.store64(1, 8, 2);
  EXPECT_TRUE(commit(*writer, model, false).checkpointed);
  expect_same(*open_version(*store_, "main"), model.bytes, 64);
}

// Blocks that compress to almost nothing must not accumulate in the journal: readers decompress
// all.
TEST_F(RoundTrip, WhatTheJournalUnpacksToIsBounded) {
  store_->create_branch("main", 4096 * kPageBytes, 0);
  Model model(4096);
  auto writer = BranchWriter::open(*store_, "main");
  bool checkpointed = false;
  for (PageNumber p = 0; p + 40 <= 4096 && !checkpointed; p += 40) {
    for (PageNumber q = p; q < p + 40; ++q) {
      std::memset(model.page(q), 1 + static_cast<int>(q % 7), kPageBytes);
      model.touched.insert(q);
    }
    checkpointed = commit(*writer, model, false).checkpointed;
  }
  EXPECT_TRUE(checkpointed);
  expect_same(*open_version(*store_, "main"), model.bytes);
  writer.reset();
  expect_same(*open_version(*store_, "main"), model.bytes);
}

TEST_F(RoundTrip, AnAbandonedCommitHasNotHappened) {
  store_->create_branch("main", 1024 * kPageBytes, 0);
  Model model(1024);
  auto writer = BranchWriter::open(*store_, "main");
  model.store64(7, 0, 7);
  commit(*writer, model, false);
  const auto before = model.bytes;
  {
    Model other(1024);
    for (PageNumber p = 0; p < 1024; ++p) other.fill(p, random_);
    base::Compressor compressor;
    auto c = writer->begin();
    c->add(other.take(4, compressor));
  }
  expect_same(*open_version(*store_, "main"), before);
  model.store64(8, 0, 8);
  commit(*writer, model, true);
  expect_same(*open_version(*store_, "main"), model.bytes);
}

TEST_F(RoundTrip, ABranchStartsAtASnapshot) {
  store_->create_branch("main", 128 * kPageBytes, 0);
  Model model(128);
  auto writer = BranchWriter::open(*store_, "main");
  for (PageNumber p = 0; p < 100; ++p) model.fill(p, random_);
  commit(*writer, model, true);
  writer->publish_snapshot("base", "");
  store_->create_branch_at("side", read_snapshot(*store_, "base").version, "base");
  Model side = model;
  auto second = BranchWriter::open(*store_, "side");
  EXPECT_NE(second->head().branch_id, writer->head().branch_id);
  side.store64(5, 0, 99);
  side.zero(6);
  commit(*second, side, true);
  second->publish_snapshot("side1", "");
  model.store64(5, 8, 100);
  commit(*writer, model, true);
  expect_same(*open_version(*store_, "side"), side.bytes);
  expect_same(*open_version(*store_, "main"), model.bytes);
  second.reset();
  writer.reset();
  store_->remove_branch("main");
  EXPECT_FALSE(has_branch(*store_, "main"));
  expect_same(*open_version(*store_, "side1"), side.bytes);
  store_->create_branch("main", 16 * kPageBytes, 0);
  expect_same(*open_version(*store_, "main"), std::vector<std::byte>(16 * kPageBytes));
}

TEST_F(RoundTrip, HugeZeroRangesAreFoundQuickly) {
  const std::uint64_t pages = 1ULL << 32;  // 16 TiB
  store_->create_branch("main", pages * kPageBytes, 0);
  auto writer = BranchWriter::open(*store_, "main");
  PageWrites w;
  std::vector<std::byte> page(kPageBytes, std::byte{1});
  w.deltas.add_difference_from_zero(pages - 3, page.data());
  auto c = writer->begin();
  c->add(std::move(w));
  c->finish({1, pages * kPageBytes, 0, ""}, true);
  auto source = open_version(*store_, "main");
  EXPECT_EQ(source->zeros_from(0, SIZE_MAX), pages - 3);
  EXPECT_EQ(source->zeros_from(pages - 3, 5), 0u);
  EXPECT_EQ(source->zeros_from(pages - 2, 5), 5u);
  std::vector<std::byte> out(4 * kPageBytes);
  source->read(pages - 4, 4, out.data());
  EXPECT_EQ(out[0], std::byte{0});
  EXPECT_EQ(out[kPageBytes], std::byte{1});
  source->read(pages + 10, 1, out.data());
  EXPECT_EQ(out[0], std::byte{0});
}

TEST_F(RoundTrip, ArgumentsAreChecked) {
  store_->create_branch("main", 8 * kPageBytes, 0);
  auto writer = BranchWriter::open(*store_, "main");
  Model model(9);
  model.store64(8, 0, 1);
  base::Compressor compressor;
  const PageWrites outside = model.take(4, compressor);
  const auto try_commit = [&](format::CommitInfo meta) {
    auto c = writer->begin();
    c->add(PageWrites(outside));
    c->finish(meta, false);
  };
  error_text(Errc::invalid_argument, [&] { try_commit({1, 8 * kPageBytes, 0, ""}); });
  error_text(Errc::invalid_argument, [&] { try_commit({1, 8 * kPageBytes + 1, 0, ""}); });
  error_text(Errc::invalid_argument, [&] { try_commit({1, 7 * kPageBytes, 0, ""}); });
  error_text(Errc::invalid_argument, [&] { try_commit({1, 9 * kPageBytes, 5, ""}); });
  error_text(Errc::invalid_argument,
             [&] { try_commit({1, 9 * kPageBytes, 0, std::string(5000, 'x')}); });
  try_commit({1, 9 * kPageBytes, 0, "grown"});
  expect_same(*open_version(*store_, "main"), model.bytes);
  error_text(Errc::invalid_argument, [&] { writer->publish_snapshot("early", ""); });
}

}  // namespace
}  // namespace vellum::store::test
