#include "store/packs/pack_file.hpp"

#include <cerrno>

#include "base/fail.hpp"

namespace vellum::store {

// A Use counts first and looks then; let_go() does the reverse. So one of them sees the other.
class PackFile::Use {
 public:
  explicit Use(const PackFile& file) noexcept : file_(file) { file_.users_.fetch_add(1); }
  ~Use() { file_.users_.fetch_sub(1); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  // nullptr: it is gone.
  base::File* get() const noexcept { return file_.is_gone() ? nullptr : file_.file_.get(); }
  base::File* operator->() const {
    if (base::File* const file = get()) return file;
    fail(Errc::corrupted, "{}: the pack has been removed", file_.path_);
  }

 private:
  const PackFile& file_;
};

bool PackFile::let_go() noexcept {
  gone_.store(true);
  if (users_.load() != 0) return false;
  file_.reset();
  return true;
}

std::uint64_t PackFile::size_bytes() const { return Use(*this)->size_bytes(); }
void PackFile::pread(std::span<std::byte> out, std::uint64_t offset_bytes) const {
  Use(*this)->pread(out, offset_bytes);
}
int PackFile::try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept {
  const Use use(*this);
  const base::File* const file = use.get();
  return file == nullptr ? ENODATA : file->try_pread(out, offset_bytes);
}
bool PackFile::pin_byte(std::uint64_t offset_bytes) { return Use(*this)->pin_byte(offset_bytes); }
bool PackFile::byte_locked(std::uint64_t offset_bytes) const {
  return Use(*this)->byte_locked(offset_bytes);
}
void PackFile::unpin_byte(std::uint64_t offset_bytes) { Use(*this)->unpin_byte(offset_bytes); }
std::vector<std::uint64_t> PackFile::pinned_bytes() const { return Use(*this)->pinned_bytes(); }
bool PackFile::replaced() const {
  const Use use(*this);
  const base::File* const file = use.get();
  return file == nullptr || file->replaced();
}
std::uint64_t PackFile::allocated_bytes() const { return Use(*this)->allocated_bytes(); }
std::uint64_t PackFile::next_data(std::uint64_t offset_bytes) const {
  return Use(*this)->next_data(offset_bytes);
}
std::uint64_t PackFile::next_hole(std::uint64_t offset_bytes) const {
  return Use(*this)->next_hole(offset_bytes);
}
base::FileIdentity PackFile::identity() const { return Use(*this)->identity(); }

}  // namespace vellum::store
