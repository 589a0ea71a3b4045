// store/catalog/image_tail_name.hpp: the record of an image's tail (store/stream/image_tail.hpp), a
// file in the branch's directory, like those of store/catalog/names.hpp.
#pragma once

namespace vellum::store {

inline constexpr const char* kImageTailName = "image.tail";

}  // namespace vellum::store
