// A hostile store on the real file system: links, FIFOs and directories in place of files, names
// with paths out of the store, and copied, forged and exchanged refs and packs.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/temp_directory.hpp"
#include "corruption/sample_lib.hpp"
#include "format/records/page_map.hpp"
#include "format/records/record.hpp"
#include "format/version.hpp"
#include "store/branch/branch_writer.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/page_map/run_reader.hpp"

namespace vellum::corruption {
namespace {

namespace stdfs = std::filesystem;

void write(const stdfs::path& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

Bytes read(const stdfs::path& path) {
  return base::read_whole(base::posix_fs(), path.string(), UINT64_MAX);
}

class HostileFiles : public ::testing::Test {
 protected:
  HostileFiles() : sample_(make_sample(200, 4)) {
    for (const auto& file : sample_.fs->files()) {
      const stdfs::path to = directory_ / file.substr(1);
      stdfs::create_directories(to.parent_path());
      write(to, sample_.fs->read_file(file));
    }
    stdfs::create_directories(store_ / "tmp");
    stdfs::create_directories(outside_);
    write(outside_ / "canary", Bytes(9, std::byte{9}));
  }
  ~HostileFiles() override {
    EXPECT_EQ(read(outside_ / "canary"), Bytes(9, std::byte{9}));
    std::set<std::string> names;
    for (const auto& e : stdfs::directory_iterator(outside_)) names.insert(e.path().filename());
    names.erase("canary");
    names.erase("journal");
    names.erase("moved");
    EXPECT_TRUE(names.empty()) << *names.begin() << " was created outside the store";
  }

  std::shared_ptr<store::StoreDirectory> open() {
    return store::StoreDirectory::open(base::posix_fs(), store_.string());
  }

  // Uses every part of the store; errors are expected. Returns them.
  std::vector<std::string> use_everything() {
    std::vector<std::string> errors;
    const auto attempt = [&](const auto& body) {
      try {
        body();
      } catch (const Error& e) {
        errors.emplace_back(e.what());
      }
    };
    attempt([&] {
      const auto store = open();
      std::vector<std::string> names = store->branch_names();
      for (auto& n : snapshot_names(*store)) names.push_back(std::move(n));
      for (const auto& name : names) {
        attempt([&] {
          const Bytes now = read_version(*store, name);
          // Content that reads without an error is the content that was written under that name.
          if (sample_.contents.contains(name) && !written_.contains(name)) {
            EXPECT_TRUE(now == sample_.contents.at(name)) << name;
          }
        });
      }
      attempt([&] {
        for (const auto& d : store::verify_store(*store, true, nullptr).damages) {
          errors.push_back(d.object + ": " + d.reason);
        }
      });
      for (const auto& name : names) {
        if (!has_branch(*store, name)) continue;
        attempt([&] {
          const auto writer = store::BranchWriter::open(*store, name);
          written_.insert(name);
          store::PageWrites writes;
          Bytes page(format::kPageBytes, std::byte{3});
          writes.deltas.add_difference_from_zero(0, page.data());
          auto commit = writer->begin();
          commit->add(std::move(writes));
          commit->finish({1, writer->head().region_bytes, 0, ""}, true);
        });
      }
    });
    return errors;
  }
  void expect_error(const std::string& part) {
    const auto errors = use_everything();
    for (const auto& e : errors) {
      if (e.find(part) != std::string::npos) return;
    }
    std::string all;
    for (const auto& e : errors) all += "\n  " + e;
    ADD_FAILURE() << "no error contains '" << part << "', but:" << all;
  }
  stdfs::path first_pack() const {
    std::set<stdfs::path> packs;
    for (const auto& e : stdfs::directory_iterator(store_ / "packs")) packs.insert(e.path());
    return *packs.begin();
  }

  test::TempDirectory directory_;
  stdfs::path store_ = directory_ / "store", outside_ = directory_ / "outside";
  Sample sample_;
  std::set<std::string> written_;  // branches that use_everything() has committed to
};

TEST_F(HostileFiles, TheSampleHasNoErrors) { EXPECT_TRUE(use_everything().empty()); }

TEST_F(HostileFiles, LinksInPlaceOfDirectories) {
  for (const char* name : {"packs", "branches", "snapshots", "tmp"}) {
    stdfs::rename(store_ / name, outside_ / "moved");
    stdfs::create_symlink(outside_ / "moved", store_ / name);
    expect_error(std::string(name) + ": not a directory");
    stdfs::remove(store_ / name);
    stdfs::rename(outside_ / "moved", store_ / name);
  }
}

TEST_F(HostileFiles, ALinkInPlaceOfABranchIsNoBranch) {
  stdfs::rename(store_ / "branches/main", outside_ / "moved");
  stdfs::create_directory_symlink(outside_ / "moved", store_ / "branches/main");
  const auto store = open();
  EXPECT_FALSE(has_branch(*store, "main"));
  EXPECT_THROW(store->read_branch("main"), Error);
  EXPECT_THROW(store->remove_branch("main"), Error);
  EXPECT_THROW(store::BranchWriter::open(*store, "main"), Error);
  EXPECT_THROW(store->create_branch("main", 4096, 0), Error);
  EXPECT_TRUE(stdfs::exists(outside_ / "moved/journal"));
}

TEST_F(HostileFiles, LinksFifosAndDirectoriesInPlaceOfFiles) {
  const std::vector<stdfs::path> files{store_ / "vellum.store", store_ / "branches/main/journal",
                                       store_ / "snapshots/snap-2.ref", first_pack()};
  for (const auto& file : files) {
    const Bytes bytes = read(file);
    write(outside_ / "journal", bytes);  // the link's target is even valid
    for (const char* kind : {"link", "fifo", "directory", "dangling"}) {
      stdfs::remove(file);
      const std::string k = kind;
      if (k == "link") stdfs::create_symlink(outside_ / "journal", file);
      if (k == "dangling") stdfs::create_symlink(outside_ / "nothing", file);
      if (k == "fifo") {
        ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
      }
      if (k == "directory") stdfs::create_directory(file);
      SCOPED_TRACE(file.string() + " is a " + kind);
      expect_error("not a regular file");
      EXPECT_EQ(read(outside_ / "journal"), bytes);
      EXPECT_FALSE(stdfs::exists(outside_ / "nothing"));
    }
    stdfs::remove(file);
    write(file, bytes);
  }
}

// gc works without it, and follows no link to read or to write.
TEST_F(HostileFiles, LinksFifosAndDirectoriesInPlaceOfTheCensus) {
  const auto gc = [&] { return store::collect_garbage(*open(), false, nullptr).needed_bytes; };
  const std::uint64_t needed = gc();
  const stdfs::path file = store_ / "gc.census";
  const Bytes bytes = read(file);
  write(outside_ / "journal", bytes);
  for (const char* kind : {"link", "dangling", "fifo", "directory"}) {
    SCOPED_TRACE(kind);
    stdfs::remove(file);
    const std::string k = kind;
    if (k == "link") stdfs::create_symlink(outside_ / "journal", file);
    if (k == "dangling") stdfs::create_symlink(outside_ / "nothing", file);
    if (k == "fifo") {
      ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    }
    if (k == "directory") stdfs::create_directory(file);
    EXPECT_EQ(gc(), needed);
    if (k == "directory") {
      EXPECT_TRUE(stdfs::is_directory(file));
    } else {
      ASSERT_TRUE(stdfs::is_regular_file(stdfs::symlink_status(file)));
      EXPECT_EQ(read(file), bytes);
    }
    EXPECT_EQ(read(outside_ / "journal"), bytes);
    EXPECT_FALSE(stdfs::exists(outside_ / "nothing"));
    EXPECT_TRUE(stdfs::is_empty(store_ / "tmp"));
  }
  EXPECT_TRUE(use_everything().empty());
}

// Writing, removing and sweeping follow no link, neither of the directory nor of the file.
TEST_F(HostileFiles, LinksFifosAndDirectoriesInPlaceOfWorkingSets) {
  const auto store = open();
  const format::WorkingSetOwner owner{1, 2, 3};
  const format::WorkingSet set{owner, {{4, 5}}};
  const stdfs::path directory = store_ / "hints", file = directory / "snap-1.set";
  const Bytes outside{std::byte{1}};
  write(outside_ / "snap-1.set", outside);
  write(outside_ / "other.set", outside);
  const auto use = [&] {
    store::write_working_set(*store, "snap-1", set);
    store::read_working_set(*store, "snap-1", owner);
    store::sweep_working_sets(*store);
    store::allocated_bytes_of_working_sets(*store);
    EXPECT_EQ(read(outside_ / "snap-1.set"), outside);
    EXPECT_EQ(read(outside_ / "other.set"), outside);
  };
  stdfs::create_directory_symlink(outside_, directory);
  use();
  store::remove_working_set(*store, "snap-1");
  EXPECT_EQ(read(outside_ / "snap-1.set"), outside);
  EXPECT_TRUE(stdfs::is_symlink(directory));
  stdfs::remove(directory);
  for (const char* kind : {"link", "dangling", "fifo", "directory"}) {
    SCOPED_TRACE(kind);
    stdfs::remove_all(directory);
    stdfs::create_directory(directory);
    const std::string k = kind;
    if (k == "link") stdfs::create_symlink(outside_ / "snap-1.set", file);
    if (k == "dangling") stdfs::create_symlink(outside_ / "nothing", file);
    if (k == "fifo") {
      ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    }
    if (k == "directory") stdfs::create_directory(file);
    EXPECT_TRUE(store::read_working_set(*store, "snap-1", owner).empty());
    use();
    if (k != "directory") {
      EXPECT_EQ(store::read_working_set(*store, "snap-1", owner), set.ranges);
    }
    EXPECT_FALSE(stdfs::exists(outside_ / "nothing"));
    store::remove_working_set(*store, "snap-1");
    EXPECT_EQ(stdfs::exists(file), k == "directory");
  }
  stdfs::remove(outside_ / "snap-1.set");
  stdfs::remove(outside_ / "other.set");
  EXPECT_TRUE(use_everything().empty());
}

TEST_F(HostileFiles, NamesWithPathsAreRefused) {
  const auto store = open();
  for (const std::string name :
       {"..", ".", "", "../outside", "/etc", "a/b", "a\nb", ".hidden", "-rf", "main/"}) {
    EXPECT_THROW(read_version(*store, name), Error) << name;
    EXPECT_THROW(store->create_branch(name, 4096, 0), Error) << name;
    EXPECT_THROW(store->remove_branch(name), Error) << name;
    EXPECT_THROW(store->remove_snapshot(name), Error) << name;
    EXPECT_THROW(store->create_snapshot(name, read_snapshot(*store, "snap-1")), Error) << name;
  }
  // Files with such names are not listed.
  write(store_ / "snapshots/a\nb.ref", read(store_ / "snapshots/snap-1.ref"));
  write(store_ / "snapshots/.ref", read(store_ / "snapshots/snap-1.ref"));
  write(store_ / "snapshots/...ref", read(store_ / "snapshots/snap-1.ref"));
  stdfs::create_directory(store_ / "branches/-rf");
  EXPECT_EQ(snapshot_names(*store).size(), 5u);
  EXPECT_EQ(store->branch_names().size(), 3u);
}

TEST_F(HostileFiles, RefsOfOtherNamesStoresAndBranches) {
  write(store_ / "snapshots/other.ref", read(store_ / "snapshots/snap-1.ref"));
  expect_error("other.ref: the ref belongs to snapshot 'snap-1'");
  stdfs::remove(store_ / "snapshots/other.ref");

  const auto good = read_snapshot(*open(), "snap-1");
  format::Uuid id{};
  write(store_ / "snapshots/snap-1.ref", format::encode_snapshot_ref(good, id));
  expect_error("snap-1.ref: belongs to another store");

  const Bytes main = read(store_ / "branches/main/journal");
  write(store_ / "branches/idle/journal", main);
  expect_error("the journal belongs to branch 'main'");
}

// A forger who can compute checksums can redirect a version to any record inside the store, but not
// out of bounds.
TEST_F(HostileFiles, RefsForgedWithRightChecksums) {
  const auto store = open();
  const auto good = read_snapshot(*store, "snap-5");
  const auto forge = [&](const auto& change) {
    auto ref = good;
    change(ref.version);
    write(store_ / "snapshots/snap-5.ref",
          format::encode_snapshot_ref(ref, store->superblock().store_id));
  };
  forge([](auto& v) { v.runs.front().root.offset_bytes = 8ULL << 40; });
  expect_error("past the end of the file");
  forge([](auto& v) { v.runs.front().root.pack = 0xdeadbeef; });
  expect_error("the pack is missing");
  forge([](auto& v) { v.runs.front().entries += 1; });
  expect_error("does not parse");
  forge([](auto& v) { v.runs.front().root.tag ^= 1; });
  expect_error("stale record");
  // A map block as the root of a run: the type of a record is checked, too.
  const auto run = load_run(*store, good.version.runs.front());
  forge([&](auto& v) { v.runs.front().root = run->block_ref(0); });
  expect_error("the record is of another type");
  // The same run 256 times in a row is long, but no cycle.
  forge([](auto& v) { v.runs.resize(format::kMaxRunsPerVersion, v.runs.front()); });
  use_everything();
  forge([](auto& v) { v.region_bytes = format::kMaxRegionBytes; });
  const auto resolved = store::resolve_version(*store, "snap-5");
  const auto source = store::PageSource::open(*store, resolved.version, {}, "forged");
  Bytes page(format::kPageBytes, std::byte{1});
  source->read(format::kMaxRegionBytes / format::kPageBytes - 1, 1, page.data());
  EXPECT_EQ(page, Bytes(format::kPageBytes));
}

TEST_F(HostileFiles, PacksMissingTruncatedStaleOrExchanged) {
  const auto pack = first_pack();
  const Bytes bytes = read(pack);
  stdfs::remove(pack);
  expect_error("the pack is missing");
  for (const double share : {0.0, 0.01, 0.5, 0.99}) {
    write(pack, Bytes(bytes.begin(),
                      bytes.begin() +
                          static_cast<std::ptrdiff_t>(share * static_cast<double>(bytes.size()))));
    SCOPED_TRACE(share);
    expect_error(pack.filename().string());
  }
  // Another pack of the same store under this name.
  for (const auto& e : stdfs::directory_iterator(store_ / "packs")) {
    if (e.path() == pack) continue;
    write(pack, read(e.path()));
    expect_error("under another name");
    break;
  }
  // The same pack of another store.
  const Sample other = make_sample(200, 5);
  for (const auto& file : other.fs->files()) {
    if (file.find("/packs/") != std::string::npos) write(pack, other.fs->read_file(file));
  }
  expect_error("belongs to another store");
}

// The right record at the wrong position, and an old one at the right position.
TEST_F(HostileFiles, RecordsSwappedOrStale) {
  const auto store = open();
  const auto seed = store->checksum_seed();
  const auto pack = first_pack();
  const Bytes bytes = read(pack);
  std::vector<format::RecordHeader> records;
  for (std::size_t at = format::kPackHeaderBytes; at < bytes.size();) {
    format::RecordHeader h;
    if (format::decode_record_header(std::span(bytes).subspan(at), h) != nullptr) break;
    records.push_back(h);
    at += static_cast<std::size_t>(format::record_extent_bytes(h));
  }
  ASSERT_GE(records.size(), 3u);
  const auto extent = [](const auto& h) {
    return static_cast<std::size_t>(format::record_extent_bytes(h));
  };
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (extent(records[i]) > extent(records[0])) continue;
    Bytes bad = bytes;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(records[i].offset_bytes),
                extent(records[i]),
                bad.begin() + static_cast<std::ptrdiff_t>(records[0].offset_bytes));
    write(pack, bad);
    expect_error(pack.filename().string());
    break;
  }
  // Well-formed and for this position, but not the published one.
  auto h = records[0];
  Bytes record;
  const auto payload =
      format::record_payload(std::span(bytes).subspan(static_cast<std::size_t>(h.offset_bytes)), h);
  Bytes other(payload.begin(), payload.end());
  other.back() ^= std::byte{1};
  format::append_record(record, h, {}, other, seed);
  Bytes bad = bytes;
  std::copy(record.begin(), record.end(),
            bad.begin() + static_cast<std::ptrdiff_t>(h.offset_bytes));
  write(pack, bad);
  expect_error("stale record");
}

// 72 bytes with a right checksum may claim any value within the limits.
TEST_F(HostileFiles, HugeClaimsTakeNoMemory) {
  auto sb = open()->superblock();
  sb.block_bytes = format::kMaxBlockBytes;
  sb.journal_half_bytes = format::kMaxJournalHalfBytes;
  write(store_ / "vellum.store", format::encode_superblock(sb));
  EXPECT_TRUE(use_everything().empty());
  ASSERT_EQ(::truncate((store_ / "snapshots/snap-1.ref").c_str(), 1LL << 40), 0);
  expect_error("snap-1.ref");
}

}  // namespace
}  // namespace vellum::corruption
