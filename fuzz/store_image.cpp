// Builds the sample image. store_seal.cpp writes images to files.
#include "store_image.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <vellum/key.hpp>

#include "format/records/delta.hpp"

namespace vellum::fuzz {

using format::kPageBytes;
using format::PageKind;
using format::RecordType;

namespace {

constexpr std::uint64_t kBranch = 0x0badcafe;
constexpr std::uint64_t kSideBranch = 0x51de;
constexpr std::uint64_t kPack1 = kBranch << 32 | 1, kPack2 = kBranch << 32 | 2;
constexpr std::uint64_t kSlackBytes = 512;  // after each record, for changes that make it longer
constexpr std::int64_t kTime = 1700000000000000000;

format::Uuid sample_id() {
  format::Uuid id{};
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(0xa0 + i);
  return id;
}

Bytes pages_raw(std::size_t pages, unsigned salt) {
  Bytes raw(pages * kPageBytes);
  for (std::size_t i = 0; i < raw.size(); ++i)
    raw[i] = static_cast<std::byte>((i / 5 * salt + i / 257) & 0xff);
  return raw;
}

Bytes deltas_raw(std::initializer_list<format::PageNumber> pages, unsigned salt) {
  format::DeltaBatch batch;
  for (const auto page : pages) {
    Bytes now(kPageBytes);
    for (std::size_t at = salt * 8; at < kPageBytes; at += 1000)
      now[at] = static_cast<std::byte>(salt);
    batch.add_difference_from_zero(page, now.data());
  }
  return format::encode_delta_batch(batch, 0, pages.size());
}

// Places records one after another, each with room to grow.
format::RecordRef add(Pack& pack, RecordType type, base::Codec codec, std::uint32_t items,
                      Bytes raw) {
  Record r;
  r.type = type;
  r.codec = codec;
  r.items = items;
  r.offset_bytes = format::kPackHeaderBytes;
  if (!pack.records.empty()) {
    r.offset_bytes = pack.records.back().offset_bytes + pack.records.back().room_bytes;
  }
  const std::uint64_t stored = raw.size() + raw.size() / 255 + 128;
  r.room_bytes = (format::kRecordHeaderBytes + stored + kSlackBytes) / 8 * 8;
  r.raw = std::move(raw);
  pack.records.push_back(std::move(r));
  return {pack.name, pack.records.back().offset_bytes, 0};
}

format::RunRef add_run(Pack& pack, std::vector<format::MapEntry> entries,
                       std::vector<std::uint64_t> packs) {
  const auto block =
      add(pack, RecordType::map_block, base::Compression::zstd,
          static_cast<std::uint32_t>(entries.size()), format::encode_map_block(entries));
  format::RunRoot root;
  root.blocks.push_back({entries.front().page, entries.back().page + entries.back().count - 1,
                         block.offset_bytes, 0, static_cast<std::uint32_t>(entries.size())});
  root.packs = std::move(packs);
  return {
      add(pack, RecordType::run_root, base::Compression::none, 1, format::encode_run_root(root)),
      entries.size()};
}

format::Version version_of(std::uint64_t sequence, std::vector<format::RunRef> runs,
                           std::uint64_t pack, std::uint64_t next) {
  format::Version v;
  v.branch_id = kBranch;
  v.sequence = sequence;
  v.time_ns = kTime + static_cast<std::int64_t>(sequence);
  v.region_bytes = kSamplePages * kPageBytes;
  v.base_address = 0x700000000000;
  v.message = "sample";
  v.active_pack = pack;
  v.active_pack_end_bytes = 64;  // corrected when the pack is laid out
  v.next_pack_number = next;
  v.runs = std::move(runs);
  return v;
}

Journal journal_of(const char* name, std::uint64_t branch_id) {
  Journal j;
  j.directory = name;
  j.header.store_id = sample_id();
  j.header.branch_id = branch_id;
  j.header.created_ns = kTime;
  j.header.half_bytes = format::kMinJournalHalfBytes;
  j.header.branch = name;
  return j;
}

Frame base_frame(std::uint64_t epoch, const format::Version& v) {
  return {{format::FrameType::base, epoch, v.sequence, 0}, format::encode_version(v)};
}

Bytes packed(base::Codec codec, const Bytes& raw) {
  base::Compressor compressor;
  Bytes out(base::compress_bound(codec, raw.size()));
  out.resize(compressor.compress(codec, 1, raw, out));
  return out;
}

Frame commit_frame(std::uint64_t epoch, std::uint64_t sequence, std::uint64_t pages,
                   unsigned salt) {
  format::CommitBody body;
  body.set_info({kTime, pages * kPageBytes, 0x700000000000, "commit"});
  const Bytes deltas = deltas_raw({0, pages - 1}, salt);
  body.parts.push_back({format::PartType::deltas,
                        base::Compression::none,
                        static_cast<std::uint32_t>(deltas.size()),
                        {},
                        deltas});
  body.parts.push_back({format::PartType::pages,
                        base::Compression::zstd,
                        2 * kPageBytes,
                        {50, 51},
                        packed(base::Compression::zstd, pages_raw(2, salt))});
  body.parts.push_back({format::PartType::zeros, base::Compression::none, 0, {16, 30}, {}});
  return {{format::FrameType::commit, epoch, sequence, 0}, format::encode_commit(body)};
}

// As after a checkpoint in the background: with a commit after it.
Frame base_frame_with_commit(std::uint64_t epoch, const format::Version& v, const Frame& commit) {
  return {{format::FrameType::base_with_commits, epoch, v.sequence + 1, 0},
          format::encode_base_with_commits(v, std::vector<format::Payload>{commit.payload})};
}

Image build_sample(const base::StoreKeys* keys) {
  Image image;
  image.keys = keys;
  image.superblock.encrypted = keys != nullptr;
  image.superblock.store_id = sample_id();
  image.superblock.created_ns = kTime;
  image.superblock.block_bytes = 32u << 10;
  image.superblock.pack_bytes = 1u << 20;
  image.superblock.journal_half_bytes = format::kMinJournalHalfBytes;

  Pack one{kPack1, {sample_id(), kPack1, kBranch}, {}, true};
  const auto a = add(one, RecordType::pages, base::Compression::zstd, 8, pages_raw(8, 3));
  const auto b = add(one, RecordType::pages, base::Compression::lz4, 4, pages_raw(4, 5));
  const auto d1 = add(one, RecordType::deltas, base::Compression::none, 2, deltas_raw({0, 3}, 1));
  const auto run1 = add_run(one,
                            {{0, 1, 0, PageKind::delta, 1, d1},
                             {0, 1, 0, PageKind::base, 0, a},
                             {1, 2, 1, PageKind::base, 0, a},
                             {3, 1, 1, PageKind::delta, 1, d1},
                             {3, 1, 3, PageKind::base, 0, a},
                             {4, 4, 4, PageKind::base, 0, a},
                             {16, 4, 0, PageKind::base, 0, b},
                             {30, 4, 0, PageKind::zero, 0, {}}},
                            {kPack1});
  const auto first = version_of(10, {run1}, kPack1, 2);
  add(one, RecordType::version, base::Compression::zstd, 1, format::encode_version(first));

  Pack two{kPack2, {sample_id(), kPack2, kBranch}, {}, false};
  const auto d2 = add(two, RecordType::deltas, base::Compression::zstd, 2, deltas_raw({0, 5}, 2));
  const auto c = add(two, RecordType::pages, base::Compression::none, 1, pages_raw(1, 7));
  const auto run2 = add_run(two,
                            {{0, 1, 0, PageKind::delta, 2, d2},
                             {5, 1, 1, PageKind::delta, 1, d2},
                             {31, 1, 0, PageKind::zero, 0, {}},
                             {40, 1, 0, PageKind::base, 0, c}},
                            {kPack2});
  auto second = version_of(20, {run2, run1}, kPack2, 3);
  second.parent = "first";
  add(two, RecordType::version, base::Compression::none, 1, format::encode_version(second));
  image.packs = {std::move(one), std::move(two)};

  image.refs.push_back({"first", sample_id(), {"first", "main", kTime, 1, first}});
  image.refs.push_back({"second", sample_id(), {"second", "main", kTime, 2, second}});

  Journal main = journal_of("main", kBranch);
  main.halves[0] = {base_frame(1, first), commit_frame(1, 11, kSamplePages, 4)};
  main.halves[1] = {base_frame_with_commit(2, second, commit_frame(2, 21, kSamplePages, 5)),
                    commit_frame(2, 22, 80, 6)};
  Journal side = journal_of("side", kSideBranch);
  auto fork = first;
  fork.branch_id = kSideBranch;
  fork.parent = "first";
  fork.active_pack = fork.active_pack_end_bytes = 0;
  fork.next_pack_number = 1;
  side.halves[0] = {base_frame(1, fork)};
  image.journals = {std::move(main), std::move(side)};

  for (Pack& pack : image.packs) pack.header.sealed = keys != nullptr;
  // Compresses the data that runs of the target need not compress again.
  test::MemoryFs scratch;
  write_image(image, scratch, "/store");
  return image;
}

}  // namespace

std::size_t Image::record_count() const {
  std::size_t n = 0;
  for (const auto& p : packs) n += p.records.size();
  return n;
}

Record& Image::record(std::size_t index) {
  index %= record_count();
  for (auto& p : packs) {
    if (index < p.records.size()) return p.records[index];
    index -= p.records.size();
  }
  std::abort();
}

format::RecordRef Image::ref_of(std::size_t index) const {
  index %= record_count();
  for (const auto& p : packs) {
    if (index < p.records.size())
      return {p.name, p.records[index].offset_bytes, p.records[index].tag};
    index -= p.records.size();
  }
  std::abort();
}

const Image& sample_image() {
  static const Image image = build_sample(nullptr);
  return image;
}

namespace {

// A key file without a name.
void use_key_file() {
  const std::string content(40, 'k');
  const int fd = ::memfd_create("vellum fuzz key", MFD_CLOEXEC);
  require(fd >= 0 && ::write(fd, content.data(), content.size()) == 40, "a key file is made");
  KeySource source;
  source.key_file = "/proc/self/fd/" + std::to_string(fd);
  set_key_source(source);
}

}  // namespace

const Image& encrypted_sample_image() {
  static const Image image = [] {
    use_key_file();
    static const base::StoreKeys keys(base::Secret(Bytes(base::kKeyBytes, std::byte{5})));
    return build_sample(&keys);
  }();
  return image;
}

}  // namespace vellum::fuzz
