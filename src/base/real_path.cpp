#include "base/real_path.hpp"

#include <filesystem>

namespace vellum::base {

std::string real_path(const std::string& path) {
  std::error_code error;
  auto found = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  if (error) return path;
  std::string text = found.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace vellum::base
