// Encodings without a checksum of their own.
#include "decoder_targets.hpp"
#include "format/journal.hpp"
#include "format/records/page_hashes.hpp"
#include "format/records/page_map.hpp"
#include "format/version.hpp"

namespace vellum::fuzz {
namespace {

constexpr format::PageNumber kMaxPages = format::kMaxRegionBytes / format::kPageBytes;

// Readers rely on these properties without checking them again.
void check_entries(std::span<const format::MapEntry> entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& e = entries[i];
    require(e.count >= 1 && e.page < kMaxPages && e.count <= kMaxPages - e.page,
            "an entry lies in a region");
    require(e.kind == format::PageKind::base || e.count == 1 || e.kind == format::PageKind::zero,
            "a delta covers one page");
    require((e.kind == format::PageKind::delta) == (e.depth > 0), "a depth is that of a delta");
    if (i == 0) continue;
    const auto& newer = entries[i - 1];
    if (newer.page + newer.count <= e.page) continue;
    require(newer.page == e.page && newer.kind == format::PageKind::delta &&
                newer.depth > e.depth && e.count == 1,
            "entries overlap in chains only, and a chain ends");
  }
}

}  // namespace

void fuzz_commit(View input) {
  format::CommitBody body, again;
  if (!format::decode_commit(input, body)) return;
  require(format::decode_commit(format::encode_commit(body), again) && body == again,
          "a commit decodes to itself");
  for (const auto& part : body.parts) {
    for (std::size_t i = 0; i < part.pages.size(); ++i) {
      require(part.pages[i] < body.region_bytes / format::kPageBytes, "pages lie in the region");
      require(i == 0 || part.pages[i] > part.pages[i - 1], "pages ascend");
    }
    require(part.raw_bytes <= format::kMaxRecordRawBytes, "a part's raw size is bounded");
  }
}

void fuzz_base_with_commits(View input) {
  constexpr auto kType = format::FrameType::base_with_commits;
  format::Version v, again;
  if (!format::decode_base_version(kType, input, v)) return;
  std::vector<format::CommitBody> commits, same;
  format::FrameHeader h{kType, 1, v.sequence, 0};
  require(!format::decode_base(h, input, v, commits), "a base frame with commits has one at least");
  for (int i = 0; i < 4; ++i) {
    ++h.sequence;
    if (!format::decode_base(h, input, v, commits)) continue;
    std::vector<Bytes> bodies;
    for (const auto& c : commits) bodies.push_back(format::encode_commit(c));
    require(bodies.size() == h.sequence - v.sequence, "the sequence counts the commits");
    const std::vector<format::Payload> payloads(bodies.begin(), bodies.end());
    const Bytes encoded = format::encode_base_with_commits(v, payloads);
    require(format::decode_base(h, encoded, again, same) && v == again && commits == same,
            "a base frame with commits decodes to itself");
  }
}

void fuzz_version(View input) {
  format::Version v, again;
  if (!format::decode_version(input, v)) return;
  const Bytes encoded = format::encode_version(v);
  require(encoded.size() <= format::kMaxVersionBytes, "a version stays below its limit");
  require(format::decode_version(encoded, again) && v == again, "a version decodes to itself");
}

void fuzz_map_block(View input) {
  static std::vector<format::MapEntry> out(format::kMaxEntriesPerMapBlock), again(out.size());
  const int n = format::decode_map_block(input, out);
  if (n < 0) return;
  const auto entries = std::span(out).first(static_cast<std::size_t>(n));
  check_entries(entries);
  require(format::decode_map_block(format::encode_map_block(entries), again) == n &&
              std::equal(entries.begin(), entries.end(), again.begin()),
          "a map block decodes to itself");
  // A reader with less room refuses and does not write past it.
  std::vector<format::MapEntry> tight(static_cast<std::size_t>(n) - 1);
  require(format::decode_map_block(input, tight) < 0, "no room, no decoding");
}

void fuzz_run_root(View input) {
  format::RunRoot root, again;
  if (!format::decode_run_root(input, root)) return;
  require(format::decode_run_root(format::encode_run_root(root), again) && root == again,
          "a run root decodes to itself");
  for (std::size_t i = 0; i < root.blocks.size(); ++i) {
    const auto& b = root.blocks[i];
    require(b.first_page <= b.last_page && b.last_page < kMaxPages, "a block lies in a region");
    require(i == 0 || root.blocks[i - 1].last_page < b.first_page, "blocks ascend");
  }
}

void fuzz_page_hashes(View input) {
  std::vector<format::PageHash> hashes, again;
  if (!format::decode_page_hashes(input, hashes)) return;
  require(!hashes.empty() && hashes.size() <= format::kMaxPageHashes, "hashes are bounded");
  require(format::decode_page_hashes(format::encode_page_hashes(hashes), again) && hashes == again,
          "hashes decode to themselves");
}

}  // namespace vellum::fuzz
