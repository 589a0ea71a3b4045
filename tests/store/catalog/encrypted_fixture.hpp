// An encrypted store with a key file, whose pages and messages have a marker.
#pragma once

#include <fstream>
#include <iterator>

#include <vellum/key.hpp>

#include "base/bytes/checksum.hpp"
#include "format/records/record.hpp"
#include "store/catalog/key_file.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/gc/recompress_support.hpp"
#include "store/packs/pack_scanner.hpp"
#include "store/support.hpp"

namespace vellum::store::test {

class Encrypted : public ::testing::Test {
 protected:
  static std::string text_of_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static void put_file(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }

  static void flip(std::string& bytes, std::size_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
  }

  static std::vector<std::string> files_in(const std::string& directory) {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file()) out.push_back(entry.path());
    }
    std::ranges::sort(out);
    return out;
  }

  // 16 bytes that no other page, and no random data, has.
  static constexpr std::string_view kMarker = "PLAINTEXT-MARKER";
  // Every record of every pack.
  static std::vector<format::RecordHeader> records_of(StoreDirectory& store, std::uint64_t pack) {
    const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only);
    PackScanner scanner(*file, pack, store.checksum_seed(), format::kPackHeaderBytes,
                        file->size_bytes());
    std::vector<format::RecordHeader> out;
    for (format::RecordHeader h; scanner.next(h);) out.push_back(h);
    return out;
  }

  static std::string bytes_of_record(const std::string& pack, const format::RecordHeader& h) {
    return pack.substr(h.offset_bytes, static_cast<std::size_t>(format::record_body_bytes(h)));
  }

  void SetUp() override {
    put_file(key_path(), std::string(40, 'k') + "0123456789");
    use_key_file(key_path());
    KeySource first;
    first.key_file = key_path();
    auto options = small_options();
    options.pack_bytes = 32u << 10;
    store_ = StoreDirectory::create_encrypted(base::posix_fs(), path(), options, first);
  }
  void TearDown() override { set_key_source(KeySource()); }

  std::string path() const { return directory_.path("s"); }
  std::string key_path() const { return directory_.path("key"); }
  static void use_key_file(const std::string& file) {
    KeySource source;
    source.key_file = file;
    set_key_source(source);
  }
  std::shared_ptr<StoreDirectory> fresh() const {
    return StoreDirectory::open(base::posix_fs(), path());
  }

  void mark(PageNumber page) {
    std::byte* const at = model_.page(page);
    for (std::size_t i = 0; i < kPageBytes; i += 64) {
      std::memcpy(at + i, kMarker.data(), kMarker.size());
      const std::uint64_t noise = random_();
      std::memcpy(at + i + kMarker.size(), &noise, sizeof noise);
    }
    model_.touched.insert(page);
  }

  // Small and large commits, snapshots with messages, removed ones, sealed packs.
  void work() {
    std::string message(kMarker);
    message += " as a message";
    store_->create_branch("main", kPages * kPageBytes, 0);
    auto writer = BranchWriter::open(*store_, "main");
    for (int round = 0; round < 6; ++round) {
      for (PageNumber p = 0; p < 60; ++p)
        mark((p * 7 + static_cast<PageNumber>(round) * 31) % kPages);
      commit(*writer, model_, round % 2 == 0);
      model_.store64(5, 64, random_());
      commit(*writer, model_, false);
      writer->checkpoint_journal();
      const std::string name = "s" + std::to_string(round);
      writer->publish_snapshot(name, message);
      contents_[name] = model_.bytes;
    }
    mark(1);
    commit(*writer, model_, false);
    contents_["main"] = model_.bytes;
    writer_ = std::move(writer);
  }
  void expect_contents(StoreDirectory& store) const {
    for (const auto& [name, bytes] : contents_) expect_same(*open_version(store, name), bytes);
  }
  void expect_no_marker() const {
    for (const std::string& file : files_in(path())) {
      EXPECT_EQ(text_of_file(file).find(kMarker), std::string::npos) << file;
    }
  }
  void collect(int level = 0) {
    collect_garbage(*store_, false, nullptr, level);
    expect_no_marker();
  }

  static constexpr std::size_t kPages = 256;
  TempDirectory directory_;
  std::shared_ptr<StoreDirectory> store_;
  std::unique_ptr<BranchWriter> writer_;
  Model model_{kPages};
  std::mt19937_64 random_{11};
  std::map<std::string, std::vector<std::byte>> contents_;
};

}  // namespace vellum::store::test
