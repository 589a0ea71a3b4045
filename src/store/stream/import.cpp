#include "store/stream/import.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "store/stream/ordered_work.hpp"
#include "store/stream/piece_encoder.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;

namespace {

// A range in progress.
struct ImportSlot {
  std::unique_ptr<std::byte[]> content;  // allocated at the slot's first use
  PageNumber first = 0;
  std::size_t pages = 0;
  bool is_read = false;         // `content` has the pages
  bool zeros = false;           // all pages are zero; `content` is unused
  std::uint64_t end_bytes = 0;  // the content's position after this range
  EncodedPiece encoded;
};

void require_fits(std::uint64_t bytes) {
  if (bytes <= format::kMaxRegionBytes) return;
  fail(Errc::invalid_argument, "a region of {} bytes is too large: at most {} (64 TiB)", bytes,
       format::kMaxRegionBytes);
}

class Import {
 public:
  Import(BranchWriter& writer, Content& content, const ImportOptions& options,
         const ProgressFn& progress);
  ImportReport run();

 private:
  bool read_piece();
  void submit_zeros(PageNumber first, PageNumber end);
  ImportSlot& free_slot();
  void submit(ImportSlot& slot, PageNumber first, std::size_t pages, bool zeros);
  void encode(ImportSlot& slot, std::size_t worker);
  void take(EncodedPiece& piece);
  void take_loose(const EncodedPiece& piece);
  void write_loose(std::size_t pages);
  BranchWriter::Commit& commit();
  void finish();

  BranchWriter& writer_;
  Content& content_;
  const ImportOptions& options_;
  StreamProgress progress_;
  const std::shared_ptr<PageSource> head_;
  const std::size_t threads_, piece_bytes_;
  ImportReport report_;
  PageNumber at_ = 0;               // all pages before it are submitted
  std::size_t expected_pages_ = 0;  // set before the first range is submitted
  std::vector<ImportSlot> slots_;
  std::vector<std::unique_ptr<PieceEncoder>> encoders_;  // of the threads
  // Encoded, and not yet taken.
  std::atomic<std::size_t> held_bytes_{0}, peak_held_bytes_{0};
  PieceEncoder loose_encoder_;
  std::vector<PageNumber> loose_;
  std::vector<std::byte> loose_content_;
  std::mutex commit_mutex_;
  std::unique_ptr<BranchWriter::Commit> commit_;  // begun when the first page has changed
  OrderedWork work_;                              // the last member: its threads use the others
};

Import::Import(BranchWriter& writer, Content& content, const ImportOptions& options,
               const ProgressFn& progress)
    : writer_(writer),
      content_(content),
      options_(options),
      progress_(progress),
      head_(writer.source_at_open()),
      threads_(options.stream.threads_for(content.size_bytes())),
      piece_bytes_(options.stream.piece_bytes),
      slots_(StreamOptions::slots_for(threads_)),
      encoders_(std::max<std::size_t>(threads_, 1)),
      loose_encoder_(writer.encoding(), *head_),
      work_(threads_, slots_.size(),
            {[this](std::size_t slot, std::size_t worker) { encode(slots_[slot], worker); },
             [this](std::size_t slot) { take(slots_[slot].encoded); }}) {
  assert(piece_bytes_ != 0 && piece_bytes_ % kPageBytes == 0);
}

ImportReport Import::run() {
  require_fits(content_.size_bytes());
  writer_.checkpoint_journal();  // deltas can then be written to the pack before the commit ends
  while (read_piece()) {
  }
  submit_zeros(at_, writer_.head().region_bytes / kPageBytes);
  work_.finish();
  content_.check();
  finish();
  progress_.reach(content_.size_bytes(), content_.size_bytes());
  return report_;
}

// False: the content has ended.
bool Import::read_piece() {
  ImportSlot& slot = free_slot();
  if (slot.content == nullptr) {
    slot.content.reset(new std::byte[piece_bytes_]);
    report_.peak_bytes += piece_bytes_;
  }
  const auto piece = content_.next({slot.content.get(), piece_bytes_});
  slot.end_bytes = content_.position_bytes();
  require_fits(slot.end_bytes);
  if (piece.pages == 0) return false;
  assert(piece.first >= at_ && piece.pages * kPageBytes <= piece_bytes_);
  if (at_ == 0) expected_pages_ = format::pages_in(content_.size_bytes());
  slot.is_read = piece.is_read;
  submit(slot, piece.first, piece.pages, false);
  submit_zeros(at_, piece.first);
  at_ = piece.first + piece.pages;
  return true;
}

// The content has skipped these pages. They matter only where the head is not zero.
void Import::submit_zeros(PageNumber first, PageNumber end) {
  const std::size_t most = piece_bytes_ / kPageBytes;
  while (first < end) {
    first += head_->zeros_from(first, end - first);
    if (first >= end) return;
    const auto pages = static_cast<std::size_t>(std::min<std::uint64_t>(most, end - first));
    ImportSlot& slot = free_slot();
    slot.end_bytes = 0;
    submit(slot, first, pages, true);
    first += pages;
  }
}

ImportSlot& Import::free_slot() {
  const std::size_t slot = work_.free_slot();
  if (const auto taken = work_.last_taken()) {
    progress_.reach(slots_[*taken].end_bytes, content_.size_bytes());
  }
  return slots_[slot];
}

void Import::submit(ImportSlot& slot, PageNumber first, std::size_t pages, bool zeros) {
  slot.first = first;
  slot.pages = pages;
  slot.zeros = zeros;
  work_.submit();
}

void Import::encode(ImportSlot& slot, std::size_t worker) {
  auto& encoder = encoders_[worker];
  if (encoder == nullptr) encoder = std::make_unique<PieceEncoder>(writer_.encoding(), *head_);
  slot.encoded = {};
  if (slot.zeros) {
    encoder->encode_zeros(slot.first, slot.pages, slot.encoded);
  } else {
    PieceEncoder::Input input{slot.first, {slot.content.get(), slot.pages * kPageBytes}, nullptr};
    if (!slot.is_read) {
      input.read = [this](PageNumber first, std::span<std::byte> out) {
        content_.read(first, out);
      };
    }
    encoder->encode(input, [this] { return commit().dedup(); }, slot.encoded);
  }
  const std::size_t held = held_bytes_ += slot.encoded.held_bytes();
  std::size_t peak = peak_held_bytes_;
  while (peak < held && !peak_held_bytes_.compare_exchange_weak(peak, held)) {
  }
}

void Import::take(EncodedPiece& piece) {
  if (piece.empty()) return;
  report_.pages_changed += piece.pages_changed;
  assert(held_bytes_ >= piece.held_bytes());
  held_bytes_ -= piece.held_bytes();
  take_loose(piece);
  commit().add(std::move(piece.writes));
  piece = {};
}

void Import::take_loose(const EncodedPiece& piece) {
  loose_.insert(loose_.end(), piece.loose.begin(), piece.loose.end());
  loose_content_.insert(loose_content_.end(), piece.loose_content.begin(),
                        piece.loose_content.end());
  const std::size_t block_pages = writer_.encoding().block_bytes / kPageBytes;
  if (loose_.size() >= block_pages) write_loose(block_pages);
}

void Import::write_loose(std::size_t pages) {
  assert(pages >= 1 && pages <= loose_.size());
  assert(loose_content_.size() == loose_.size() * kPageBytes);
  const auto bytes = static_cast<std::ptrdiff_t>(pages * kPageBytes);
  PageWrites writes;
  writes.blocks.push_back(loose_encoder_.pack(std::span(loose_).first(pages),
                                              std::span(loose_content_).first(pages * kPageBytes),
                                              commit().dedup() != nullptr));
  commit().add(std::move(writes));
  loose_.erase(loose_.begin(), loose_.begin() + static_cast<std::ptrdiff_t>(pages));
  loose_content_.erase(loose_content_.begin(), loose_content_.begin() + bytes);
}

BranchWriter::Commit& Import::commit() {
  const std::lock_guard lock(commit_mutex_);
  if (commit_ == nullptr) {
    commit_ = writer_.begin(expected_pages_);
    commit_->write_deltas_early();
  }
  return *commit_;
}

void Import::finish() {
  if (!loose_.empty()) write_loose(loose_.size());
  report_.peak_bytes += peak_held_bytes_;
  const format::Version& head = writer_.head();
  const std::uint64_t size = std::max<std::uint64_t>(content_.size_bytes(), 1);
  format::CommitInfo meta;
  meta.time_ns = base::wall_clock_ns();
  meta.region_bytes = std::max(head.region_bytes, base::round_up(size, kPageBytes));
  meta.base_address = options_.base_address;
  meta.message = options_.message;
  meta.file_bytes = content_.file_bytes(head.file_bytes, meta.region_bytes);
  if (options_.snapshot == nullptr && report_.pages_changed == 0 && head.sequence != 0 &&
      head.region_bytes == meta.region_bytes && head.file_bytes == meta.file_bytes) {
    return;
  }
  report_.cost = options_.snapshot != nullptr ? commit().finish_as(*options_.snapshot, meta)
                                              : commit().finish(meta, options_.checkpoint);
  report_.committed = true;
}

}  // namespace

ImportReport import_content(BranchWriter& writer, Content& content, const ImportOptions& options,
                            const ProgressFn& progress) {
  return Import(writer, content, options, progress).run();
}

}  // namespace vellum::store
