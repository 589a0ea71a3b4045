#include "remote/pieces/uploads.hpp"

#include <algorithm>
#include <utility>

namespace vellum::remote {
namespace {

constexpr std::uint64_t kMaxKeptBytes = 8u << 20;

}  // namespace

Uploads::Uploads(const Remote& remote, SeenObjects& there, base::ThreadPool& pool,
                 std::function<void()> before_large)
    : remote_(remote), there_(there), pool_(pool), before_large_(std::move(before_large)) {}

bool Uploads::keep(const std::string& key, std::vector<std::byte>& bytes) {
  const std::lock_guard lock(mutex_);
  if (kept_bytes_ + bytes.size() > kMaxKeptBytes) return false;
  kept_bytes_ += bytes.size();
  kept_.emplace(key, std::move(bytes));
  return true;
}

void Uploads::add(const std::string& key, std::vector<std::byte> bytes) {
  if (keep(key, bytes)) return;
  if (before_large_) std::call_once(asked_, before_large_);
  put(key, bytes);
}

void Uploads::put(const std::string& key, std::span<const std::byte> bytes) {
  const bool is_damaged = there_.has_damaged(key, bytes.size());
  if (is_damaged) remote_.objects().put(key, bytes);
  const bool is_new = is_damaged || remote_.objects().put_if_absent(key, bytes);
  if (is_new) there_.add(key, bytes.size());
  const std::lock_guard lock(mutex_);
  if (!is_new) {
    found_.emplace(key, bytes.size());
    return;
  }
  ++objects_;
  bytes_ += bytes.size();
}

bool Uploads::has_found_damage() const {
  return std::ranges::any_of(
      found_, [&](const auto& object) { return there_.has_damaged(object.first, object.second); });
}

void Uploads::finish(const std::vector<std::function<void()>>& tasks) {
  const std::map<std::string, std::vector<std::byte>> kept = std::exchange(kept_, {});
  std::vector<std::function<void()>> all = tasks;
  for (const auto& [key, bytes] : kept) {
    all.push_back([this, &key = key, &bytes = bytes] { put(key, bytes); });
  }
  pool_.parallel_for(all.size(), [&](std::size_t i, std::size_t) { all[i](); });
}

}  // namespace vellum::remote
