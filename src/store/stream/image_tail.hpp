// store/stream/image_tail.hpp: the record of an image's tail (format/image_tail.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/files/file.hpp"
#include "format/image_tail.hpp"
#include "format/version.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// ImageTail::boot of this boot; 0: unknown.
std::uint64_t tail_boot();
// The record's file; null if it does not exist, unless `create`.
std::unique_ptr<base::File> open_tail(PackStore& store, const std::string& branch, bool create);
// The tail of `image` behind `head`, written in this boot, with the recorded content; nullopt:
// none.
std::optional<format::ImageTail> find_tail(PackStore& store, const std::string& branch,
                                           const format::Version& head, const base::File& image);

// While a process waits for a branch with a tail, ask() lets the writer know, which then commits
// the tail and closes the branch. Ends with its process. Without effect if the branch never had a
// tail, or if another process is asking.
class AskForBranch {
 public:
  AskForBranch(const std::string& store_path, const std::string& branch);
  void ask() noexcept;
  // For the writer, by its open_tail().
  static bool is_asked(const base::File& tail) { return tail.byte_locked(kAskByte); }

 private:
  static constexpr std::uint64_t kAskByte = 1u << 12;  // behind the record

  const std::string path_;
  std::unique_ptr<base::File> file_;
};

}  // namespace vellum::store
