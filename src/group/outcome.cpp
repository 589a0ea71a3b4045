#include "group/outcome.hpp"

#include <cassert>

#include <unistd.h>

#include "base/fail.hpp"
#include "format/group.hpp"
#include "format/wire/wire.hpp"

namespace vellum::group {

Bytes encode_message(const Message& message) {
  Bytes bytes;
  format::ByteWriter w(bytes);
  w.u32(static_cast<std::uint32_t>(message.outcome.code));
  if (message.outcome.ok()) {
    w.bytes(message.body);
  } else {
    w.bytes(std::as_bytes(std::span(message.outcome.text)));
  }
  return bytes;
}

Message decode_message(std::span<const std::byte> bytes) {
  format::ByteReader in(bytes);
  const std::uint32_t code = in.u32();
  if (!in.ok() || code > static_cast<std::uint32_t>(Errc::out_of_memory)) {
    fail(Errc::io, "a rank sent an invalid message of {} bytes", bytes.size());
  }
  const auto rest = in.bytes(in.left());
  Message message;
  message.outcome.code = static_cast<Errc>(code);
  if (message.outcome.ok()) {
    message.body.assign(rest.begin(), rest.end());
  } else {
    message.outcome.text.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
  }
  return message;
}

Bytes broadcast_from_0(Ranks& ranks, const Message& of_rank_0) {
  Bytes bytes;
  if (ranks.rank() == 0) bytes = encode_message(of_rank_0);
  Message message = decode_message(ranks.broadcast(std::move(bytes), 0));
  message.outcome.require();
  return std::move(message.body);
}

void require_all(const std::vector<Bytes>& gathered) {
  assert(!gathered.empty());  // rank 0
  for (const Bytes& bytes : gathered) decode_message(bytes).outcome.require();
}

void require_on_all(Ranks& ranks, const Outcome& mine) {
  Message said{mine, {}};
  if (!mine.ok()) said.outcome.text = name_of_rank(ranks) + ": " + mine.text;
  const auto gathered = ranks.gather(encode_message(said));
  Message verdict;
  if (ranks.rank() == 0) verdict.outcome = attempt([&] { require_all(gathered); });
  broadcast_from_0(ranks, verdict);
}

std::string host_name() {
  char name[format::kMaxGroupHostBytes + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string name_of_rank(const Ranks& ranks) {
  return fmt::format("rank {} on {}", ranks.rank(), host_name());
}

}  // namespace vellum::group
