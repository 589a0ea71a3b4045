// Names, and decompression.
#include <algorithm>
#include <string_view>

#include "base/bytes/codec.hpp"
#include "decoder_targets.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/types.hpp"
#include "input.hpp"

namespace vellum::fuzz {

// Names become file names: each accepted name must stay in its directory and print as one line.
void fuzz_name(View input) {
  const std::string_view name(reinterpret_cast<const char*>(input.data()), input.size());
  if (format::name_problem(name) != nullptr) return;
  require(!name.empty() && name.size() <= format::kMaxNameBytes, "a good name has a length");
  require(name.front() != '.' && name.front() != '-', "a good name is no option and not hidden");
  require(std::none_of(name.begin(), name.end(),
                       [](char c) {
                         const auto b = static_cast<unsigned char>(c);
                         return b <= 0x20 || b == 0x7f || c == '/' || c == '\\' || c == '\'' ||
                                c == '"';
                       }),
          "a good name has no separators, controls or quotes");
}

// Bombs: the output has the caller's size and is never larger; the work memory is allocated once.
void fuzz_decompress(View input) {
  static base::Decompressor decompressor;
  constexpr std::size_t kMaxRaw = 64u << 10;
  Input in(input);
  const auto codec = base::codecs()[in.u8() % base::codecs().size()].codec;
  Bytes raw(in.u16() % (kMaxRaw + 1));
  const View stored = in.rest();
  const bool good = decompressor.decompress(codec, stored, raw);
  require(!good || codec != base::Compression::none ||
              std::equal(raw.begin(), raw.end(), stored.begin(), stored.end()),
          "stored bytes come back as they are");
  if (!good || raw.empty()) return;
  Bytes shorter(raw.size() - 1), longer(raw.size() + 1);
  require(!decompressor.decompress(codec, stored, shorter) &&
              !decompressor.decompress(codec, stored, longer),
          "a stream has one size");
}

void fuzz_compress(View input) {
  static base::Compressor compressor;
  static base::Decompressor decompressor;
  Input in(input);
  const auto codec = base::codecs()[in.u8() % base::codecs().size()].codec;
  const int level = 1 + in.u8() % 3;
  const std::size_t room = in.u16();
  const View raw = in.rest();
  Bytes out(std::min(room, base::compress_bound(codec, raw.size())));
  const std::size_t size = compressor.compress(codec, level, raw, out);
  require(size <= out.size(), "compression stays in its room");
  require(size != 0 || raw.empty() || out.size() < base::compress_bound(codec, raw.size()),
          "compression fails for lack of room only");
  if (size == 0) return;
  Bytes again(raw.size());
  require(decompressor.decompress(codec, View(out).first(size), again) &&
              std::equal(raw.begin(), raw.end(), again.begin()),
          "what was compressed comes back");
}

}  // namespace vellum::fuzz
