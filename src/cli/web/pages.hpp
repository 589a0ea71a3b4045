// cli/web/pages.hpp: the pages of `vellum web`, each as markup behind its title.
//
// Each takes the parameters of its query as text. What names nothing is Errc::not_found, and what
// cannot be read Errc::invalid_argument: the site answers with the message.
#pragma once

#include <string>

#include <vellum/store.hpp>

#include "cli/web/request.hpp"

namespace vellum::cli {

struct Content {
  std::string title;
  std::string markup;
};

// All versions, with the lines that they lie on.
Content versions_page(const Store& store, const Request& request);
// What each version costs.
Content sizes_page(const Store& store, const Request& request);
// name: all that is known of it, and how much of which parts changed since its parent.
Content version_page(const Store& store, const Request& request);
// a, b: how much of which parts differs, and the first ranges.
Content diff_page(const Store& store, const Request& request);
// versions: "A..B" as `vellum heat` takes it.
Content heat_page(const Store& store, const Request& request);
// version, offset, as (hex, or a type), against (a version to mark differences from).
Content bytes_page(const Store& store, const Request& request);

}  // namespace vellum::cli
