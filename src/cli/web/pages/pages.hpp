// cli/web/pages/pages.hpp: the pages of `vellum web`, each as a title and markup.
//
// Each takes the parameters of its query as text. Unknown names are Errc::not_found, and malformed
// values Errc::invalid_argument: the site answers with the message.
#pragma once

#include <string>
#include <vector>

#include <vellum/store.hpp>

#include "cli/names/version_graph.hpp"
#include "cli/web/pages/request.hpp"

namespace vellum::cli {

struct Content {
  std::string title;
  std::string markup;
};

// All versions, with their graph. from: a version that was chosen to be compared with another.
Content versions_page(const Store& store, const Request& request);
// A legend of the branches, an SVG with a lane for each branch, a dot for each version, a line to
// its parent, and beside it a row with each version's facts, message, and changes. Two rows are
// chosen one after the other to be compared: `chosen` is the first one; empty: none is. The colours
// are those of the style sheet.
std::string graph_markup(const std::vector<GraphRow>& rows, const std::string& chosen);
// The size of each version.
Content sizes_page(const Store& store, const Request& request);
// name: everything about it, and the changes of each part since its parent.
Content version_page(const Store& store, const Request& request);
// a, b: the differences of each part, and the changes from the offset `from` on.
Content diff_page(const Store& store, const Request& request);
// Markup of it: links to the changes before and after this one, and the changes.
std::string neighbour_links(const Store& store, const VersionInfo& a, const VersionInfo& b);
std::string changes_between(const Store& store, const std::string& a, const std::string& b,
                            std::uint64_t from);
// versions: "A..B" as in `vellum heat`.
Content heat_page(const Store& store, const Request& request);
// version, offset, as (hex, or a type), against (a version to mark differences from).
Content bytes_page(const Store& store, const Request& request);
// version, offset, length: the version that last changed each of these bytes.
Content blame_page(const Store& store, const Request& request);
std::string blame_address(const std::string& version, const ByteRange& range);
// version: its file.
Response download(const Store& store, const Request& request);

}  // namespace vellum::cli
