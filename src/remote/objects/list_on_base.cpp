#include "remote/objects/list_on_base.hpp"

#include <algorithm>
#include <cassert>

#include "format/wire/whole_file.hpp"

namespace vellum::remote {
namespace {

constexpr format::WholeFileKind kListOnBase{
    "VLMLSTB\n", kMaxListBytes, "not a list of pieces on a base", "too large for a list of pieces",
    0,           true};

// A list on a base consists of steps: each skips pieces of the base, takes the next ones, and then
// adds some of its own.
struct Step {
  std::size_t passed = 0, taken = 0, own = 0;
};
constexpr std::size_t kMinStepBytes = 3;

// Pieces whose order or spans differ from the base are the list's own.
std::vector<Step> steps_on(const BaseList& base, const VersionPieces& pieces) {
  assert(pieces.list.size() == pieces.opening.spans.size());
  std::vector<Step> out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < pieces.list.size(); ++i) {
    const auto number = base.find(pieces.list[i], pieces.opening.spans[i]);
    if (!number.has_value() || *number < at) {
      if (out.empty()) out.emplace_back();
      ++out.back().own;
      continue;
    }
    if (out.empty() || out.back().own != 0 || *number != at) out.push_back({*number - at, 0, 0});
    ++out.back().taken;
    at = *number + 1;
  }
  return out;
}

std::size_t own_of(const std::vector<Step>& steps) {
  std::size_t own = 0;
  for (const Step& step : steps) own += step.own;
  return own;
}

bool read_steps(format::ByteReader& in, std::size_t pieces_of_base, std::vector<Step>& out) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.left() / kMinStepBytes) return false;
  std::size_t left = pieces_of_base;
  std::uint64_t own_left = in.left() / kMinPieceBytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t passed = in.varint(), taken = in.varint(), own = in.varint();
    if (!in.ok() || passed > left || taken > left - passed || own > own_left) return false;
    left -= static_cast<std::size_t>(passed + taken);
    own_left -= own;
    out.push_back({static_cast<std::size_t>(passed), static_cast<std::size_t>(taken),
                   static_cast<std::size_t>(own)});
  }
  return true;
}

void take_steps(const std::vector<Step>& steps, const BaseList& base, VersionPieces own,
                VersionPieces& out) {
  std::size_t at = 0, next_own = 0;
  for (const Step& step : steps) {
    at += step.passed;
    for (std::size_t i = 0; i < step.taken; ++i, ++at) {
      out.list.push_back(base.piece(at));
      out.opening.spans.push_back(base.spans(at));
    }
    for (std::size_t i = 0; i < step.own; ++i, ++next_own) {
      out.list.push_back(own.list[next_own]);
      out.opening.spans.push_back(std::move(own.opening.spans[next_own]));
    }
  }
}

}  // namespace

BaseList::BaseList(const base::Sha256& hash, const VersionPieces& whole)
    : hash_(hash), list_(whole.list), spans_(whole.opening.spans) {
  for (std::size_t i = 0; i < list_.size(); ++i) numbers_.emplace(list_[i].content, i);
  assert(list_.size() == spans_.size());
}

std::optional<std::size_t> BaseList::find(const PieceName& piece,
                                          std::span<const PackSpan> spans) const {
  const auto at = numbers_.find(piece.content);
  if (at == numbers_.end() || list_[at->second] != piece) return std::nullopt;
  if (!std::ranges::equal(spans_[at->second], spans)) return std::nullopt;
  return at->second;
}

std::size_t own_piece_count(const BaseList& base, const VersionPieces& pieces) {
  return own_of(steps_on(base, pieces));
}

std::vector<std::byte> encode_list_on_base(const VersionPieces& pieces, const BaseList& base,
                                           const format::FileSeal& seal) {
  const std::vector<Step> steps = steps_on(base, pieces);
  assert(pieces.list.size() == pieces.opening.spans.size());
  VersionPieces own;
  std::size_t at = 0;
  for (const Step& step : steps) {
    at += step.taken;
    for (std::size_t i = 0; i < step.own; ++i, ++at) {
      own.list.push_back(pieces.list[at]);
      own.opening.spans.push_back(pieces.opening.spans[at]);
    }
  }
  std::vector<std::byte> body;
  format::ByteWriter w(body);
  w.bytes(base.hash());
  w.varint(steps.size());
  for (const Step& step : steps) {
    w.varint(step.passed);
    w.varint(step.taken);
    w.varint(step.own);
  }
  write_pieces(w, own);
  write_end(w, pieces, seal.store_id);
  return encode_whole_file(kListOnBase, body, seal);
}

const char* decode_list_on_base(std::span<const std::byte> bytes, const format::FileSeal& seal,
                                const BaseList& base, VersionPieces& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kListOnBase, bytes, seal, opened, body)) return problem;
  out = {};
  format::ByteReader in(body);
  const auto hash = in.bytes(base.hash().size());
  if (!in.ok()) return "malformed";
  if (!std::ranges::equal(hash, base.hash())) return "is based on another list";
  std::vector<Step> steps;
  VersionPieces own;
  if (!read_steps(in, base.size(), steps) || !read_pieces(in, own) ||
      own.list.size() != own_of(steps)) {
    return "malformed";
  }
  take_steps(steps, base, std::move(own), out);
  return read_end(in, seal.store_id, out) ? nullptr : "malformed";
}

namespace {

constexpr std::size_t kMaxBases = 8;
constexpr std::size_t kMinTimesSmaller = 2;  // otherwise a reader's extra request does not pay

// Each push sends the pieces that its list has in addition to the base; every n-th push sends a
// whole list. Both costs are equal when n is the square root of twice the number of pieces.
bool is_far(const BaseList& base, const VersionPieces& pieces) {
  const std::size_t own = own_piece_count(base, pieces);
  return own * own > 2 * pieces.list.size();
}

}  // namespace

void BaseLists::add(const ObjectName& name, std::shared_ptr<const BaseList> list) {
  assert(list != nullptr && name.size_bytes != 0);
  std::erase_if(bases_, [&](const NamedBase& base) { return base.name == name; });
  bases_.push_back({name, std::move(list)});
  if (bases_.size() > kMaxBases) bases_.erase(bases_.begin());
}

BaseLists::EncodedList BaseLists::encode(const VersionPieces& pieces,
                                         const format::FileSeal& seal) const {
  EncodedList best{{}, encode_piece_list(pieces, seal)};
  std::size_t most_bytes = best.bytes.size() / kMinTimesSmaller;
  for (const NamedBase& base : bases_) {
    if (is_far(*base.list, pieces)) continue;
    auto bytes = encode_list_on_base(pieces, *base.list, seal);
    if (bytes.size() > most_bytes) continue;
    most_bytes = bytes.size() - 1;
    best = {base.name, std::move(bytes)};
  }
  return best;
}

}  // namespace vellum::remote
