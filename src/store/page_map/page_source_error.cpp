// store/page_map/page_source_error.cpp: messages for pages that could not be read.
#include <cassert>
#include <cerrno>
#include <cstring>

#include "base/fail.hpp"
#include "store/packs/record/pack_store.hpp"
#include "store/page_map/page_source_state.hpp"

namespace vellum::store {

namespace {

// Writes text to a fixed buffer and truncates it at the buffer's end.
class FixedText {
 public:
  explicit FixedText(std::span<char> out) noexcept : out_(out) {
    if (!out_.empty()) out_[0] = '\0';
  }
  FixedText& operator<<(std::string_view s) noexcept {
    for (const char c : s) put(c);
    return *this;
  }
  FixedText& operator<<(std::uint64_t v) noexcept { return number(v, 10, 1); }
  FixedText& hex16(std::uint64_t v) noexcept { return number(v, 16, 16); }

 private:
  FixedText& number(std::uint64_t v, unsigned radix, int width) noexcept {
    char digits[20];
    assert(radix >= 10 && width <= 20);
    int n = 0;
    do {
      digits[n++] = "0123456789abcdef"[v % radix];
      v /= radix;
    } while (v != 0 || n < width);
    while (n > 0) put(digits[--n]);
    return *this;
  }
  void put(char c) noexcept {
    if (used_ + 1 >= out_.size()) return;
    assert(c != '\0');
    out_[used_++] = c;
    out_[used_] = '\0';
  }
  std::span<char> out_;
  std::size_t used_ = 0;
};

const base::File* file_of(const PageSourceState& source, const ReadFailure& failure) noexcept {
  return failure.file != nullptr ? failure.file : source.store->packs().find(failure.record.pack);
}

}  // namespace

void PageSource::describe(const ReadFailure& failure, std::span<char> out) const noexcept {
  FixedText text(out);
  text << impl_->label << ": page " << failure.page << ": ";
  if (failure.record.pack != 0) {
    if (const base::File* file = file_of(*impl_, failure)) {
      text << file->path();
    } else {
      text << impl_->packs_directory << "/";
      text.hex16(failure.record.pack) << ".pack";
    }
    text << " at byte " << failure.record.offset_bytes << ": ";
  }
  text << (failure.reason == nullptr ? "unknown failure" : failure.reason);
  if (failure.os_errno == ENODATA) {
    text << ": the file is truncated";
  } else if (failure.os_errno != 0) {
#ifdef __GLIBC__
    // Static text: strerror(3) may allocate.
    if (const char* name = ::strerrordesc_np(failure.os_errno)) {
      text << ": " << name;
      return;
    }
#endif
    text << ": error " << static_cast<std::uint64_t>(failure.os_errno);
  }
}

void PageSource::raise(const ReadFailure& failure) const {
  // Long enough for the longest label and path.
  const base::File* const file = file_of(*impl_, failure);
  const std::size_t path = file != nullptr ? file->path().size() : impl_->packs_directory.size();
  std::vector<char> text(impl_->label.size() + path + 512);
  describe(failure, text);
  const bool os = failure.os_errno != 0 && failure.os_errno != ENODATA;
  const Errc of_system = failure.os_errno == ENOMEM ? Errc::out_of_memory : Errc::io;
  fail(os ? of_system : Errc::corrupted, "{}", text.data());
}

void PageSource::read(format::PageNumber first, std::size_t count, std::byte* out) const {
  ReadFailure failure;
  if (!try_read(first, count, out, failure)) raise(failure);
}

}  // namespace vellum::store
