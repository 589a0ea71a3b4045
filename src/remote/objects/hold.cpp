#include "remote/objects/hold.hpp"

#include <algorithm>
#include <cassert>

#include "base/bytes/hex.hpp"
#include "format/wire/whole_file.hpp"

namespace vellum::remote {
namespace {

constexpr format::WholeFileKind kHold{"VLMHOLD\n", kMaxHoldBytes, "not a hold",
                                      "too large for a hold"};
constexpr std::size_t kPieceBytes = 4 + sizeof(base::Sha256);

int hold_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::vector<std::byte> encode_hold(const Hold& hold, const format::FileSeal& seal) {
  assert(std::ranges::is_sorted(hold.pieces));
  assert(hold.place.size() <= kMaxHoldPlaceBytes);
  std::vector<std::byte> body;
  format::ByteWriter w(body);
  w.bytes(hold.id);
  w.u64(static_cast<std::uint64_t>(hold.time_ns));
  w.string(hold.place);
  w.varint(hold.pieces.size());
  for (const ContentName& piece : hold.pieces) {
    w.u32(piece.generation);
    w.bytes(piece.hash);
  }
  return encode_whole_file(kHold, body, seal);
}

const char* decode_hold(std::span<const std::byte> bytes, const format::FileSeal& seal, Hold& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kHold, bytes, seal, opened, body)) return problem;
  out = {};
  format::ByteReader in(body);
  read_bytes(in, out.id);
  out.time_ns = static_cast<std::int64_t>(in.u64());
  out.place = in.string(kMaxHoldPlaceBytes);
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.left() / kPieceBytes) return "malformed";
  out.pieces.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.pieces.size(); ++i) {
    out.pieces[i].generation = in.u32();
    read_bytes(in, out.pieces[i].hash);
    if (i > 0 && out.pieces[i] <= out.pieces[i - 1]) return "malformed";
  }
  return in.done() ? nullptr : "malformed";
}

std::string hold_name(const WriteId& id) { return base::hex(id); }

std::string hold_key(const WriteId& id) { return kHoldPrefix + hold_name(id); }

std::optional<WriteId> parse_hold_name(const std::string& name) {
  WriteId out{};
  if (name.size() != 2 * out.size()) return std::nullopt;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = hold_digit(name[2 * i]), low = hold_digit(name[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out[i] = static_cast<std::byte>(high << 4 | low);
  }
  return out;
}

}  // namespace vellum::remote
