#include "remote/engine/object_store.hpp"

#include "base/fail.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kMaxKeyBytes = 200;

bool is_key_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

}  // namespace

bool is_good_key(const std::string& key) {
  if (key.empty() || key.size() > kMaxKeyBytes) return false;
  char before = '/';
  for (const char c : key) {
    if (before == '/' && (c == '/' || c == '.')) return false;
    if (c != '/' && !is_key_byte(c)) return false;
    before = c;
  }
  return before != '/';
}

void require_good_key(const std::string& key) {
  if (!is_good_key(key)) fail(Errc::invalid_argument, "'{}' cannot be the key of an object", key);
}

}  // namespace vellum::remote
