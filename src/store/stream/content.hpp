// store/stream/content.hpp: what a branch is to hold, as it passes.
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

// Gives its pages in ascending order. Threads: one, except read().
class Content {
 public:
  virtual ~Content() = default;
  Content() = default;
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  struct Piece {
    format::PageNumber first = 0;
    std::size_t pages = 0;  // 0: the end
    bool is_read = false;   // its content is in `room` already
  };
  // The next pages, as many as fit into `room` or fewer. Pages that are left out are zero.
  virtual Piece next(std::span<std::byte> room) = 0;
  // Reads pages of a piece, unless that is read already. Where the content ends inside a page, the
  // rest of that is zero. Threads: any number.
  virtual void read(format::PageNumber first, std::span<std::byte> out) const = 0;
  // All has been read: throws unless it is of one moment.
  virtual void check() const {}
  // Back to the beginning. False: it can be read only once.
  virtual bool restart() = 0;
  // Where the last piece ends.
  virtual std::uint64_t position_bytes() const = 0;
  // The whole size; before the end of a stream, what is expected.
  virtual std::uint64_t size_bytes() const = 0;
  // The size of the plain file, given that of the branch's head; none: all of the region.
  virtual std::optional<std::uint64_t> file_bytes(std::optional<std::uint64_t> head_file_bytes,
                                                  std::uint64_t region_bytes) const {
    static_cast<void>(head_file_bytes), static_cast<void>(region_bytes);
    return size_bytes();
  }
};

// A plain file, as long as it is now. Holes are not read. Errc::busy, which names the file: it has
// become shorter meanwhile. REQUIRES: the file outlives the content.
class FileContent final : public Content {
 public:
  explicit FileContent(const base::File& file) : file_(file), size_bytes_(file.size_bytes()) {}
  Piece next(std::span<std::byte> room) override;
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

// The bytes that a function gives, until it gives none.
class StreamContent final : public Content {
 public:
  using Read = std::function<std::size_t(void* to, std::size_t capacity_bytes)>;
  StreamContent(Read read, std::uint64_t expected_bytes)
      : read_(std::move(read)), expected_bytes_(expected_bytes) {}
  Piece next(std::span<std::byte> room) override;
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

// The content of a file: as a stream where the size says 0 and there is content nevertheless, as in
// /proc. REQUIRES: as for FileContent.
std::unique_ptr<Content> content_of(const base::File& file);

// A version, of this store or another. A branch that uses all of its region stays so if the version
// does, too.
class VersionContent final : public Content {
 public:
  explicit VersionContent(std::shared_ptr<PageSource> source);
  Piece next(std::span<std::byte> room) override;
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

// How many pages a version shows from `page` on, at most `limit`. The end is known to a few pages:
// the rest is zero and costs as much as a search for it.
std::size_t data_from(const PageSource& source, format::PageNumber page, std::size_t limit);

}  // namespace vellum::store
