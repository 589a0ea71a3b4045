// cli/web/request.hpp: a browser's request, and the response.
#pragma once

#include <map>
#include <string>

namespace vellum::cli {

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

}  // namespace vellum::cli
