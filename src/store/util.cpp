#include "store/util.hpp"

namespace vellum::store {

EncodedPayload encode_payload(base::Compressor& compressor, base::Codec codec, int level,
                              std::vector<std::byte> raw) {
  EncodedPayload out;
  out.raw_bytes = static_cast<std::uint32_t>(raw.size());
  if (codec != base::Codec::none && raw.size() > 64) {
    // No room for anything that would not be smaller: the codec then gives up early.
    std::vector<std::byte> packed(raw.size() - raw.size() / 16);
    const std::size_t size = compressor.compress(codec, level, raw, packed);
    if (size != 0) {
      packed.resize(size);
      packed.shrink_to_fit();
      out.codec = codec;
      out.stored = std::move(packed);
      return out;
    }
  }
  out.stored = std::move(raw);
  return out;
}

}  // namespace vellum::store
