// The journal of an encrypted store: its frames are a chain, so frames of two histories do not mix.
#include "base/crypto/secret.hpp"
#include "format/journal.hpp"
#include "format/wire/superblock.hpp"
#include "store/journal/journal_writer.hpp"
#include "store/journal/read_journal.hpp"
#include "store/support.hpp"
#include "support/disk/memory_fs.hpp"

namespace vellum::store::test {
namespace {

using format::FrameType;
using SealedBytes = std::vector<std::byte>;

struct FoundFrame {
  std::size_t at = 0, extent = 0;
  format::FrameHeader header;
};

class SealedJournal : public ::testing::Test {
 protected:
  SealedJournal() : keys_(base::Secret::random(base::kKeyBytes)) {
    header_.store_id[0] = std::byte{5};
    header_.branch_id = 77;
    header_.half_bytes = format::kMinJournalHalfBytes;
    header_.branch = "main";
  }

  format::Version base(std::uint64_t sequence) const {
    format::Version v;
    v.branch_id = header_.branch_id;
    v.sequence = sequence;
    v.next_pack_number = 1;
    return v;
  }
  SealedBytes fresh() const {
    SealedBytes out = new_journal_start(header_, base(0), &keys_);
    out.resize(static_cast<std::size_t>(journal_bytes(header_.half_bytes)));
    return out;
  }
  std::unique_ptr<base::File> file(const SealedBytes& journal, base::OpenMode mode) {
    fs_.erase("/journal");
    fs_.write_file("/journal", journal);
    return fs_.open("/journal", mode);
  }
  JournalState read(const SealedBytes& journal) {
    return read_journal(*file(journal, base::OpenMode::read_only), {header_.store_id, &keys_});
  }
  std::vector<std::string> messages(const SealedBytes& journal) {
    std::vector<std::string> out;
    for (const auto& commit : read(journal).commits) out.push_back(commit.message);
    return out;
  }
  void expect_refused(const SealedBytes& journal) {
    const auto text = error_text(Errc::corrupted, [&] { read(journal); });
    EXPECT_TRUE(contains(text, "is corrupted, newer ones follow")) << text;
  }

  static void commit_message(JournalWriter& writer, const std::string& message) {
    format::CommitBody body;
    body.message = message;
    format::FrameBuffer frame(format::encode_commit(body));
    writer.write_commit(frame);
    writer.sync_commit();
  }
  // The journal after a writer has continued it.
  SealedBytes written(const SealedBytes& journal, const std::function<void(JournalWriter&)>& body) {
    const JournalState state = read(journal);
    JournalWriter writer(fs_.open("/journal", base::OpenMode::read_write), state);
    body(writer);
    return fs_.read_file("/journal");
  }
  SealedBytes committed(const SealedBytes& journal, const std::vector<std::string>& texts) {
    return written(journal, [&](JournalWriter& writer) {
      for (const std::string& text : texts) commit_message(writer, text);
    });
  }

  std::vector<FoundFrame> frames(const SealedBytes& journal) const {
    std::vector<FoundFrame> out;
    const std::uint64_t seed = frame_seal(header_, &keys_).seed;
    for (std::size_t at = format::kJournalHeaderBytes; at < journal.size();) {
      FoundFrame found{at, 0, {}};
      std::span<const std::byte> payload;
      if (format::decode_frame(std::span(journal).subspan(at), seed, found.header, payload)) {
        found.extent = static_cast<std::size_t>(format::frame_extent_bytes(found.header));
        out.push_back(found);
      }
      at += found.extent == 0 ? format::kFrameAlignBytes : found.extent;
    }
    return out;
  }
  FoundFrame frame_of(const SealedBytes& journal, FrameType type, std::uint64_t sequence) const {
    for (const FoundFrame& found : frames(journal)) {
      if (found.header.type == type && found.header.sequence == sequence) return found;
    }
    ADD_FAILURE() << "no frame " << sequence;
    return {};
  }
  // `into`, with the commit `sequence` of another history in place of its own.
  SealedBytes spliced(SealedBytes into, const SealedBytes& from, std::uint64_t sequence) const {
    const FoundFrame here = frame_of(into, FrameType::commit, sequence);
    const FoundFrame there = frame_of(from, FrameType::commit, sequence);
    EXPECT_EQ(here.extent, there.extent);
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(there.at), here.extent,
                into.begin() + static_cast<std::ptrdiff_t>(here.at));
    return into;
  }

  vellum::test::MemoryFs fs_;
  base::StoreKeys keys_;
  format::JournalHeader header_;
};

using Texts = std::vector<std::string>;

TEST_F(SealedJournal, AReopenedJournalContinuesItsChain) {
  SealedBytes journal = committed(fresh(), {"1", "2"});
  EXPECT_EQ(messages(journal), (Texts{"1", "2"}));
  journal = committed(committed(journal, {"3"}), {});
  EXPECT_EQ(messages(journal), (Texts{"1", "2", "3"}));
  journal = written(journal, [&](JournalWriter& writer) {
    commit_message(writer, "4");
    writer.start_epoch(base(4));
    commit_message(writer, "5");
  });
  EXPECT_EQ(messages(journal), Texts{"5"});
  EXPECT_EQ(read(journal).head_sequence(), 5u);
  journal = written(journal, [&](JournalWriter& writer) {
    const SealedBytes kept = format::encode_commit(format::CommitBody{});
    const format::Payload payload = kept;
    writer.start_epoch(base(4), {&payload, 1});
    commit_message(writer, "6");
  });
  EXPECT_EQ(messages(journal), (Texts{"", "6"}));
  EXPECT_EQ(messages(committed(journal, {"7"})), (Texts{"", "6", "7"}));
}

TEST_F(SealedJournal, FramesOfTwoHistoriesDoNotMix) {
  const SealedBytes before = committed(fresh(), {"1"});
  const SealedBytes left = committed(before, {"2a", "3a"}), right = committed(before, {"2b", "3b"});
  EXPECT_EQ(messages(left), (Texts{"1", "2a", "3a"}));
  EXPECT_EQ(messages(right), (Texts{"1", "2b", "3b"}));
  expect_refused(spliced(left, right, 3));
  expect_refused(spliced(left, right, 2));
  EXPECT_EQ(messages(spliced(spliced(left, right, 2), right, 3)), (Texts{"1", "2b", "3b"}));
  // Without the markers, too: the foreign frame is found.
  SealedBytes cut = spliced(left, right, 3);
  const FoundFrame last = frame_of(cut, FrameType::commit, 3);
  std::fill(cut.begin() + static_cast<std::ptrdiff_t>(last.at + last.extent), cut.end(),
            std::byte{});
  expect_refused(cut);
}

TEST_F(SealedJournal, ABaseFrameBeginsAChainOfItsOwn) {
  const SealedBytes left = committed(fresh(), {"1a"}), right = committed(fresh(), {"1b"});
  expect_refused(spliced(left, right, 1));
}

TEST_F(SealedJournal, ATornFrameIsTheEndAsInAPlainJournal) {
  SealedBytes journal = committed(fresh(), {"1", "2"});
  const FoundFrame last = frame_of(journal, FrameType::commit, 2);
  std::fill(journal.begin() + static_cast<std::ptrdiff_t>(last.at + last.extent), journal.end(),
            std::byte{});
  journal[last.at + format::kFrameHeaderBytes] ^= std::byte{1};
  EXPECT_EQ(messages(journal), Texts{"1"});
  EXPECT_EQ(messages(committed(journal, {"another"})), (Texts{"1", "another"}));
}

// A marker behind a damaged frame shows that a commit is missing.
TEST_F(SealedJournal, ADamagedFrameBeforeItsMarkerIsReported) {
  SealedBytes journal = committed(fresh(), {"1", "2"});
  const FoundFrame last = frame_of(journal, FrameType::commit, 2);
  journal[last.at + format::kFrameHeaderBytes] ^= std::byte{1};
  expect_refused(journal);
  const auto remains =
      read_corrupted_journal(*file(journal, base::OpenMode::read_only), {header_.store_id, &keys_});
  EXPECT_EQ(remains.state.head_sequence(), 1u);
  EXPECT_EQ(remains.lost_commits, 1u);
}

TEST_F(SealedJournal, AMarkerIsBoundToItsFrame) {
  const SealedBytes journal = committed(fresh(), {"1", "2"});
  const FoundFrame marker = frame_of(journal, FrameType::commit_marker, 2);
  const FoundFrame own = frame_of(journal, FrameType::commit, 2);
  const FoundFrame other = frame_of(journal, FrameType::commit, 1);
  const auto opens = [&](const FoundFrame& frame) {
    const std::span all(journal);
    format::FrameSeal seal = frame_seal(header_, &keys_);
    seal.before = format::frame_authenticator(all.subspan(frame.at), frame.header);
    format::FrameHeader header;
    format::Payload payload;
    SealedBytes opened;
    return format::open_frame(all.subspan(marker.at), seal, header, payload, opened);
  };
  EXPECT_TRUE(opens(own));
  EXPECT_FALSE(opens(other));
}

TEST_F(SealedJournal, FramesOfAPlainStoreHaveNoChain) {
  format::FrameSeal seal(99);
  const SealedBytes payload(20, std::byte{3});
  const format::FrameHeader h{FrameType::commit, 4, 17, 0};
  const SealedBytes bytes = format::encode_frame(h, payload, seal);
  seal.before.fill(std::byte{8});
  EXPECT_EQ(format::encode_frame(h, payload, seal), bytes);
  format::FrameHeader back;
  format::Payload found;
  ASSERT_TRUE(format::decode_frame(bytes, 99, back, found));
  EXPECT_EQ(format::frame_authenticator(bytes, back), format::Authenticator{});
}

}  // namespace
}  // namespace vellum::store::test
