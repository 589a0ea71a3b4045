// remote/lazy/early_parts.hpp: what a program says that it will read soon comes here all at once.
//
// Few pieces come whole. Of many, the contents come first, which tell where the wanted records lie.
// Where these are a small part of a piece, they alone are fetched, and kept until the program has
// read them: the cache has whole pieces only.
//
// What cannot be had is left out: whoever reads it asks for the whole piece, and waits. Where an outage
// has taken the longest wait already, nobody waits for it again.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "remote/fetch/fetcher.hpp"

namespace vellum::remote {

class EarlyParts {
 public:
  // `lists` reads contents, `objects` parts. All of them outlive it.
  EarlyParts(const Remote& lists, ObjectStore& objects, Fetcher& fetcher)
      : lists_(lists), objects_(objects), fetcher_(fetcher) {}
  ~EarlyParts();
  EarlyParts(const EarlyParts&) = delete;
  EarlyParts& operator=(const EarlyParts&) = delete;

  // Calls the visitor for each piece that may have the record, until it returns true.
  using ForPieces = std::function<void(const format::RecordRef& ref,
                                       const std::function<bool(RemotePiece&)>& visit)>;
  // Once. Errc::io: the remote has not answered for the longest wait.
  void fetch(std::span<const format::RecordRef> refs, const ForPieces& for_pieces);

 private:
  struct PartRequest {
    RemotePiece* piece;
    std::uint64_t at_bytes, length_bytes;
    std::vector<std::byte> bytes;  // empty: it could not be had
  };
  void fetch_indices(std::span<RemotePiece* const> pieces);
  bool plan_parts(RemotePiece& piece, std::vector<ObjectRange>& records);
  void fetch_parts();
  void hand_over_parts();
  void for_each(std::size_t count, const std::function<void(std::size_t)>& work);
  void note_outage() noexcept;
  void rethrow_after_timeout();

  const Remote& lists_;
  ObjectStore& objects_;
  Fetcher& fetcher_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<bool> has_failed_{false};  // the remote does not answer
  std::exception_ptr outage_;            // set by who sets has_failed_
  std::vector<PartRequest> parts_;
  std::uint64_t bytes_ = 0;  // of the parts
  std::vector<RemotePiece*> with_parts_;
};

}  // namespace vellum::remote
