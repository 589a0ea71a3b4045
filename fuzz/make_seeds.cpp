// Writes the seeds: real encodings of every structure. usage: make_seeds <folder>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/bytes/codec.hpp"
#include "format/redo.hpp"
#include "format/samples.hpp"
#include "remote/objects/hold.hpp"
#include "remote/objects/name_table.hpp"
#include "remote/remote_samples.hpp"

namespace {

using namespace vellum;
using format::samples::Bytes;
namespace samples = format::samples;

std::filesystem::path root;

void write(const char* target, const char* name, const Bytes& bytes) {
  std::filesystem::create_directories(root / target);
  std::ofstream out(root / target / name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

// The one or more bytes before the input that some targets read as parameters.
Bytes after(std::initializer_list<unsigned> front, const Bytes& bytes) {
  Bytes out;
  for (const unsigned b : front) out.push_back(static_cast<std::byte>(b));
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

void write_fixed_structures() {
  write("superblock", "sample", format::encode_superblock(samples::superblock()));
  write("superblock", "default", format::encode_superblock({}));
  write("pack_header", "sample",
        format::encode_pack_header({samples::store_id(), (3ULL << 32) | 1, 3}));
  write("pack_trailer", "sample", format::encode_pack_trailer((3ULL << 32) | 1, 640, 77));
  Bytes header = format::encode_journal_header(samples::journal_header());
  header.resize(64);  // the target fills the page
  write("journal_header", "sample", header);
  write("snapshot_ref", "sample",
        format::encode_snapshot_ref(samples::snapshot_ref(), samples::store_id()));
  write("snapshot_ref", "signed",
        format::encode_snapshot_ref(samples::signed_snapshot_ref(), samples::store_id()));
  write("signers", "sample", format::encode_signers(samples::signers(), samples::store_id()));
  write("proof", "sample", format::encode_proof(samples::proof()));
  write("gc_census", "sample", format::encode_gc_census(samples::gc_census(), samples::store_id()));
  write("gc_census", "empty", format::encode_gc_census({}, samples::store_id()));
  write("working_set", "sample",
        format::encode_working_set(samples::working_set(), samples::store_id()));
  write("key_slots", "sample", format::encode_key_slots(samples::key_slots(), samples::store_id()));
  write("working_set", "empty", format::encode_working_set({}, samples::store_id()));
  write("group_file", "sample", format::encode_group_file(samples::group_file()));
  write("group_record", "sample",
        format::encode_group_record(samples::group_record(), samples::store_id()));
}

void write_remote_objects() {
  const format::Uuid id = samples::store_id();
  write("head", "sample", remote::encode_head(remote::samples::sample_head(), id));
  write("hold", "sample", remote::encode_hold(remote::samples::sample_hold(), id));
  write("name_table", "sample",
        remote::encode_name_table(remote::samples::sample_head().versions, 2, id));
  write("piece_list", "sample", remote::encode_piece_list(remote::samples::sample_list(), id));
  write("list_on_base", "sample",
        remote::encode_list_on_base(remote::samples::sample_list_on_base(),
                                    remote::samples::sample_base(), id));
  write("piece", "sample", remote::encode_piece_index(remote::samples::sample_records(), id));
  write("remote_file", "sample", remote::encode_remote_file(remote::samples::sample_file(), id));
  const std::string listing =
      "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%2Fb&amp;c</Key>"
      "<Size>12</Size></Contents><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>";
  const auto* text = reinterpret_cast<const std::byte*>(listing.data());
  write("s3_listing", "sample", Bytes(text, text + listing.size()));
}

void write_records() {
  constexpr std::uint64_t kSeed = 0x5eed;
  format::RecordHeader h;
  write("record", "pages-hash", samples::record(h));
  const auto one = [&](const char* name, format::RecordType type, std::uint32_t items,
                       const Bytes& raw) {
    format::RecordHeader r;
    r.type = type;
    r.pack = (3ULL << 32) | 1;
    r.offset_bytes = 64;
    r.raw_bytes = static_cast<std::uint32_t>(raw.size());
    r.items = items;
    Bytes out;
    format::append_record(out, r, {}, raw, kSeed);
    write("record", name, out);
  };
  one("deltas", format::RecordType::deltas, 2,
      format::encode_delta_batch(samples::delta_batch(), 0, 2));
  one("map_block", format::RecordType::map_block, 7,
      format::encode_map_block(samples::map_entries()));
  one("run_root", format::RecordType::run_root, 3, format::encode_run_root(samples::run_root()));
  one("version", format::RecordType::version, 1, format::encode_version(samples::version()));
  one("hashes", format::RecordType::hashes, 5, format::encode_page_hashes(samples::page_hashes()));
  one("index", format::RecordType::index, 3, format::encode_index(samples::index_lines()));
  write("index", "sample", format::encode_index(samples::index_lines()));
  write("index", "empty", format::encode_index({}));
  one("translation", format::RecordType::translation, 3,
      format::encode_translation(samples::translation()));
  write("translation", "sample", format::encode_translation(samples::translation()));
  write("translation", "empty", format::encode_translation({}));
  const Bytes commit = format::encode_commit(samples::commit_body());
  write("frame", "commit",
        format::encode_frame({format::FrameType::commit, 3, 4, 0}, commit, kSeed));
  write("frame", "base",
        format::encode_frame({format::FrameType::base, 1, 1000, 0},
                             format::encode_version(samples::version()), kSeed));
}

void write_bodies() {
  write("commit", "sample", format::encode_commit(samples::commit_body()));
  write("commit", "empty", format::encode_commit({}));
  const Bytes commit = format::encode_commit(samples::commit_body());
  const Bytes empty = format::encode_commit({});
  write("base_with_commits", "sample",
        format::encode_base_with_commits(samples::version(),
                                         std::vector<format::Payload>{commit, empty}));
  write("version", "sample", format::encode_version(samples::version()));
  write("version", "empty", format::encode_version({}));
  write("map_block", "sample", format::encode_map_block(samples::map_entries()));
  write("run_root", "sample", format::encode_run_root(samples::run_root()));
  write("page_hashes", "sample", format::encode_page_hashes(samples::page_hashes()));
  const auto deltas = samples::delta_batch();
  write("delta_batch", "sample", format::encode_delta_batch(deltas, 0, deltas.pages().size()));
  std::mt19937_64 random(1);
  format::DeltaBatch many;
  for (format::PageNumber page = 1; page < 6; ++page) {
    Bytes now(format::kPageBytes);
    for (int k = 0; k < 6; ++k) now[random() % format::kPageBytes] = std::byte{9};
    many.add_difference_from_zero(page * 50, now.data());
  }
  write("delta_batch", "scattered", format::encode_delta_batch(many, 0, many.pages().size()));
  write("page_diff", "runs",
        after({0x10, 0x80, 4, 1, 2, 3, 4, 0x11, 0, 5, 9, 8, 7, 6, 5, 0xff, 0xf, 1, 3}, {}));
}

// The header for the target's records, and its first record.
void write_redo() {
  const format::RedoHeader header{1, 2, 3, 4};
  write("redo", "header", format::encode_redo_header(header));
  Bytes lines(5 * format::kLineBytes, std::byte{7}), record;
  const format::RedoSpan spans[] = {{3, 2, lines.data()}, {64, 3, lines.data()}};
  encode_redo_record(header, 1, 8192, spans, record);
  write("redo", "record", record);
}

void write_text_and_codecs() {
  write("name", "ascii", samples::text("release-1.2_x+y"));
  write("name", "utf8", samples::text("\u00fcbung\u4e2d\U0001f600"));
  write("name", "dots", samples::text(".."));
  write("name", "slash", samples::text("a/../b"));
  Bytes raw(300);
  for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i / 7 % 13);
  base::Compressor compressor;
  for (const auto& [name, codec] : base::codecs()) {
    const unsigned byte = base::codec_byte(codec);
    Bytes out(1000);
    out.resize(compressor.compress(codec, 1, raw, out));
    write("decompress", name, after({byte, 300 & 0xff, 300 >> 8}, out));
    write("compress", name, after({byte, 0, 0xff, 0xff}, raw));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  root = argv[1];
  write_fixed_structures();
  write_remote_objects();
  write_records();
  write_bodies();
  write_redo();
  write_text_and_codecs();
  return 0;
}
