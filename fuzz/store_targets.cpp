// Opens a store that a script has changed, and calls everything that reads, then everything that
// writes. Errors are expected. Crashes, hangs, other exceptions, writes by a reader, and changes
// outside the store are failures.
#include <vellum/error.hpp>

#include "format/wire/magic.hpp"
#include "format/wire/whole_file.hpp"
#include "seal.hpp"
#include "store/branch/branch_writer.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/gc/reach/census_file.hpp"
#include "store/page_map/diff.hpp"
#include "store/page_map/page_source.hpp"
#include "store_script.hpp"

namespace vellum::fuzz {
namespace {

using format::kPageBytes;
using format::PageNumber;

constexpr const char* kRoot = "/store";
constexpr std::size_t kMaxPagesRead = 256;

// Runs `body`; a vellum::Error is expected. Any other exception reaches libFuzzer. True: no
// error.
template <typename Body>
bool answers(Body&& body) {
  try {
    body();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Files outside the store, to which links point.
void make_outside(test::MemoryFs& fs, Image& image) {
  fs.make_directory("/outside");
  fs.write_file("/outside/canary", Bytes(100, std::byte{7}));
  // A journal that would be valid in the right place.
  test::MemoryFs scratch;
  write_image(image, scratch, kRoot);
  fs.write_file("/outside/journal", scratch.read_file("/store/branches/main/journal"));
}

struct Outside {
  std::vector<std::string> names;
  Bytes canary, journal;
  explicit Outside(const test::MemoryFs& fs) {
    for (const auto& e : fs.list("/")) names.push_back(e.name);
    for (const auto& e : fs.list("/outside")) names.push_back(e.name);
    canary = fs.read_file("/outside/canary");
    journal = fs.read_file("/outside/journal");
  }
  bool operator==(const Outside&) const = default;
};

// A region may state a huge size: reads the pages up to a limit, and the ends.
void read_pages(const store::PageSource& source) {
  const PageNumber pages = source.region_bytes() / kPageBytes;
  Bytes many(16 * kPageBytes), one(kPageBytes);
  PageNumber page = 0;
  for (std::size_t n = 0; n < kMaxPagesRead && page < pages;) {
    const std::size_t zeros = source.zeros_from(page, 1u << 20);
    page += zeros;
    if (zeros != 0 || page >= pages) continue;
    store::ReadFailure failure;
    const bool whole = source.try_read(page, 16, many.data(), failure);
    if (!whole) {
      char text[256];
      source.describe(failure, text);
    }
    answers([&] { source.chain(page); });
    for (std::size_t i = 0; i < 16; ++i) {
      const bool good = source.try_read(page + i, 1, one.data(), failure);
      require(good || !whole, "a page that reads with its neighbours reads alone");
      if (!whole || !good) continue;
      require(std::memcmp(one.data(), many.data() + i * kPageBytes, kPageBytes) == 0,
              "a page reads the same alone and with its neighbours");
    }
    page += 16;
    n += 16;
  }
  answers([&] { source.read(pages == 0 ? 0 : pages - 1, 2, many.data()); });
}

std::vector<std::string> version_names(const store::StoreDirectory& store) {
  std::vector<std::string> names;
  answers([&] { names = store.branch_names(); });
  answers([&] {
    for (auto& n : snapshot_names(store)) names.push_back(std::move(n));
  });
  return names;
}

void read_store(store::StoreDirectory& store, bool pristine) {
  std::vector<store::ResolvedVersion> versions;
  for (const auto& name : version_names(store)) {
    require(format::name_problem(name) == nullptr, "a listed name is a good name");
    const bool good = answers([&] {
      auto v = store::resolve_version(store, name);
      read_pages(*store::PageSource::open(store, v.version, v.commits, v.label));
      store::read_working_set(store, name, store::working_set_owner(v));
      versions.push_back(std::move(v));
    });
    require(good || !pristine, "the sample opens");
  }
  for (const char* name : {"..", "../outside", "/outside", "", "outside/canary"}) {
    require(!answers([&] { store::resolve_version(store, name); }), "a bad name names nothing");
  }
  for (const auto& a : versions) {
    answers([&] {
      store::diff_versions(store, a, versions.front(), [](const ByteRange& r) {
        require(r.length_bytes != 0, "a range of a difference is not empty");
      });
    });
  }
  answers([&] { store::stat_store(store); });
  for (const bool data : {false, true}) {
    answers([&] {
      const auto report = store::verify_store(store, data, nullptr);
      require(report.damages.empty() || !pristine, "the sample verifies");
    });
  }
}

void write_branch(store::StoreDirectory& store, const std::string& name) {
  const auto writer = store::BranchWriter::open(store, name);
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t pages = writer->head().region_bytes / kPageBytes;
    Bytes now(kPageBytes);
    now[8] = static_cast<std::byte>(round + 1);
    store::PageWrites writes;
    if (pages > 0) writes.deltas.add_difference_from_zero(0, now.data());
    if (pages > 40) writes.zeros = {40};
    auto commit = writer->begin();
    commit->add(std::move(writes));
    commit->finish({1, writer->head().region_bytes, writer->head().base_address, "fuzz"},
                   round == 1);
    if (round == 1) writer->publish_snapshot("fuzz-" + std::to_string(name.size()), "");
  }
}

void write_store(store::StoreDirectory& store) {
  for (const auto& name : version_names(store)) {
    store::write_working_set(store, name, {{1, 2, 3}, {{4, 5}}});
    if (!has_branch(store, name)) {
      answers([&] { store.remove_snapshot(name); });
      continue;
    }
    answers([&] { write_branch(store, name); });
    answers([&] { write_branch(store, name); });
  }
  answers([&] { store.create_branch("new", 16 * kPageBytes, 0); });
  answers([&] { write_branch(store, "new"); });
  answers([&] { store.remove_branch("new"); });
}

template <typename Use>
void with_hostile_store(const Image& sample, View input, Use use) {
  Image image = sample;
  Script script(input);
  script.apply_to_image(image);
  test::MemoryFs fs(64u << 20);
  Image unchanged = sample;
  make_outside(fs, unchanged);
  write_image(image, fs, kRoot);
  script.apply_to_files(fs, kRoot);
  std::shared_ptr<store::StoreDirectory> store;
  const Outside before(fs);
  if (answers([&] { store = store::StoreDirectory::open(fs, kRoot); })) use(*store);
  require(store != nullptr || !input.empty(), "the sample opens");
  require(Outside(fs) == before, "nothing outside the store changes");
}

void fuzz_store_of(const Image& sample, View input) {
  with_hostile_store(sample, input, [&](store::StoreDirectory& store) {
    auto& fs = dynamic_cast<test::MemoryFs&>(store.fs());
    const std::uint64_t changes = fs.changes();
    read_store(store, input.empty());
    require(fs.changes() == changes, "reading changes nothing");
  });
}

void fuzz_store(View input) { fuzz_store_of(sample_image(), input); }

// Of a holder of the key, who forges content.
void fuzz_store_sealed(View input) {
  fuzz_store_of(encrypted_sample_image(), input);
  with_hostile_store(encrypted_sample_image(), input, write_store);
}

// gc relies on a forged census of an earlier gc. The input is a list of offsets in that file
// with bytes to write there or, after an odd first byte, all of its body.
void fuzz_store_gc(View input) {
  with_hostile_store(sample_image(), {}, [&](store::StoreDirectory& store) {
    auto& fs = dynamic_cast<test::MemoryFs&>(store.fs());
    const auto gc = [&](bool dry_run) {
      return answers([&] { store::collect_garbage(store, dry_run, nullptr); });
    };
    require(gc(false), "the sample can be collected");
    const std::string path = store::census_path(store);
    Bytes bytes = fs.read_file(path);
    Input in(input);
    if (in.u8() % 2 == 1) {
      bytes.resize(format::kWholeFileHeaderBytes);
      bytes.insert(bytes.end(), in.rest().begin(), in.rest().end());
      bytes.resize(bytes.size() + 8);
    } else {
      while (!in.empty()) {
        const std::size_t at = in.u16();
        bytes[at % bytes.size()] = static_cast<std::byte>(in.u8());
      }
    }
    const auto length = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(bytes.data() + 12, &length, sizeof length);
    seal_end(bytes, store.checksum_seed());
    fs.unlink(path);
    fs.write_file(path, bytes);
    const std::uint64_t changes = fs.changes();
    gc(true);
    require(fs.changes() == changes, "looking changes nothing");
    gc(false);
    answers([&] { store.remove_snapshot("first"); });
    gc(false);
    read_store(store, false);
  });
}

void fuzz_store_write(View input) { with_hostile_store(sample_image(), input, write_store); }

}  // namespace

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {{"store", fuzz_store},
                                        {"store_gc", fuzz_store_gc},
                                        {"store_sealed", fuzz_store_sealed},
                                        {"store_write", fuzz_store_write}};
  return kTargets;
}

}  // namespace vellum::fuzz
