#include "store/stream/image_tail.hpp"

#include <array>
#include <span>
#include <utility>
#include <vector>
#include <vellum/error.hpp>

#include "base/boot_id.hpp"
#include "base/bytes/checksum.hpp"
#include "store/catalog/names.hpp"

namespace vellum::store {

std::uint64_t tail_boot() {
  const std::string& id = base::boot_id();
  return id.empty() ? 0 : base::checksum64(std::as_bytes(std::span(id))) | 1;
}

std::unique_ptr<base::File> open_tail(PackStore& store, const std::string& branch, bool create) {
  const std::string path = store.branch_directory(branch) + "/" + kImageTailName;
  try {
    return store.fs().open(path, base::OpenMode::read_write);
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
  return create ? store.fs().open(path, base::OpenMode::create_new) : nullptr;
}

std::optional<format::ImageTail> find_tail(PackStore& store, const std::string& branch,
                                           const format::Version& head, const base::File& image) {
  if (!head.file_bytes.has_value()) return std::nullopt;
  const auto file = open_tail(store, branch, false);
  if (file == nullptr || file->size_bytes() < format::kImageTailBytes) return std::nullopt;
  std::array<std::byte, format::kImageTailBytes> bytes;
  file->pread(bytes, 0);
  format::ImageTail tail;
  const bool of_head = format::decode_image_tail(bytes, store.superblock().store_id, tail) &&
                       tail.branch_id == head.branch_id && tail.sequence == head.sequence &&
                       tail.time_ns == head.time_ns && tail.begin_bytes == *head.file_bytes;
  if (!of_head || tail.boot != tail_boot() || image.size_bytes() < tail.end_bytes)
    return std::nullopt;
  std::vector<std::byte> content(tail.end_bytes - tail.begin_bytes);
  image.pread(content, tail.begin_bytes);
  if (base::checksum64(content) != tail.content_checksum) return std::nullopt;
  return tail;
}

AskForBranch::AskForBranch(const std::string& store_path, const std::string& branch)
    : path_(store_path + "/branches/" + branch + "/" + kImageTailName) {}

void AskForBranch::ask() noexcept {
  if (file_ != nullptr) return;
  try {
    auto file = base::posix_fs().open(path_, base::OpenMode::read_write);
    if (file->try_lock_byte(kAskByte)) file_ = std::move(file);
  } catch (const Error&) {  // there is no tail, or it must not be written
  }
}

}  // namespace vellum::store
