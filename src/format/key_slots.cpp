#include "format/key_slots.hpp"

#include <algorithm>
#include <cassert>

#include "format/wire/magic.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr WholeFileKind kKeySlotsFile{kKeySlotsMagic, kMaxKeySlotsBytes, "not a file of key slots",
                                      "larger than any file of key slots"};

bool has_cost(KeySlotKind kind) noexcept {
  return kind == KeySlotKind::passphrase || kind == KeySlotKind::command;
}

void write_slot(ByteWriter& w, const StoredKeySlot& slot) {
  assert(slot.label.size() <= kMaxKeyLabelBytes);
  w.varint(slot.number);
  w.u8(static_cast<std::uint8_t>(slot.kind));
  w.string(slot.label);
  if (has_cost(slot.kind)) {
    w.varint(slot.cost.passes);
    w.varint(slot.cost.memory_kib);
  }
  if (slot.kind == KeySlotKind::recipient) {
    w.bytes(slot.recipient);
    w.bytes(slot.ephemeral);
  } else {
    w.bytes(slot.salt);
  }
}

std::uint32_t read_u32(ByteReader& in) noexcept {
  const std::uint64_t value = in.varint();
  if (value > UINT32_MAX) in.fail();
  return static_cast<std::uint32_t>(value);
}

bool read_slot(ByteReader& in, StoredKeySlot& out) {
  out.number = read_u32(in);
  const std::uint8_t kind = in.u8();
  if (kind < static_cast<std::uint8_t>(KeySlotKind::passphrase) ||
      kind > static_cast<std::uint8_t>(KeySlotKind::command)) {
    return false;
  }
  out.kind = static_cast<KeySlotKind>(kind);
  out.label = in.string(kMaxKeyLabelBytes);
  if (has_cost(out.kind)) {
    out.cost.passes = read_u32(in);
    out.cost.memory_kib = read_u32(in);
    if (!base::cost_ok(out.cost)) return false;
  }
  if (out.kind == KeySlotKind::recipient) {
    read_bytes(in, out.recipient);
    read_bytes(in, out.ephemeral);
  } else {
    read_bytes(in, out.salt);
  }
  read_bytes(in, out.wrapped);
  return in.ok();
}

}  // namespace

std::vector<std::byte> key_slot_context(const StoredKeySlot& slot,
                                        std::span<const std::byte> superblock) {
  std::vector<std::byte> out(superblock.begin(), superblock.end());
  ByteWriter w(out);
  write_slot(w, slot);
  return out;
}

std::vector<std::byte> encode_key_slots(const KeySlots& slots, const Uuid& store_id) {
  assert(slots.slots.size() <= kMaxKeySlots);
  std::vector<std::byte> body;
  ByteWriter w(body);
  w.varint(slots.next_number);
  w.varint(slots.slots.size());
  for (const StoredKeySlot& slot : slots.slots) {
    write_slot(w, slot);
    w.bytes(slot.wrapped);
  }
  return encode_whole_file(kKeySlotsFile, body, store_id);
}

const char* decode_key_slots(std::span<const std::byte> bytes, const Uuid& store_id,
                             KeySlots& out) {
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kKeySlotsFile, bytes, store_id, body)) return problem;
  ByteReader in(body);
  KeySlots slots;
  slots.next_number = read_u32(in);
  const std::uint64_t count = in.varint();
  if (!in.ok() || count == 0 || count > kMaxKeySlots) return "malformed";
  std::uint32_t last = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    StoredKeySlot& slot = slots.slots.emplace_back();
    if (!read_slot(in, slot)) return "malformed key slot";
    if (slot.number <= last || slot.number >= slots.next_number) return "malformed key slot";
    last = slot.number;
  }
  if (!in.done()) return "malformed";
  out = std::move(slots);
  return nullptr;
}

}  // namespace vellum::format
