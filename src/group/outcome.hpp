// group/outcome.hpp: the result of a step on one rank, as a value that ranks can exchange.
//
// A rank with an error must still make the collective calls in which the others wait. Therefore a
// step returns an outcome, and all ranks throw the same Error when they have exchanged them.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vellum/error.hpp>

#include "group/ranks.hpp"

namespace vellum::group {

struct Outcome {
  Errc code = Errc::ok;
  std::string text;
  bool ok() const noexcept { return code == Errc::ok; }
  void require() const {
    if (!ok()) throw Error(code, text);
  }
};

template <typename Body>
Outcome attempt(Body&& body) {
  try {
    std::forward<Body>(body)();
    return {};
  } catch (const Error& e) {
    return {e.code(), e.what()};
  } catch (const std::bad_alloc&) {
    return {Errc::out_of_memory, "out of memory"};
  } catch (const std::exception& e) {
    return {Errc::io, e.what()};
  }
}

// An outcome and, if it is ok, the data of the step.
struct Message {
  Outcome outcome;
  Bytes body;
};
Bytes encode_message(const Message& message);
// Errc::io: malformed. A rank with another build of Vellum may have sent it.
Message decode_message(std::span<const std::byte> bytes);

// Rank 0's outcome and bytes, on all ranks. Throws rank 0's error on all of them.
Bytes broadcast_from_0(Ranks& ranks, const Message& of_rank_0);

// Collective. Throws the first error among the ranks, on all of them.
void require_on_all(Ranks& ranks, const Outcome& mine);

// The first error among the ranks' messages, as an exception. REQUIRES: rank 0.
void require_all(const std::vector<Bytes>& gathered);

// This rank, for messages: "rank 3 on node7".
std::string name_of_rank(const Ranks& ranks);
std::string host_name();

}  // namespace vellum::group
