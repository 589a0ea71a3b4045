// The journal of an atomic file: its header, and its records unchanged and with corrected
// checksums.
#include "format/redo.hpp"

#include "decoder_targets.hpp"
#include "seal.hpp"

namespace vellum::fuzz {
namespace {

constexpr format::RedoHeader kHeader{1, 2, 3, 4};

void check_header(View bytes) {
  format::RedoHeader header, again;
  if (format::decode_redo_header(bytes, header) != nullptr) return;
  require(format::decode_redo_header(format::encode_redo_header(header), again) == nullptr &&
              header == again,
          "a redo header decodes to itself");
}

bool same(const format::RedoRecord& a, const format::RedoRecord& b) {
  return a.file_bytes == b.file_bytes &&
         std::equal(a.spans.begin(), a.spans.end(), b.spans.begin(), b.spans.end(),
                    [](const format::RedoSpan& x, const format::RedoSpan& y) {
                      return x.first_line == y.first_line && x.count == y.count &&
                             std::memcmp(x.bytes, y.bytes, x.count * format::kLineBytes) == 0;
                    });
}

void check_record(View log) {
  format::RedoRecord record, again;
  const std::size_t bytes = format::decode_redo_record(kHeader, 1, log, record);
  if (bytes == 0) return;
  for (const format::RedoSpan& span : record.spans)
    require(span.bytes >= log.data() &&
                span.bytes + span.count * format::kLineBytes <= log.data() + bytes,
            "a span lies in its record");
  Bytes encoded;
  encode_redo_record(kHeader, 1, record.file_bytes, record.spans, encoded);
  require(format::decode_redo_record(kHeader, 1, encoded, again) == encoded.size() &&
              same(record, again),
          "a redo record decodes to itself");
}

}  // namespace

void fuzz_redo(View input) {
  check_header(input);
  check_record(input);
  Bytes sealed(input.begin(), input.end());
  if (sealed.size() < format::kRedoRecordHeaderBytes) return;
  // The input has the length that it states, or its length is corrected, too.
  std::uint64_t claimed = 0;
  std::memcpy(&claimed, sealed.data() + 8, sizeof claimed);
  if (claimed > sealed.size() || claimed < format::kRedoRecordHeaderBytes) {
    claimed = sealed.size() / format::kLineBytes * format::kLineBytes;
    put_u64(sealed, 8, claimed);
  }
  put_u64(sealed, 0, format::redo_checksum(kHeader, View(sealed).first(claimed)));
  check_record(sealed);
}

}  // namespace vellum::fuzz
