#include "interfaces/atomic_file/apply_pieces.hpp"

#include <algorithm>
#include <cstring>

#include "format/wire/types.hpp"

namespace vellum::atomic_file {
namespace {

using format::kPageBytes;

constexpr std::uint64_t kSpanPages = 64;

std::uint64_t page_of(const Piece& piece) { return piece.offset_bytes / kPageBytes; }

// Handles neighbouring pages together: read, patch in the order of the commits, write.
void apply_span(std::span<const Piece> pieces, MediumFile& image, std::vector<std::byte>& buffer) {
  const std::uint64_t begin = page_of(pieces.front()) * kPageBytes;
  const std::uint64_t end = std::min(image.size_bytes(), (page_of(pieces.back()) + 1) * kPageBytes);
  buffer.resize(end - begin);
  image.read(buffer, begin);
  for (const Piece& piece : pieces)
    std::memcpy(buffer.data() + (piece.offset_bytes - begin), piece.bytes.data(),
                piece.bytes.size());
  image.write(buffer, begin);
}

}  // namespace

void apply_pieces(std::vector<Piece>& pieces, MediumFile& image) {
  if (image.byte_addressable()) {
    for (const Piece& piece : pieces) image.write(piece.bytes, piece.offset_bytes);
    return;
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return page_of(a) != page_of(b) ? page_of(a) < page_of(b) : a.bytes.data() < b.bytes.data();
  });
  std::vector<std::byte> buffer;
  for (std::size_t first = 0; first < pieces.size();) {
    std::size_t last = first;
    while (last + 1 < pieces.size() && page_of(pieces[last + 1]) <= page_of(pieces[last]) + 1 &&
           page_of(pieces[last + 1]) < page_of(pieces[first]) + kSpanPages)
      ++last;
    apply_span(std::span(pieces).subspan(first, last - first + 1), image, buffer);
    first = last + 1;
  }
}

}  // namespace vellum::atomic_file
