// Records, the index of a sealed pack, journal frames.
#include <array>

#include "decoder_targets.hpp"
#include "format/records/based_pages.hpp"
#include "format/records/translation.hpp"
#include "seal.hpp"

namespace vellum::fuzz {
namespace {

constexpr std::uint64_t kSeed = 0x5eed;

bool inside(View piece, View whole) {
  return piece.empty() || (piece.data() >= whole.data() &&
                           piece.data() + piece.size() <= whole.data() + whole.size());
}

void check_base_pages(const format::RecordHeader& h, View payload) {
  std::array<format::BasePage, format::kMaxBasePages> bases, again;
  std::size_t list_bytes = 0, again_bytes = 0;
  const std::size_t n = format::decode_base_pages(payload, h.offset_bytes, bases, list_bytes);
  if (n == 0) return;
  require(n <= bases.size() && list_bytes <= payload.size(), "base pages are bounded");
  for (std::size_t i = 0; i < n; ++i) {
    require(bases[i].offset_bytes < h.offset_bytes, "base pages lie in front of their record");
  }
  const Bytes list = format::encode_base_pages(std::span(bases).first(n));
  require(
      format::decode_base_pages(list, h.offset_bytes, again, again_bytes) == n &&
          again_bytes == list.size() &&
          std::equal(bases.begin(), bases.begin() + static_cast<std::ptrdiff_t>(n), again.begin()),
      "base pages decode to themselves");
}

void check_record(View bytes) {
  format::RecordHeader h;
  if (format::decode_record_header(bytes, h) != nullptr) return;
  require(h.raw_bytes <= format::kMaxRecordRawBytes, "a record's raw size is bounded");
  const View payload = format::record_payload(bytes, h);
  require(inside(payload, bytes), "the payload lies inside the record");
  const format::RecordRef ref{h.pack, h.offset_bytes, h.tag()};
  if (format::verify_record(bytes, h, ref, kSeed) != nullptr) return;
  require(payload.size() == h.stored_bytes, "a record that verifies is whole");
  if (h.type == format::RecordType::based_pages) check_base_pages(h, payload);
  require(
      format::verify_record(bytes, h, {ref.pack, ref.offset_bytes + 8, ref.tag}, kSeed) != nullptr,
      "a misdirected record is refused");
  require(
      format::verify_record(bytes, h, {ref.pack, ref.offset_bytes, ref.tag + 1}, kSeed) != nullptr,
      "a stale record is refused");
  if (h.sealed) return;  // its nonce is random
  const View hash = h.has_hash ? bytes.subspan(format::kRecordHeaderBytes, 32) : View();
  Bytes again;
  format::RecordHeader copy = h;
  format::append_record(again, copy, hash, payload, kSeed);
  const std::size_t body = format::kRecordHeaderBytes + hash.size() + payload.size();
  require(std::memcmp(again.data(), bytes.data(), body) == 0, "a record has one encoding");
}

void check_frame(View bytes) {
  format::FrameHeader h;
  View payload;
  if (!format::decode_frame(bytes, kSeed, h, payload)) return;
  require(inside(payload, bytes), "the payload lies inside the frame");
  require(format::frame_extent_bytes(h) <= bytes.size(), "a frame is whole");
  if (h.sealed) return;  // its nonce is random
  const Bytes again = format::encode_frame(h, payload, kSeed);
  require(std::memcmp(again.data(), bytes.data(), format::kFrameHeaderBytes + payload.size()) == 0,
          "a frame has one encoding");
}

}  // namespace

void fuzz_record(View input) {
  check_record(input);
  Bytes sealed(input.begin(), input.end());
  seal_record(sealed, kSeed);
  check_record(sealed);
}

void fuzz_frame(View input) {
  check_frame(input);
  Bytes sealed(input.begin(), input.end());
  seal_frame(sealed, kSeed);
  check_frame(sealed);
}

void fuzz_index(View input) {
  std::vector<format::IndexLine> lines, again;
  if (!format::decode_index(input, lines)) return;
  require(format::decode_index(format::encode_index(lines), again) && lines == again,
          "an index decodes to itself");
  std::uint64_t end = format::kPackHeaderBytes;
  for (const auto& l : lines) {
    require(l.offset_bytes >= end, "records of an index do not overlap");
    end = l.offset_bytes + format::kRecordHeaderBytes + l.stored_bytes;
  }
}

void fuzz_translation(View input) {
  constexpr std::uint64_t kEndBytes = 1u << 20;
  format::Translation t, again;
  if (!format::decode_translation(input, kEndBytes, t)) return;
  require(format::decode_translation(format::encode_translation(t), kEndBytes, again) && t == again,
          "a translation decodes to itself");
  std::uint64_t old_end = format::kPackHeaderBytes, new_end = old_end;
  for (const auto& l : t.lines) {
    require(l.old_offset_bytes >= old_end && l.new_offset_bytes >= new_end,
            "records of a translation do not overlap");
    old_end = l.old_offset_bytes + format::kRecordHeaderBytes;
    new_end = l.new_offset_bytes + format::kRecordHeaderBytes;
    require(t.find(l.old_offset_bytes) == &l && t.find_new(l.new_offset_bytes) == &l,
            "a line of a translation is found");
    std::uint64_t slot = 0;
    for (const auto& r : t.dropped_of(l)) {
      require(r.first >= slot && r.count != 0 && format::any_dropped(t.dropped_of(l), r.first, 1),
              "ranges of slots ascend");
      slot = std::uint64_t{r.first} + r.count;
    }
  }
  require(new_end <= kEndBytes, "no record of a translation lies past its end");
}

}  // namespace vellum::fuzz
