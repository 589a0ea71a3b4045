#include "run/files/open_files.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "run/process/real.hpp"

namespace vellum::preload {

CountedInodeSet OpenFiles::inodes_;

int complain(const std::string& path, int error, const char* what) {
  std::fprintf(stderr, "vellum run: %s: %s\n", path.c_str(), what);
  return error;
}

std::size_t OpenFiles::add(const struct stat& status, RunTarget target) {
  auto open = std::make_unique<OpenFile>();
  open->target = std::move(target);
  open->file = {status.st_dev, status.st_ino};
  if (free_.empty() && files_.size() == kNone) return kNone;
  if (free_.empty()) {
    free_.push_back(files_.size());
    files_.emplace_back();
  }
  const std::size_t number = free_.back();
  numbers_.emplace(open->file, number);
  free_.pop_back();
  inodes_.add(status.st_ino);
  files_[number] = std::move(open);
  return number;
}

void OpenFiles::remove(std::size_t number) {
  const ReentrancyGuard inside;
  OpenFile& open = *files_[number];
  free_.push_back(number);
  numbers_.erase(open.file);
  inodes_.remove(open.file.inode);
  if (open.live != nullptr) forget_live(open);
  files_[number].reset();
}

std::size_t OpenFiles::find(const struct stat& status) const {
  const auto found = numbers_.find({status.st_dev, status.st_ino});
  return found != numbers_.end() ? found->second : kNone;
}

std::size_t OpenFiles::find(const void* address) const {
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (files_[i] != nullptr && files_[i]->mappings.contains(address)) return i;
  return kNone;
}

void OpenFiles::note_live(const LiveFile& live) {
  const auto data = reinterpret_cast<std::uintptr_t>(live.data());
  ++live_;
  lowest_ = std::min<std::uintptr_t>(lowest_, data);
  highest_ = std::max<std::uintptr_t>(highest_, data + live.capacity_bytes());
}

void OpenFiles::forget_live(OpenFile& open) {
  if (--live_ == 0) lowest_ = UINTPTR_MAX, highest_ = 0;
  open.live.reset();
}

bool OpenFiles::may_contain(const void* address) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= lowest_ && at < highest_;
}

LiveFiles OpenFiles::written() const {
  std::vector<std::pair<std::uint64_t, std::shared_ptr<LiveFile>>> found;
  for (const auto& open : files_) {
    if (open == nullptr || !open->is_own()) continue;
    const std::uint64_t since = open->live->written_since();
    if (since != 0) found.emplace_back(since, open->live);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  LiveFiles out;
  for (auto& [since, live] : found) out.push_back(std::move(live));
  return out;
}

LiveFiles OpenFiles::written_among_others(const LiveFile& file) const {
  const std::size_t own = file.written_since() != 0 ? 1 : 0;
  return LiveFile::written_count() > own ? written() : LiveFiles();
}

}  // namespace vellum::preload
