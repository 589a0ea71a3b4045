// cli/web/pages/download.cpp: the file of a version, as a download.
#include <algorithm>
#include <cstring>
#include <memory>

#include "cli/names/listing.hpp"
#include "cli/web/pages/html.hpp"
#include "cli/web/pages/pages.hpp"

namespace vellum::cli {

// An open version does not change while the browser reads it, and gc keeps its data.
Response download(const Store& store, const Request& request) {
  const std::string name = resolve_version(store, request.parameter("version"));
  Store handle = store;
  const auto region = std::make_shared<const Region>(handle.open_version(name));
  Response response;
  response.type = "application/octet-stream";
  response.file_name = name;
  response.file_bytes = region->file_bytes();
  response.read = [region](std::uint64_t offset, char* to, std::size_t most_bytes) {
    const auto length = static_cast<std::size_t>(
        std::min<std::uint64_t>(most_bytes, region->file_bytes() - offset));
    const Pin pin = region->pin({offset, length});  // a corrupted page is an exception
    std::memcpy(to, static_cast<const char*>(region->data()) + offset, length);
    return length;
  };
  return response;
}

}  // namespace vellum::cli
