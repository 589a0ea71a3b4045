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

}  // namespace vellum::store
