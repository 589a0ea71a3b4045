// bench/fams/peer_floor.cpp: the minimal cost of durability: each changing operation appends 108
// bytes to a file with allocated blocks, and each commit is one fdatasync(2). It supports no reads.
#include <cstring>

#include "mapping.hpp"
#include "store.hpp"

namespace fams {
namespace {

constexpr std::uint64_t kFileBytes = 64 << 20;  // then it restarts at the front

class Floor final : public Store, public Structure {
 public:
  explicit Floor(const Setting& setting) {
    const std::string path = setting.directory + "/log";
    make_dense_file(path, kFileBytes);
    file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    bench::check(file_ >= 0, path.c_str());
  }
  ~Floor() override {
    if (file_ >= 0) ::close(file_);
  }
  Structure& structure() override { return *this; }

  void insert(Key key, const Value& value) override { append(key, value); }
  bool update(Key key, const Value& value) override {
    append(key, value);
    return true;
  }
  bool remove(Key key) override {
    append(key, Value{});
    return true;
  }
  bool read(Key, Value&) override { return true; }
  std::uint64_t scan(Key, std::uint64_t count, Value&) override { return count; }
  std::uint64_t count() override { return 0; }

  void commit() override {
    if (pending_.empty()) return;
    if (at_ + pending_.size() > kFileBytes) at_ = 0;
    const auto length = static_cast<ssize_t>(pending_.size());
    bench::check(
        ::pwrite(file_, pending_.data(), pending_.size(), static_cast<off_t>(at_)) == length,
        "pwrite");
    bench::check(::fdatasync(file_) == 0, "fdatasync");
    at_ += pending_.size();
    pending_.clear();
  }
  void close() override {
    ::close(file_);
    file_ = -1;
  }
  void open() override {}
  bool keeps() const override { return false; }
  bool can_read() const override { return false; }

 private:
  void append(Key key, const Value& value) {
    const std::size_t end = pending_.size();
    pending_.resize(end + sizeof key + sizeof value);
    std::memcpy(&pending_[end], &key, sizeof key);
    std::memcpy(&pending_[end + sizeof key], &value, sizeof value);
  }

  int file_ = -1;
  std::uint64_t at_ = 0;
  std::vector<char> pending_;
};

}  // namespace

std::unique_ptr<Store> make_floor(const Setting& setting) {
  return std::make_unique<Floor>(setting);
}

}  // namespace fams
