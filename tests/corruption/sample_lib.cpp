#include "corruption/sample_lib.hpp"

#include "store/branch/branch_writer.hpp"
#include "store/support.hpp"

namespace vellum::corruption {

using format::kPageBytes;
using store::BranchWriter;
using store::test::Model;

namespace {

// Content that compresses to about a third.
void fill(Model& model, format::PageNumber page, std::mt19937_64& random) {
  for (std::size_t at = 0; at < kPageBytes; at += 8)
    model.store64(page, at, random() % 3 == 0 ? random() : at);
}

void scribble(Model& model, std::mt19937_64& random, int pages, int stores) {
  for (int i = 0; i < pages; ++i) {
    const auto page = random() % model.pages();
    if (random() % 9 == 0) {
      model.zero(page);
      continue;
    }
    for (int k = 0; k < stores; ++k) model.store64(page, random() % 512 * 8, random() % 1000);
  }
}

void make_main(store::StoreDirectory& store, Sample& sample, std::size_t pages,
               std::mt19937_64& random) {
  store.create_branch("main", pages * kPageBytes, 0x700000000000);
  const auto writer = BranchWriter::open(store, "main");
  Model model(pages);
  for (std::size_t p = 0; p < pages; p += 3) fill(model, p, random);
  for (int i = 1; i <= 5; ++i) {
    store::test::commit(*writer, model, true);
    const std::string name = "snap-" + std::to_string(i);
    writer->publish_snapshot(name, "snapshot");
    sample.contents[name] = model.bytes;
    scribble(model, random, 12, 20);
    if (i == 3) fill(model, random() % pages, random);
    store::test::commit(*writer, model, false);
  }
  sample.contents["main"] = model.bytes;
}

// Its writer is never closed: the caller copies the files during its lifetime.
std::unique_ptr<BranchWriter> make_open(store::StoreDirectory& store, Sample& sample,
                                        std::mt19937_64& random) {
  store.create_branch_at("open", read_snapshot(store, "snap-2").version, "snap-2");
  auto writer = BranchWriter::open(store, "open");
  Model model(sample.contents["snap-2"].size() / kPageBytes);
  model.bytes = sample.contents["snap-2"];
  for (std::size_t p = 0; p < model.pages(); ++p) model.touched.insert(p);
  base::Compressor compressor;
  model.take(4, compressor);  // sets the baseline of later changes; there is nothing to commit yet
  for (int i = 0; i < 4; ++i) {
    scribble(model, random, 3, 4);
    store::test::commit(*writer, model, i == 1);
  }
  sample.contents["open"] = model.bytes;
  return writer;
}

}  // namespace

Sample make_sample(std::size_t pages, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Sample sample;
  test::MemoryFs fs;
  format::Superblock options;
  options.block_bytes = 16u << 10;
  options.journal_half_bytes = format::kMinJournalHalfBytes;
  options.pack_bytes = std::max<std::uint64_t>(format::kMinPackBytes, pages * kPageBytes / 8);
  const auto store = store::StoreDirectory::create(fs, kStorePath, options);
  make_main(*store, sample, pages, random);
  store->create_branch_at("idle", read_snapshot(*store, "snap-4").version, "snap-4");
  sample.contents["idle"] = sample.contents["snap-4"];
  const auto open_writer = make_open(*store, sample, random);
  sample.fs = fs.clone();
  return sample;
}

Bytes read_version(store::StoreDirectory& store, const std::string& name) {
  const auto source = store::test::open_version(store, name);
  Bytes out(static_cast<std::size_t>(source->region_bytes()));
  source->read(0, out.size() / kPageBytes, out.data());
  return out;
}

}  // namespace vellum::corruption
