// remote/lazy/early_parts.hpp: concurrent fetches of the records that a program will read soon.
//
// A few pieces are fetched as a whole. Of many pieces, the indices are fetched first: they have the
// offsets of the records. If these are a small part of a piece, only they are fetched, and kept
// until the program has read them: the cache has only whole pieces.
//
// A failed fetch is ignored: the reader requests the whole piece and waits. But if an outage has
// already lasted for the timeout, fetch() throws, so that no reader waits for it again.
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
  // `lists` reads indices, `objects` parts. REQUIRES: all of them outlive it.
  EarlyParts(const Remote& lists, ObjectStore& objects, Fetcher& fetcher)
      : lists_(lists), objects_(objects), fetcher_(fetcher) {}
  ~EarlyParts();
  EarlyParts(const EarlyParts&) = delete;
  EarlyParts& operator=(const EarlyParts&) = delete;

  // Calls the visitor for each piece that may have the record, until it returns true.
  using ForPieces = std::function<void(const format::RecordRef& ref,
                                       const std::function<bool(RemotePiece&)>& visit)>;
  // Errc::io: the remote has not answered for the timeout. REQUIRES: called once.
  void fetch(std::span<const format::RecordRef> refs, const ForPieces& for_pieces);

 private:
  struct PartRequest {
    RemotePiece* piece;
    std::uint64_t at_bytes, length_bytes;
    std::vector<std::byte> bytes;  // empty: the request failed
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
  std::atomic<bool> has_failed_{false};  // an outage
  std::exception_ptr outage_;            // set by the thread that sets has_failed_
  std::vector<PartRequest> parts_;
  std::uint64_t bytes_ = 0;  // of the parts
  std::vector<RemotePiece*> with_parts_;
};

}  // namespace vellum::remote
