// remote/pieces/piece_maker.hpp: creates pieces from a store's records and uploads them
// concurrently.
#pragma once

#include <vector>

#include "base/threads/thread_pool.hpp"
#include "remote/pieces/uploads.hpp"
#include "store/catalog/store_directory.hpp"
#include "vellum/report.hpp"

namespace vellum::remote {

inline constexpr std::uint64_t kPieceBytes = 4u << 20;

struct MadePiece {
  PieceName name;
  std::vector<PieceRecord> records;
};

class PieceMaker {
 public:
  PieceMaker(store::StoreDirectory& store, const Remote& remote, const SeenObjects& seen_objects,
             std::uint32_t generation, base::ThreadPool& pool, const ProgressFn& progress);

  // Adds the records to the uploads, in pieces. The same records always result in the same pieces,
  // so those of an interrupted push are not uploaded again. REQUIRES: the records ascend by
  // reference.
  std::vector<MadePiece> make(const std::vector<PieceRecord>& records, Uploads& uploads);

 private:
  MadePiece make_one(std::span<const PieceRecord> records, Uploads& uploads);

  store::StoreDirectory& store_;
  const Remote& remote_;
  const SeenObjects& seen_objects_;
  const std::uint32_t generation_;
  const ProgressFn& progress_;
  std::uint64_t done_bytes_ = 0, total_bytes_ = 0;  // of all calls of make()
  base::ThreadPool& pool_;
};

}  // namespace vellum::remote
