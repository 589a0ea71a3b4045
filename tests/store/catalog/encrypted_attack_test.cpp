// An attacker who may write an encrypted store: what is cut, moved, exchanged or put back, and what
// still shows without a key.
#include "format/wire/whole_file.hpp"
#include "store/catalog/encrypted_fixture.hpp"
#include "store/gc/reach/census_file.hpp"
#include "store/packs/pack_set.hpp"

namespace vellum::store::test {
namespace {

namespace files = std::filesystem;

// Of a record's header: pack and offset, and the checksum.
constexpr std::size_t kPlaceAt = 8, kPlaceBytes = 16, kChecksumAt = 48;

class Attacked : public Encrypted {
 protected:
  // What a reader of everything and verify report. Other content than the right one fails the test.
  std::vector<std::string> problems() const {
    std::vector<std::string> out;
    const auto note = [&](const std::function<void()>& body) {
      try {
        body();
      } catch (const Error& e) {
        EXPECT_TRUE(e.code() == Errc::corrupted || e.code() == Errc::wrong_key ||
                    e.code() == Errc::not_a_store || e.code() == Errc::not_found)
            << e.what();
        out.push_back(e.what());
      }
    };
    std::shared_ptr<StoreDirectory> store;
    note([&] { store = fresh(); });
    if (store == nullptr) return out;
    for (const auto& [name, bytes] : contents_) {
      note([&] { expect_same(*open_version(*store, name), bytes); });
    }
    note([&] {
      for (const auto& damage : verify_store(*store, true, nullptr).damages) {
        out.push_back(damage.object + ": " + damage.reason);
      }
    });
    return out;
  }
  bool is_named(const std::string& file) const {
    const std::string name = file.substr(path().size() + 1);
    const auto found = problems();
    return std::ranges::any_of(found, [&](const auto& text) { return contains(text, name); });
  }
  // Files whose loss costs nothing: hints, and what a crash may leave old, torn or new.
  bool is_hint(const std::string& file) const {
    const std::string name = file.substr(path().size() + 1);
    return name.starts_with("gc.") || name.starts_with("hints/") || name.starts_with("tmp/") ||
           name == "snapshots.order" || name == "snapshots.newest" || name.ends_with("/snapshot");
  }
};

TEST_F(Attacked, CutAndExchangedFilesAreNamed) {
  work();
  writer_.reset();
  const auto all = files_in(path());
  std::size_t cut = 0, exchanged = 0;
  for (const std::string& file : all) {
    if (is_hint(file)) continue;
    const std::string good = text_of_file(file);
    for (const std::size_t size : {std::size_t{0}, good.size() / 2}) {
      put_file(file, good.substr(0, size));
      EXPECT_TRUE(is_named(file)) << file << " cut to " << size;
      ++cut;
    }
    // Another file of its kind: a valid one of the same store.
    for (const std::string& other : all) {
      if (other == file || files::path(other).extension() != files::path(file).extension() ||
          files::path(other).parent_path() != files::path(file).parent_path()) {
        continue;
      }
      put_file(file, text_of_file(other));
      EXPECT_TRUE(is_named(file)) << other << " in the place of " << file;
      ++exchanged;
      break;
    }
    put_file(file, good);
  }
  EXPECT_GT(cut, 10u);
  EXPECT_GT(exchanged, 5u);
  EXPECT_TRUE(problems().empty());
}

// A forger writes any header, and its checksum; a reference may have any tag.
TEST_F(Attacked, RecordsInOtherPlacesAreRefused) {
  work();
  writer_.reset();
  const base::StoreKeys foreign(base::Secret::random(base::kKeyBytes));
  std::size_t moved = 0;
  for (const std::uint64_t pack : store_->packs().list()) {
    const std::string file = store_->packs().path_of(pack), good = text_of_file(file);
    const auto records = records_of(*store_, pack);
    for (std::size_t i = 0; i + 1 < records.size(); ++i) {
      const format::RecordHeader to = records[i], from = records[i + 1];
      if (from.type != to.type) continue;
      const auto refused = [&](const std::vector<std::byte>& record, std::uint64_t sum) {
        std::string bad = good;
        bad.resize(std::max<std::size_t>(bad.size(), to.offset_bytes + record.size()));
        std::memcpy(bad.data() + to.offset_bytes, record.data(), record.size());
        put_file(file, bad);
        const std::string text = error_text(Errc::corrupted, [&] {
          load_record_at(*store_, {pack, to.offset_bytes, static_cast<std::uint32_t>(sum)},
                         to.type);
        });
        EXPECT_TRUE(contains(text, files::path(file).filename().string())) << text;
        EXPECT_TRUE(contains(text, "store's key")) << text;
        ++moved;
      };
      // The next record of the pack, with this place in its header.
      const std::string text = bytes_of_record(good, from);
      std::vector<std::byte> record(text.size());
      std::memcpy(record.data(), text.data(), text.size());
      const std::string here = bytes_of_record(good, to);
      std::memcpy(record.data() + kPlaceAt, here.data() + kPlaceAt, kPlaceBytes);
      std::fill(record.begin() + kChecksumAt, record.begin() + kChecksumAt + 8, std::byte{});
      const std::uint64_t sum = base::checksum64(record, store_->checksum_seed());
      std::memcpy(record.data() + kChecksumAt, &sum, sizeof sum);
      refused(record, sum);
      // A record of another store with this id, and of this place.
      format::RecordHeader h = to;
      const std::vector<std::byte> content(h.stored_bytes, std::byte{7});
      std::vector<std::byte> whole(h.offset_bytes);
      h.has_hash = false;
      format::append_record(whole, h, {}, content, {store_->checksum_seed(), &foreign});
      refused({whole.begin() + static_cast<std::ptrdiff_t>(to.offset_bytes), whole.end()},
              h.checksum);
    }
    put_file(file, good);
  }
  EXPECT_GT(moved, 20u);
  EXPECT_TRUE(problems().empty());
}

// Two copies of a store go on apart: their records have the same places and keys.
TEST_F(Attacked, PacksOfTwoHistoriesDoNotMix) {
  work();
  writer_.reset();
  const auto go_on = [&](PageNumber first) {
    store_ = fresh();
    auto writer = BranchWriter::open(*store_, "main");
    for (PageNumber p = first; p < first + 40; ++p) mark(p);
    commit(*writer, model_, true);
    writer->checkpoint_journal();
    contents_["main"] = model_.bytes;
  };
  const std::string common = directory_.path("common"), other = directory_.path("other");
  copy_directory(path(), common);
  const auto before = model_.bytes;
  go_on(10);
  copy_directory(path(), other);
  copy_directory(common, path());
  model_ = Model(kPages);
  model_.bytes = before;
  for (PageNumber p = 0; p < kPages; ++p) model_.touched.insert(p);
  go_on(100);
  ASSERT_TRUE(problems().empty());
  std::size_t mixed = 0;
  for (const std::string& file : files_in(path())) {
    const std::string theirs = other + file.substr(path().size());
    if (!file.ends_with(".pack") || !files::exists(theirs)) continue;
    const std::string good = text_of_file(file);
    if (text_of_file(theirs) == good) continue;
    put_file(file, text_of_file(theirs));
    EXPECT_TRUE(is_named(file)) << file;
    put_file(file, good);
    ++mixed;
  }
  EXPECT_GT(mixed, 0u);
}

TEST_F(Attacked, AForgedCensusIsNotUsed) {
  work();
  writer_.reset();
  collect();
  const std::string file = census_path(*store_), good = text_of_file(file);
  ASSERT_FALSE(good.empty());
  const auto parts = read_census_file(*store_);
  for (std::size_t at = format::kWholeFileHeaderBytes; at + 8 < good.size(); at += 5) {
    std::string bad = good;
    flip(bad, at);
    const std::uint64_t sum = base::checksum64(std::as_bytes(std::span(bad)).first(bad.size() - 8),
                                               store_->checksum_seed());
    std::memcpy(bad.data() + bad.size() - 8, &sum, sizeof sum);
    put_file(file, bad);
    EXPECT_EQ(format::encode_gc_census(read_census_file(*store_), store_->superblock().store_id),
              format::encode_gc_census({}, store_->superblock().store_id))
        << at;
  }
  collect();
  expect_contents(*fresh());
  EXPECT_TRUE(problems().empty());
}

// What docs/security.md says that encryption does not hide.
TEST_F(Attacked, NamesAndSizesStillShow) {
  work();
  writer_.reset();
  std::size_t records = 0;
  set_key_source(KeySource());
  EXPECT_TRUE(files::exists(path() + "/snapshots/s0.ref"));
  EXPECT_TRUE(files::exists(path() + "/branches/main/journal"));
  for (const std::uint64_t pack : store_->packs().list()) {
    const std::string bytes = text_of_file(store_->packs().path_of(pack));
    for (const auto& known : records_of(*store_, pack)) {
      format::RecordHeader h;
      ASSERT_EQ(format::decode_record_header(
                    std::as_bytes(std::span(bytes)).subspan(known.offset_bytes), h),
                nullptr);
      EXPECT_EQ(h.type, known.type);
      EXPECT_EQ(h.raw_bytes, known.raw_bytes);
      EXPECT_EQ(h.stored_bytes, known.stored_bytes);
      ++records;
    }
  }
  EXPECT_GT(records, 20u);
}

// What docs/security.md says that nobody notices: it was all valid once.
TEST_F(Attacked, AnOlderRefAndAnOlderStoreAreNotNoticed) {
  work();
  writer_.reset();
  const std::string ref = path() + "/snapshots/s0.ref", old_ref = text_of_file(ref);
  const std::string older = directory_.path("older");
  copy_directory(path(), older);
  const auto before = contents_;
  store_->remove_snapshot("s0");
  auto writer = BranchWriter::open(*store_, "main");
  mark(7);
  commit(*writer, model_, true);
  writer->publish_snapshot("s0", "");
  writer.reset();
  contents_["s0"] = contents_["main"] = model_.bytes;
  ASSERT_TRUE(problems().empty());
  put_file(ref, old_ref);
  contents_["s0"] = before.at("s0");
  EXPECT_TRUE(problems().empty()) << "the older ref";
  copy_directory(older, path());
  contents_ = before;
  EXPECT_TRUE(problems().empty()) << "the older store";
}

}  // namespace
}  // namespace vellum::store::test
