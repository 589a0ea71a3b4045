// cli/web/pages.hpp: a browser's request and its response; the pages of `vellum web`, each as
// a title and markup.
//
// Each takes the parameters of its query as text. Unknown names are Errc::not_found, and malformed
// values Errc::invalid_argument: the site answers with the message.
#pragma once

#include <string>

#include <map>
#include <vector>
#include <vellum/store.hpp>

#include "cli/names/version_graph.hpp"

namespace vellum::cli {

// A browser's request.
struct Request {
  std::string method;  // "GET"
  std::string host;    // of the header Host; empty: none
  std::string path;    // "/TOKEN/diff", decoded
  std::map<std::string, std::string> query;

  // Empty: it was not given.
  std::string parameter(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
};

struct Response {
  unsigned status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body;
};

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

// The graph of versions: a legend of the branches, and an SVG: a lane for each branch, a dot for each version, a line to
// its parent. Names link to the version, `diff` to its changes. The colours are those of the style
// sheet.
std::string graph_svg(const std::vector<GraphRow>& rows);

}  // namespace vellum::cli
