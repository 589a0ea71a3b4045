// Delta batches, and the page differences in them.
#include <algorithm>
#include <cstring>

#include "decoder_targets.hpp"
#include "format/records/delta.hpp"
#include "format/records/page_diff.hpp"
#include "input.hpp"

namespace vellum::fuzz {
namespace {

using format::kPageBytes;

// A heap block of exactly a page: the address sanitizer detects a span that leaves it.
Bytes page_of(std::byte fill) { return Bytes(kPageBytes, fill); }

void check_delta(View raw, const format::DeltaIndexLine& line, const format::DeltaBatch& batch,
                 const format::DeltaBatch::Page& page) {
  Bytes indexed = page_of(std::byte{0x55}), decoded = indexed, composed = indexed;
  format::apply_indexed_delta(raw, line, indexed.data());
  format::apply_delta(batch.spans_of(page), batch.bytes_of(page), decoded.data());
  require(line.page == page.page && indexed == decoded, "both readers of a delta agree");
  format::DeltaComposer composer;
  composer.apply(batch.spans_of(page), batch.bytes_of(page));
  format::DeltaBatch out;
  composer.append_to(out, page.page);
  const auto& one = out.pages().front();
  format::apply_delta(out.spans_of(one), out.bytes_of(one), composed.data());
  require(composed == decoded, "a composed delta does what its parts do");
}

void check_encoding(const format::DeltaBatch& batch) {
  format::DeltaBatch again;
  const Bytes encoded = format::encode_delta_batch(batch, 0, batch.pages().size());
  require(encoded.size() <= batch.encoded_bound_bytes(), "the bound of an encoding holds");
  require(format::decode_delta_batch(encoded, again), "a batch encodes and decodes");
  require(again.pages().size() == batch.pages().size(), "a batch keeps its pages");
  for (std::size_t i = 0; i < batch.pages().size(); ++i) {
    const auto &a = batch.pages()[i], &b = again.pages()[i];
    const auto ra = batch.spans_of(a), rb = again.spans_of(b);
    const auto ba = batch.bytes_of(a), bb = again.bytes_of(b);
    const bool same_spans =
        std::equal(ra.begin(), ra.end(), rb.begin(), rb.end(), [](const auto& x, const auto& y) {
          return x.offset_bytes == y.offset_bytes && x.length_bytes == y.length_bytes;
        });
    require(
        a.page == b.page && same_spans && std::equal(ba.begin(), ba.end(), bb.begin(), bb.end()),
        "a batch decodes to itself");
  }
}

}  // namespace

void fuzz_delta_batch(View input) {
  static std::vector<format::DeltaIndexLine> lines(format::kMaxDeltasPerBatch);
  const int n = format::index_delta_batch(input, lines);
  format::DeltaBatch batch;
  require(format::decode_delta_batch(input, batch) == (n >= 0),
          "both readers accept the same bytes");
  if (n < 0) return;
  require(batch.pages().size() == static_cast<std::size_t>(n), "both readers find the same deltas");
  for (std::size_t i = 0; i < batch.pages().size(); ++i) {
    // Applying is the costly part, and thousands of deltas are not different from a few.
    if (i < 8 || i + 1 == batch.pages().size())
      check_delta(input, lines[i], batch, batch.pages()[i]);
  }
  check_encoding(batch);
}

// The input writes spans of bytes to an old and a new page. Applying their difference to one must
// give the other.
void fuzz_page_diff(View input) {
  Input in(input);
  Bytes old_page = page_of(std::byte{0}), now = page_of(std::byte{0});
  while (!in.empty()) {
    const std::uint16_t where = in.u16();
    const auto bytes = in.take(in.u8() & 0x3f);
    Bytes& page = (where & 0x8000) != 0 ? old_page : now;
    const std::size_t at = where % kPageBytes;
    std::copy_n(bytes.begin(), std::min(bytes.size(), kPageBytes - at),
                page.begin() + static_cast<std::ptrdiff_t>(at));
  }
  format::DeltaBatch batch;
  const bool differs = batch.add_difference(1, old_page.data(), now.data());
  require(differs == (old_page != now), "a difference is found exactly where there is one");
  const bool from_zero = batch.add_difference_from_zero(2, now.data());
  if (differs) {
    const auto& first = batch.pages().front();
    format::apply_delta(batch.spans_of(first), batch.bytes_of(first), old_page.data());
    require(old_page == now, "a difference leads from the old page to the new");
  }
  if (from_zero) {
    Bytes zero = page_of(std::byte{0});
    const auto& last = batch.pages().back();
    format::apply_delta(batch.spans_of(last), batch.bytes_of(last), zero.data());
    require(zero == now, "a difference from zero leads from zero to the page");
  }
  if (!batch.empty()) check_encoding(batch);
}

}  // namespace vellum::fuzz
