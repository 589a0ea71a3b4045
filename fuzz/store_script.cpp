#include "store_script.hpp"

#include <algorithm>

namespace vellum::fuzz {
namespace {

constexpr std::size_t kMaxChanges = 24;
constexpr std::size_t kMaxPayloadBytes = 160u << 10;

// Numbers that often break code, in addition to those of the input.
std::uint64_t number(Input& in) {
  constexpr std::uint64_t kEdges[] = {0,          1,          4096,       65536,
                                      1ULL << 32, UINT32_MAX, 1ULL << 34, 1ULL << 46,
                                      1ULL << 48, 1ULL << 63, UINT64_MAX, 128u << 20};
  const std::uint8_t how = in.u8();
  if (how < 128) return how;
  if (how < 128 + std::size(kEdges)) return kEdges[how - 128];
  return how < 200 ? in.u32() : in.u64();
}

void overwrite(Bytes& bytes, std::size_t at, View with) {
  if (bytes.empty()) return;
  at %= bytes.size();
  const std::size_t n = std::min(with.size(), bytes.size() - at);
  std::copy_n(with.begin(), n, bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

void change_record_header(Record& r, Input& in) {
  switch (in.u8() % 6) {
    case 0:
      r.type = static_cast<format::RecordType>(1 + in.u8() % 6);
      break;
    case 1:
      r.codec = base::codecs()[in.u8() % 5].codec;
      break;
    case 2:
      r.items = static_cast<std::uint32_t>(number(in));
      break;
    case 3:
      r.raw_bytes_lie = static_cast<std::int64_t>(static_cast<std::int32_t>(number(in)));
      break;
    case 4:
      r.stored_bytes_lie = static_cast<std::int64_t>(static_cast<std::int32_t>(number(in)));
      break;
    default:
      r.hash = !r.hash;
  }
}

void change_entry(Image& image, Input& in) {
  Record& r = image.record(in.u8());
  std::vector<format::MapEntry> entries(format::kMaxEntriesPerMapBlock);
  const int n = format::decode_map_block(r.raw, entries);
  if (n < 0) return;
  entries.resize(static_cast<std::size_t>(n));
  auto& e = entries[in.u8() % entries.size()];
  switch (in.u8() % 7) {
    case 0:
      e.page = number(in);
      break;
    case 1:
      e.count = static_cast<std::uint32_t>(number(in));
      break;
    case 2:
      e.slot = static_cast<std::uint32_t>(number(in));
      break;
    case 3:
      e.kind = static_cast<format::PageKind>(in.u8() % 3);
      e.depth = e.kind == format::PageKind::delta ? 1 : 0;
      break;
    case 4:
      e.depth = in.u8();
      break;
    case 5:
      e.record = image.ref_of(in.u8());
      break;
    default:
      if (entries.size() < format::kMaxEntriesPerMapBlock) entries.push_back(e);
  }
  r.raw = format::encode_map_block(entries);
  r.items = static_cast<std::uint32_t>(entries.size());
}

void change_version(format::Version& v, Input& in) {
  std::uint64_t* const fields[] = {&v.branch_id,     &v.sequence,    &v.region_bytes,
                                   &v.base_address,  &v.active_pack, &v.active_pack_end_bytes,
                                   &v.pages_changed, &v.bytes_added, &v.next_pack_number};
  const std::size_t which = in.u8() % (std::size(fields) + 1);
  if (which < std::size(fields)) {
    *fields[which] = number(in);
  } else {
    v.time_ns = static_cast<std::int64_t>(number(in));
  }
}

void change_runs(const Image& image, format::Version& v, Input& in) {
  auto& runs = v.runs;
  switch (in.u8() % 5) {
    case 0:  // any record as a root
      if (runs.size() < format::kMaxRunsPerVersion)
        runs.push_back({image.ref_of(in.u8()), 1 + number(in)});
      break;
    case 1:  // the same run repeatedly
      if (runs.empty()) return;
      runs.resize(std::min<std::size_t>(format::kMaxRunsPerVersion, 1 + in.u8()), runs.front());
      break;
    case 2:  // one lost
      if (!runs.empty())
        runs.erase(runs.begin() + in.u8() % static_cast<std::ptrdiff_t>(runs.size()));
      break;
    case 3:
      std::reverse(runs.begin(), runs.end());
      break;
    default:
      if (!runs.empty()) runs[in.u8() % runs.size()].entries = 1 + number(in);
  }
}

// Applies `body` to one of the versions of the image, in any of its places.
template <typename Body>
void with_version(Image& image, std::uint8_t which, Body body) {
  std::size_t at = which % (image.refs.size() + image.journals.size() * 2 + image.record_count());
  if (at < image.refs.size()) return body(image.refs[at].ref.version);
  at -= image.refs.size();
  format::Version v;
  if (at < image.journals.size() * 2) {
    auto& half = image.journals[at / 2].halves[at % 2];
    if (half.empty() || !format::decode_version(half.front().payload, v)) return;
    body(v);
    half.front().payload = format::encode_version(v);
    half.front().header.sequence = v.sequence;
    return;
  }
  Record& r = image.record(at - image.journals.size() * 2);
  if (!format::decode_version(r.raw, v)) return;
  body(v);
  r.raw = format::encode_version(v);
}

Frame* pick_frame(Image& image, Input& in) {
  if (image.journals.empty()) return nullptr;
  auto& half = image.journals[in.u8() % image.journals.size()].halves[in.u8() % 2];
  return half.empty() ? nullptr : &half[in.u8() % half.size()];
}

// Names that must stay in their directory, and some good ones.
std::string hostile_name(Input& in) {
  static const std::string kNames[] = {
      "..",     ".",    "a/../b",     "/outside", "a\nb",
      "-rf",    "main", "side",       "first",    std::string(200, 'n'),
      "second", "",     "caf\xc3\xa9"};
  const std::uint8_t which = in.u8();
  if (which < 128) return kNames[which % std::size(kNames)];
  const View bytes = in.take(which % 16);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The encoders accept names of at most 200 bytes.
void change_ref(Image& image, Input& in) {
  if (image.refs.empty()) return;
  Ref& r = image.refs[in.u8() % image.refs.size()];
  switch (in.u8() % 5) {
    case 0:
      r.file = hostile_name(in);
      break;
    case 1:
      r.ref.name = hostile_name(in);
      break;
    case 2:
      r.ref.branch = hostile_name(in);
      break;
    case 3:
      r.store_id[0] ^= std::byte{1};
      break;
    default:
      if (image.refs.size() < 8) {
        Ref copy = r;
        copy.file = hostile_name(in);
        image.refs.push_back(std::move(copy));
      }
  }
}

void change_journal(Image& image, Input& in) {
  Journal& j = image.journals[in.u8() % image.journals.size()];
  switch (in.u8() % 6) {
    case 0:
      j.directory = hostile_name(in);
      break;
    case 1:
      j.header.branch = hostile_name(in);
      break;
    case 2:
      j.header.branch_id = number(in);
      break;
    case 3:
      j.header.half_bytes = static_cast<std::uint32_t>(number(in));
      break;
    case 4:
      j.header.store_id[0] ^= std::byte{1};
      break;
    default:
      std::swap(j.halves[0], j.halves[1]);
  }
}

void change_superblock(format::Superblock& sb, Input& in) {
  switch (in.u8() % 5) {
    case 0:
      sb.block_bytes = 1u << (in.u8() % 32);
      break;
    case 1:
      sb.compression = base::codecs()[in.u8() % 5].codec.compression;
      break;
    case 2:
      sb.compression_level = in.u8();
      break;
    case 3:
      sb.pack_bytes = number(in);
      break;
    default:
      sb.journal_half_bytes = static_cast<std::uint32_t>(number(in));
  }
}

std::vector<std::string> files_of(const test::MemoryFs& fs, const std::string& root) {
  std::vector<std::string> out{root + "/vellum.store", root + "/packs", root + "/branches",
                               root + "/snapshots", root + "/tmp"};
  for (const char* folder : {"/packs", "/branches", "/snapshots"}) {
    for (const auto& e : fs.list(root + folder)) {
      out.push_back(root + folder + "/" + e.name);
      if (e.is_directory) out.push_back(out.back() + "/journal");
    }
  }
  return out;
}

}  // namespace

void Script::change_image(Change change, Image& image) {
  Input& in = input_;
  switch (change) {
    case Change::payload_bytes: {
      Record& r = image.record(in.u8());
      const std::uint16_t at = in.u16();
      overwrite(r.raw, at, in.take(1 + in.u8() % 16));
      r.changed = true;
      return;
    }
    case Change::payload_size: {
      Record& r = image.record(in.u8());
      r.raw.resize(static_cast<std::size_t>(number(in) % kMaxPayloadBytes));
      r.changed = true;
      return;
    }
    case Change::payload_replace: {
      Record& r = image.record(in.u8());
      const View bytes = in.take(in.u8());
      r.raw.assign(bytes.begin(), bytes.end());
      r.changed = true;
      return;
    }
    case Change::payload_of_other: {
      Record& r = image.record(in.u8());
      const Record& other = image.record(in.u8());
      r.raw = Bytes(other.raw);
      r.items = other.items;
      r.changed = true;
      return;
    }
    case Change::record_header: {
      Record& r = image.record(in.u8());
      change_record_header(r, in);
      r.changed = true;
      return;
    }
    case Change::map_entry:
      return change_entry(image, in);
    case Change::version_field:
      return with_version(image, in.u8(), [&](auto& v) { change_version(v, in); });
    case Change::version_runs:
      return with_version(image, in.u8(), [&](auto& v) { change_runs(image, v, in); });
    case Change::frame_payload:
      if (Frame* f = pick_frame(image, in)) {
        const std::uint16_t at = in.u16();
        overwrite(f->payload, at, in.take(1 + in.u8() % 16));
      }
      return;
    case Change::frame_header:
      if (Frame* f = pick_frame(image, in)) {
        const std::uint8_t which = in.u8();
        if (which % 3 == 0) f->header.epoch = number(in);
        if (which % 3 == 1) f->header.sequence = number(in);
        if (which % 3 == 2) f->header.type = static_cast<format::FrameType>(1 + in.u8() % 4);
      }
      return;
    case Change::ref_identity:
      return change_ref(image, in);
    case Change::journal_identity:
      return change_journal(image, in);
    case Change::pack_identity: {
      Pack& p = image.packs[in.u8() % image.packs.size()];
      const std::uint8_t which = in.u8();
      if (which % 4 == 0) p.name = number(in);
      if (which % 4 == 1) p.header.pack = number(in);
      if (which % 4 == 2) p.header.store_id[0] ^= std::byte{1};
      if (which % 4 == 3) p.sealed = !p.sealed;
      return;
    }
    case Change::superblock:
      return change_superblock(image.superblock, in);
    case Change::bomb: {
      Record& r = image.record(in.u8());
      r.raw.assign((1 + in.u8() % 8) * (1u << 20), std::byte{0});
      r.items = static_cast<std::uint32_t>(r.raw.size() / format::kPageBytes);
      r.codec = base::Compression::zstd;
      r.changed = true;
      return;
    }
    default:
      return;
  }
}

void Script::note_file_change(Change change) {
  FileChange f{change, input_.u8(), input_.u8(), input_.u32(), {}};
  if (change == Change::file_bytes) {
    const View bytes = input_.take(1 + f.other % 16);
    f.bytes.assign(bytes.begin(), bytes.end());
  }
  files_.push_back(std::move(f));
}

void Script::apply_to_image(Image& image) {
  for (std::size_t n = 0; n < kMaxChanges && !input_.empty(); ++n) {
    const auto change = static_cast<Change>(input_.u8() % static_cast<std::uint8_t>(Change::count));
    if (change >= Change::file_bytes) {
      note_file_change(change);
    } else {
      change_image(change, image);
    }
  }
}

void Script::apply_to_files(test::MemoryFs& fs, const std::string& root) {
  constexpr std::uint32_t kMaxFileBytes = 4u << 20;
  const auto files = files_of(fs, root);
  for (const auto& f : files_) {
    const std::string& path = files[f.file % files.size()];
    const std::string& other = files[f.other % files.size()];
    Bytes bytes = fs.read_file(path);
    try {
      switch (f.change) {
        case Change::file_bytes:
          overwrite(bytes, f.at, f.bytes);
          if (bytes.empty()) continue;
          fs.erase(path);
          fs.write_file(path, std::move(bytes));
          break;
        case Change::file_size:
          bytes.resize(f.at % kMaxFileBytes);
          fs.erase(path);
          fs.write_file(path, std::move(bytes));
          break;
        case Change::file_copy:
          fs.erase(path);
          fs.write_file(path, fs.read_file(other));
          break;
        default: {
          fs.erase(path);
          if (f.at % 5 == 0) fs.make_link(path, "/outside");
          if (f.at % 5 == 1) fs.make_link(path, other);
          if (f.at % 5 == 2) fs.make_fifo(path);
          if (f.at % 5 == 3) fs.make_directory(path);
        }
      }
    } catch (const Error&) {
      continue;  // its directory was removed
    }
  }
}

}  // namespace vellum::fuzz
