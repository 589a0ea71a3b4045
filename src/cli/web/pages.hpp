// cli/web/pages.hpp: the pages of `vellum web`, each as a title and markup. Each takes the
// parameters of its query as text. Unknown names are Errc::not_found, and malformed values
// Errc::invalid_argument: the site answers with the message.
#pragma once

#include <string>

#include <vellum/store.hpp>

#include "cli/web/request.hpp"

namespace vellum::cli {

struct Content {
  std::string title;
  std::string markup;
};

// All versions, with their graph.
Content versions_page(const Store& store, const Request& request);
// The size of each version.
Content sizes_page(const Store& store, const Request& request);
// name: everything about it, and the changes of each part since its parent.
Content version_page(const Store& store, const Request& request);
// a, b: the differences of each part, and the first ranges.
Content diff_page(const Store& store, const Request& request);
// versions: "A..B" as in `vellum heat`.
Content heat_page(const Store& store, const Request& request);
// version, offset, as (hex, or a type), against (a version to mark differences from).
Content bytes_page(const Store& store, const Request& request);

}  // namespace vellum::cli
