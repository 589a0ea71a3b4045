// cli/web/pages/request.hpp: a browser's request, and the response.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

  // A download, if `read` is given: it is called with ascending offsets, returns the number of
  // bytes that it has written to `to`, and may throw.
  std::string file_name = {};
  std::uint64_t file_bytes = 0;
  std::function<std::size_t(std::uint64_t offset, char* to, std::size_t most_bytes)> read = {};
};

}  // namespace vellum::cli
