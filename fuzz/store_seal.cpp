// Writes an image to files, from the leaves up: first data records, then the records that name
// them. Every tag is thus known when it is needed. A payload that no longer decodes is not
// changed: it names no records.
#include <algorithm>

#include <vellum/key.hpp>

#include "seal.hpp"
#include "store/catalog/key_file.hpp"
#include "store_image.hpp"

namespace vellum::fuzz {

using format::RecordType;

namespace {

// The maximum size of a file of the image: changes can state any size.
constexpr std::size_t kMaxFileBytes = 2u << 20;

struct Sealer {
  Image& image;

  // The tag of the record at that offset, or the stated one.
  void fix(format::RecordRef& ref) const {
    for (const auto& p : image.packs) {
      if (p.name != ref.pack) continue;
      for (const auto& r : p.records) {
        if (r.offset_bytes == ref.offset_bytes) ref.tag = r.tag;
      }
    }
  }
  void fix(format::Version& v) const {
    for (auto& run : v.runs) fix(run.root);
    for (const auto& p : image.packs) {
      if (p.name == v.active_pack && v.active_pack_end_bytes == format::kPackHeaderBytes &&
          !p.records.empty()) {
        v.active_pack_end_bytes = p.records.back().offset_bytes + p.records.back().room_bytes;
      }
    }
  }

  Bytes fixed_payload(const Pack& pack, const Record& r) const {
    if (r.type == RecordType::map_block) {
      std::vector<format::MapEntry> entries(format::kMaxEntriesPerMapBlock);
      const int n = format::decode_map_block(r.raw, entries);
      if (n < 0) return r.raw;
      entries.resize(static_cast<std::size_t>(n));
      for (auto& e : entries) {
        if (e.kind != format::PageKind::zero) fix(e.record);
      }
      return format::encode_map_block(entries);
    }
    if (r.type == RecordType::run_root) {
      format::RunRoot root;
      if (!format::decode_run_root(r.raw, root)) return r.raw;
      for (auto& b : root.blocks) {
        format::RecordRef ref{pack.name, b.offset_bytes, b.tag};
        fix(ref);
        b.tag = ref.tag;
      }
      return format::encode_run_root(root);
    }
    if (r.type == RecordType::version) {
      format::Version v;
      if (!format::decode_version(r.raw, v)) return r.raw;
      fix(v);
      return format::encode_version(v);
    }
    return r.raw;
  }

  void seal(const Pack& pack, Record& r) const {
    const bool data = r.type == RecordType::pages || r.type == RecordType::deltas;
    if (data && !r.changed) return;
    const Bytes raw = fixed_payload(pack, r);
    Bytes stored = raw;
    if (r.codec == base::Compression::lz4 || r.codec == base::Compression::zstd) {
      static base::Compressor compressor;
      stored.resize(base::compress_bound(r.codec, raw.size()));
      stored.resize(compressor.compress(r.codec, 1, raw, stored));
    }
    format::RecordHeader h;
    h.type = r.type;
    h.codec = r.codec;
    h.pack = pack.header.pack;
    h.offset_bytes = r.offset_bytes;
    h.raw_bytes =
        static_cast<std::uint32_t>(static_cast<std::int64_t>(raw.size()) + r.raw_bytes_lie);
    h.items = r.items;
    r.sealed.clear();
    const Bytes hash(r.hash ? 32 : 0);
    format::append_record(r.sealed, h, hash, stored, record_seal());
    if (r.stored_bytes_lie != 0) {
      constexpr std::size_t kStoredBytesAt = 28;
      const auto lie =
          static_cast<std::uint32_t>(static_cast<std::int64_t>(stored.size()) + r.stored_bytes_lie);
      std::memcpy(r.sealed.data() + kStoredBytesAt, &lie, sizeof lie);
      seal_record(r.sealed, seed());
    }
    std::uint64_t checksum = 0;
    std::memcpy(&checksum, r.sealed.data() + 48, sizeof checksum);
    r.tag = static_cast<std::uint32_t>(checksum);
    r.changed = false;
  }

  std::uint64_t seed() const { return format::checksum_seed(image.superblock.store_id); }
  format::RecordSeal record_seal() const { return {seed(), image.keys}; }

  void seal_records() const {
    constexpr RecordType kOrder[][2] = {{RecordType::pages, RecordType::deltas},
                                        {RecordType::map_block, RecordType::map_block},
                                        {RecordType::run_root, RecordType::run_root},
                                        {RecordType::version, RecordType::index}};
    for (const auto& types : kOrder) {
      for (auto& p : image.packs) {
        for (auto& r : p.records) {
          if (r.type == types[0] || r.type == types[1]) seal(p, r);
        }
      }
    }
  }

  Bytes pack_bytes(const Pack& p) const {
    Bytes out = format::encode_pack_header(p.header);
    std::vector<format::IndexLine> lines;
    for (const auto& r : p.records) {
      const std::size_t end = static_cast<std::size_t>(r.offset_bytes) + r.sealed.size();
      if (end > kMaxFileBytes) continue;
      out.resize(std::max(out.size(), end));
      std::copy(r.sealed.begin(), r.sealed.end(),
                out.begin() + static_cast<std::ptrdiff_t>(r.offset_bytes));
      format::RecordHeader h;
      if (format::decode_record_header(r.sealed, h) == nullptr) {
        lines.push_back({h.type, h.offset_bytes, h.stored_bytes, h.raw_bytes, h.items, h.tag()});
      }
    }
    if (!p.records.empty()) {
      const auto end =
          static_cast<std::size_t>(p.records.back().offset_bytes + p.records.back().room_bytes);
      out.resize(std::min(kMaxFileBytes, std::max(out.size(), end)));
    }
    if (p.sealed) append_index(p, lines, out);
    return out;
  }

  void append_index(const Pack& p, const std::vector<format::IndexLine>& lines, Bytes& out) const {
    out.resize((out.size() + 7) / 8 * 8);
    const Bytes raw = format::encode_index(lines);
    format::RecordHeader h;
    h.type = RecordType::index;
    h.pack = p.header.pack;
    h.offset_bytes = out.size();
    h.raw_bytes = static_cast<std::uint32_t>(raw.size());
    h.items = static_cast<std::uint32_t>(lines.size());
    format::append_record(out, h, {}, raw, record_seal());
    const Bytes trailer = format::encode_pack_trailer(p.header.pack, h.offset_bytes, seed());
    out.insert(out.end(), trailer.begin(), trailer.end());
  }

  Bytes journal_bytes(const Journal& j) const {
    Bytes out = format::encode_journal_header(j.header, image.keys);
    const std::size_t half = std::min<std::size_t>(j.header.half_bytes, kMaxFileBytes / 2);
    out.resize(format::kJournalHeaderBytes + 2 * half);
    format::FrameSeal frames(format::checksum_seed(j.header.store_id) ^ j.header.branch_id,
                             image.keys, j.header.branch_id);
    for (std::size_t i = 0; i < 2; ++i) {
      std::size_t at = format::kJournalHeaderBytes + i * half;
      for (const auto& f : j.halves[i]) {
        Bytes payload = f.payload;
        format::Version v;
        std::vector<format::CommitBody> commits;
        if (format::decode_base(f.header, payload, v, commits)) {
          fix(v);
          std::vector<Bytes> bodies;
          for (const auto& c : commits) bodies.push_back(format::encode_commit(c));
          const std::vector<format::Payload> payloads(bodies.begin(), bodies.end());
          payload = bodies.empty() ? format::encode_version(v)
                                   : format::encode_base_with_commits(v, payloads);
        }
        const Bytes frame = format::encode_frame(f.header, payload, frames);
        if (at + frame.size() > out.size()) break;
        format::FrameHeader written;
        format::Payload stored;
        if (format::decode_frame(frame, frames.seed, written, stored)) {
          frames.before = format::frame_authenticator(frame, written);
        }
        std::copy(frame.begin(), frame.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
        at += frame.size();
      }
    }
    return out;
  }
};

// A file is omitted if a change has made its name impossible, or the same as another file's.
void try_write(test::MemoryFs& fs, const std::string& path, Bytes bytes) {
  try {
    fs.write_file(path, std::move(bytes));
  } catch (const Error&) {
    return;
  }
}

// A slot for the key file of key_source(), which the superblock is authenticated by.
Bytes key_slots_of(const Image& image) {
  return store::first_key_slot(key_source(), format::encode_superblock(image.superblock),
                               image.superblock.store_id, image.keys->data_key());
}

std::string pack_name(std::uint64_t pack) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx.pack", static_cast<unsigned long long>(pack));
  return text;
}

}  // namespace

void write_image(Image& image, test::MemoryFs& fs, const std::string& root) {
  fs.make_directory(root);
  for (const char* name : {"/branches", "/snapshots", "/packs", "/tmp"})
    fs.make_directory(root + name);
  Sealer sealer{image};
  sealer.seal_records();
  try_write(fs, root + "/vellum.store", format::encode_superblock(image.superblock));
  if (image.keys != nullptr) try_write(fs, root + "/vellum.keys", key_slots_of(image));
  for (const auto& p : image.packs) {
    try_write(fs, root + "/packs/" + pack_name(p.name), sealer.pack_bytes(p));
  }
  for (const auto& r : image.refs) {
    format::SnapshotRef ref = r.ref;
    sealer.fix(ref.version);
    try_write(fs, root + "/snapshots/" + r.file + ".ref",
              format::encode_snapshot_ref(ref, {r.store_id, image.keys}));
  }
  for (const auto& j : image.journals) {
    try {
      fs.make_directory(root + "/branches/" + j.directory);
    } catch (const Error&) {
      continue;
    }
    try_write(fs, root + "/branches/" + j.directory + "/journal", sealer.journal_bytes(j));
  }
}

}  // namespace vellum::fuzz
