#include "store/packs/pack_file.hpp"

#include <cassert>
#include <cerrno>

#include "base/fail.hpp"

namespace vellum::store {

// A ReadGuard increments the count, then reads the flag. try_close() sets the flag, then reads the
// count. Therefore at least one of them sees the other.
class PackFile::ReadGuard {
 public:
  explicit ReadGuard(const PackFile& file) noexcept : file_(file) { file_.users_.fetch_add(1); }
  ~ReadGuard() {
    assert(file_.users_.load() != 0);
    file_.users_.fetch_sub(1);
  }
  ReadGuard(const ReadGuard&) = delete;
  ReadGuard& operator=(const ReadGuard&) = delete;

  // nullptr: it is closed.
  base::File* get() const noexcept { return file_.is_closed() ? nullptr : file_.file_.get(); }
  base::File* operator->() const {
    if (base::File* const file = get()) return file;
    fail(Errc::corrupted, "{}: the pack has been removed", file_.path_);
  }

 private:
  const PackFile& file_;
};

bool PackFile::try_close() noexcept {
  closed_.store(true);
  if (users_.load() != 0) return false;
  file_.reset();
  return true;
}

std::uint64_t PackFile::size_bytes() const { return ReadGuard(*this)->size_bytes(); }
void PackFile::pread(std::span<std::byte> out, std::uint64_t offset_bytes) const {
  ReadGuard(*this)->pread(out, offset_bytes);
}
int PackFile::try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept {
  const ReadGuard guard(*this);
  const base::File* const file = guard.get();
  return file == nullptr ? ENODATA : file->try_pread(out, offset_bytes);
}
bool PackFile::pin_byte(std::uint64_t offset_bytes) {
  return ReadGuard(*this)->pin_byte(offset_bytes);
}
bool PackFile::byte_locked(std::uint64_t offset_bytes) const {
  return ReadGuard(*this)->byte_locked(offset_bytes);
}
void PackFile::unpin_byte(std::uint64_t offset_bytes) {
  ReadGuard(*this)->unpin_byte(offset_bytes);
}
std::vector<std::uint64_t> PackFile::pinned_bytes() const {
  return ReadGuard(*this)->pinned_bytes();
}
bool PackFile::replaced() const {
  const ReadGuard guard(*this);
  const base::File* const file = guard.get();
  return file == nullptr || file->replaced();
}
std::uint64_t PackFile::allocated_bytes() const { return ReadGuard(*this)->allocated_bytes(); }
std::uint64_t PackFile::next_data(std::uint64_t offset_bytes) const {
  return ReadGuard(*this)->next_data(offset_bytes);
}
std::uint64_t PackFile::next_hole(std::uint64_t offset_bytes) const {
  return ReadGuard(*this)->next_hole(offset_bytes);
}
base::FileIdentity PackFile::identity() const { return ReadGuard(*this)->identity(); }

}  // namespace vellum::store
