// format/wire/commit_info.hpp: the one encoder and the one decoder of a commit's facts.
//
// Commit frames and versions share both. The facts that every commit has come first. Facts added
// later are optional and follow the structure's own fields, so older structures decode unchanged.
#pragma once

#include <cassert>

#include "format/wire/checks.hpp"
#include "format/wire/types.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {

inline void write_info(ByteWriter& w, const CommitInfo& info) {
  assert(info.message.size() <= kMaxMessageBytes);
  w.u64(static_cast<std::uint64_t>(info.time_ns));
  w.varint(info.region_bytes);
  w.varint(info.base_address);
  w.string(info.message);
}

// False: the bytes end early, or a fact is out of range.
inline bool read_info(ByteReader& in, CommitInfo& out) {
  out.time_ns = static_cast<std::int64_t>(in.u64());
  out.region_bytes = in.varint();
  out.base_address = in.varint();
  out.message = in.string(kMaxMessageBytes);
  return in.ok() && region_size_ok(out.region_bytes) &&
         base_address_ok(out.base_address, out.region_bytes);
}

// Ends a structure with the facts that only some commits have.
inline void write_last_info(ByteWriter& w, const CommitInfo& info) {
  if (info.file_bytes.has_value()) w.varint(*info.file_bytes);
}

// Reads all remaining bytes. False: they are none of these facts. REQUIRES: read_info() was called.
inline bool read_last_info(ByteReader& in, CommitInfo& out) noexcept {
  if (in.done()) return true;
  out.file_bytes = in.varint();
  return in.done() && *out.file_bytes <= out.region_bytes;
}

}  // namespace vellum::format
