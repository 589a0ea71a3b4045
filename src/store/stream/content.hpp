// store/stream/content.hpp: sources of a branch's new content, read once and in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/files/file.hpp"
#include "format/wire/types.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

// Pages of a Content.
struct ContentRange {
  format::PageNumber first = 0;
  std::size_t pages = 0;  // 0: the end
  bool is_read = false;   // next() has read the pages into `room`
};

// Returns its pages in ascending order. Threads: one, except read().
class Content {
 public:
  virtual ~Content() = default;
  Content() = default;
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  // The next pages, at most as many as fit into `room`. Skipped pages are zero. REQUIRES: `room` is
  // of whole pages, at least one.
  virtual ContentRange next(std::span<std::byte> room) = 0;
  // Reads pages of a range that is not read yet. If the content ends inside a page, the rest of the
  // page is zero. Threads: any number.
  virtual void read(format::PageNumber first, std::span<std::byte> out) const = 0;
  // Called after the whole content was read. Throws if it changed meanwhile.
  virtual void check() const {}
  // Starts again at the beginning. False: the content can be read only once.
  virtual bool restart() = 0;
  // The end of the last range.
  virtual std::uint64_t position_bytes() const = 0;
  // The whole size; before the end of a stream, the expected size.
  virtual std::uint64_t size_bytes() const = 0;
  // The size of the plain file, given that of the branch's head; none: all of the region.
  virtual std::optional<std::uint64_t> file_bytes(std::optional<std::uint64_t> head_file_bytes,
                                                  std::uint64_t region_bytes) const {
    static_cast<void>(head_file_bytes), static_cast<void>(region_bytes);
    return size_bytes();
  }
};

// A plain file with its current size. Does not read holes. Errc::busy, with the file's name: it was
// truncated meanwhile. REQUIRES: the file outlives the content.
class FileContent final : public Content {
 public:
  explicit FileContent(const base::File& file) : file_(file), size_bytes_(file.size_bytes()) {}
  ContentRange next(std::span<std::byte> room) override;
  void read(format::PageNumber first, std::span<std::byte> out) const override;
  void check() const override { require_length(size_bytes_); }
  bool restart() override;
  std::uint64_t position_bytes() const override { return at_; }
  std::uint64_t size_bytes() const override { return size_bytes_; }

 private:
  void require_length(std::uint64_t bytes) const;
  std::uint64_t end_of_data(std::uint64_t data, std::uint64_t end) const;

  const base::File& file_;
  const std::uint64_t size_bytes_;
  std::uint64_t at_ = 0;
};

// The bytes that a function writes, until it writes none.
class StreamContent final : public Content {
 public:
  using Read = std::function<std::size_t(void* to, std::size_t capacity_bytes)>;
  StreamContent(Read read, std::uint64_t expected_bytes)
      : read_(std::move(read)), expected_bytes_(expected_bytes) {}
  ContentRange next(std::span<std::byte> room) override;
  void read(format::PageNumber first, std::span<std::byte> out) const override;
  bool restart() override { return at_ == 0; }
  std::uint64_t position_bytes() const override { return at_; }
  std::uint64_t size_bytes() const override {
    return ended_ ? at_ : std::max(at_, expected_bytes_);
  }

 private:
  const Read read_;
  const std::uint64_t expected_bytes_;
  std::uint64_t at_ = 0;
  bool ended_ = false;
};

// The content of a file. A file with size 0 and nevertheless with content, as in /proc, is read as
// a stream. REQUIRES: as for FileContent.
std::unique_ptr<Content> content_of(const base::File& file);

// A version, of this store or another. A branch whose file has the size of its region keeps this
// property if the version has it, too.
class VersionContent final : public Content {
 public:
  explicit VersionContent(std::shared_ptr<PageSource> source);
  ContentRange next(std::span<std::byte> room) override;
  void read(format::PageNumber first, std::span<std::byte> out) const override;
  bool restart() override;
  std::uint64_t position_bytes() const override { return at_ * format::kPageBytes; }
  std::uint64_t size_bytes() const override { return source_->region_bytes(); }
  std::optional<std::uint64_t> file_bytes(std::optional<std::uint64_t> head_file_bytes,
                                          std::uint64_t region_bytes) const override;

 private:
  const std::shared_ptr<PageSource> source_;
  const format::PageNumber end_;
  format::PageNumber at_ = 0;
};

// The number of pages that a version shows from `page` on, at most `limit`. May include a few zero
// pages at the end, which cost no more than a search for the exact end.
std::size_t data_from(const PageSource& source, format::PageNumber page, std::size_t limit);

}  // namespace vellum::store
