// A medium that loses power: of what was written since the last barrier, any 64-byte lines, or any
// part of a line's writes from the first on, have reached it.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "interfaces/atomic_file/medium.hpp"

namespace vellum::atomic_file::test {

using Bytes = std::vector<std::byte>;

class LineMedium final : public MediumFile {
 public:
  // `before`: called before each write and each barrier, when a crash could be.
  LineMedium(std::string name, Bytes content, bool byte_addressable, std::function<void()> before)
      : name_(std::move(name)),
        durable_(std::move(content)),
        now_(durable_),
        byte_addressable_(byte_addressable),
        before_(std::move(before)) {}

  const std::string& path() const noexcept override { return name_; }
  std::uint64_t size_bytes() const override { return now_.size(); }
  void read(std::span<std::byte> out, std::uint64_t offset_bytes) const override {
    if (!out.empty()) std::memcpy(out.data(), now_.data() + offset_bytes, out.size());
  }
  void write(std::span<const std::byte> bytes, std::uint64_t offset_bytes) override {
    if (before_) before_();
    std::memcpy(now_.data() + offset_bytes, bytes.data(), bytes.size());
    const std::uint64_t end = offset_bytes + bytes.size();
    for (std::uint64_t at = offset_bytes; at < end;) {
      const std::uint64_t stop = std::min(end, (at / 64 + 1) * 64);
      const auto piece = bytes.subspan(at - offset_bytes, stop - at);
      pending_.push_back({at, Bytes(piece.begin(), piece.end())});
      at = stop;
    }
  }
  void barrier() override {
    if (before_) before_();
    durable_ = now_;
    pending_.clear();
  }
  void resize(std::uint64_t size_bytes) override {
    now_.resize(size_bytes);
    durable_.resize(size_bytes);
  }
  bool byte_addressable() const noexcept override { return byte_addressable_; }

  std::size_t pending_lines() const { return pending_.size(); }
  // The content after a crash: with the pending lines for which `arrived` is true.
  Bytes after_crash(const std::function<bool(std::size_t)>& arrived) const {
    Bytes out = durable_;
    for (std::size_t i = 0; i < pending_.size(); ++i)
      if (arrived(i))
        std::copy(pending_[i].bytes.begin(), pending_[i].bytes.end(),
                  out.begin() + static_cast<std::ptrdiff_t>(pending_[i].offset));
    return out;
  }
  const Bytes& now() const { return now_; }

 private:
  struct Line {
    std::uint64_t offset;
    Bytes bytes;
  };
  std::string name_;
  Bytes durable_, now_;
  std::vector<Line> pending_;
  bool byte_addressable_;
  std::function<void()> before_;
};

}  // namespace vellum::atomic_file::test
