#include "store/stream/export.hpp"

#include <algorithm>
#include <cassert>
#include <memory>
#include <vector>

#include "base/memory/zeros.hpp"
#include "store/stream/content.hpp"
#include "store/stream/ordered_work.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageNumber;

namespace {

constexpr std::size_t kWrittenPages = 64;  // fit into a processor's L2 cache

struct ExportRange {
  PageNumber first = 0;
  std::size_t pages = 0;
  PageNumber end() const noexcept { return first + pages; }
};

class Export {
 public:
  Export(const PageSource& source, base::File& out, const StreamOptions& options,
         const ProgressFn& progress);
  void run();

 private:
  void write(const ExportRange& range, std::size_t worker);
  void write_pages(PageNumber first, std::span<const std::byte> content);
  void reach(PageNumber done);

  const PageSource& source_;
  base::File& out_;
  StreamProgress progress_;
  const std::uint64_t size_bytes_;
  const std::size_t threads_, most_pages_;
  std::vector<ExportRange> ranges_;                    // of the slots
  std::vector<std::unique_ptr<std::byte[]>> buffers_;  // of the threads
  OrderedWork work_;  // the last member: its threads use the others
};

Export::Export(const PageSource& source, base::File& out, const StreamOptions& options,
               const ProgressFn& progress)
    : source_(source),
      out_(out),
      progress_(progress),
      size_bytes_(source.file_bytes().value_or(source.region_bytes())),
      threads_(options.threads_for(size_bytes_)),
      most_pages_(options.piece_bytes / kPageBytes),
      ranges_(StreamOptions::slots_for(threads_)),
      buffers_(std::max<std::size_t>(threads_, 1)),
      work_(threads_, ranges_.size(),
            {[this](std::size_t slot, std::size_t worker) { write(ranges_[slot], worker); },
             [](std::size_t) {}}) {
  assert(options.piece_bytes != 0 && options.piece_bytes % kPageBytes == 0);
}

void Export::run() {
  const PageNumber end = format::pages_in(size_bytes_);
  for (PageNumber page = 0; page < end;) {
    page += source_.zeros_from(page, end - page);
    if (page >= end) break;
    const std::size_t slot = work_.free_slot();
    if (const auto taken = work_.last_taken()) reach(ranges_[*taken].end());
    const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(most_pages_, end - page));
    ranges_[slot] = {page, std::max<std::size_t>(data_from(source_, page, limit), 1)};
    page = ranges_[slot].end();
    work_.submit();
  }
  work_.finish();
  out_.truncate(size_bytes_);
  reach(end);
}

void Export::write(const ExportRange& range, std::size_t worker) {
  assert(worker < buffers_.size() && range.pages > 0);
  auto& buffer = buffers_[worker];
  if (buffer == nullptr) buffer.reset(new std::byte[kWrittenPages * kPageBytes]);
  for (PageNumber page = range.first; page < range.end();) {
    const auto n =
        static_cast<std::size_t>(std::min<PageNumber>(kWrittenPages, range.end() - page));
    source_.read(page, n, buffer.get());
    write_pages(page, {buffer.get(), n * kPageBytes});
    page += n;
  }
  out_.begin_flush(range.first * kPageBytes, range.pages * kPageBytes);
}

// Writes adjacent nonzero pages together.
void Export::write_pages(PageNumber first, std::span<const std::byte> content) {
  assert(content.size() % kPageBytes == 0);
  const std::size_t pages = content.size() / kPageBytes;
  const auto is_zero = [&](std::size_t i) {
    return base::is_zero(content.subspan(i * kPageBytes, kPageBytes));
  };
  for (std::size_t i = 0; i < pages;) {
    std::size_t n = 0;
    while (i + n < pages && !is_zero(i + n)) ++n;
    if (n > 0)
      out_.pwrite(content.subspan(i * kPageBytes, n * kPageBytes), (first + i) * kPageBytes);
    i += std::max<std::size_t>(n, 1);
  }
}

void Export::reach(PageNumber done) {
  progress_.reach(std::min(done * kPageBytes, size_bytes_), size_bytes_);
}

}  // namespace

void export_content(const PageSource& source, base::File& out, const StreamOptions& options,
                    const ProgressFn& progress) {
  Export(source, out, options, progress).run();
}

}  // namespace vellum::store
