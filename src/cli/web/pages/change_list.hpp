// cli/web/pages/change_list.hpp: the changes between two versions, with the bytes of both.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::cli {

// Ranges that differ and are close to each other are one change.
struct Change {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t bytes_different = 0;
};

// Merges the ranges of a diff, and keeps the changes of one page: those that end after `from`.
class ChangeList {
 public:
  explicit ChangeList(std::uint64_t from) : from_(from) {}

  // Ascending.
  void add(const ByteRange& range);
  void end();

  const std::vector<Change>& shown() const noexcept { return shown_; }
  // Where the page before this one begins, and the next one. Empty: there is none.
  std::optional<std::uint64_t> page_before() const;
  std::optional<std::uint64_t> next_page() const noexcept { return next_page_; }

 private:
  std::uint64_t from_;
  Change last_;
  std::deque<std::uint64_t> before_;  // where the changes before the page begin
  std::vector<Change> shown_;
  std::optional<std::uint64_t> next_page_;
};

// Each change with its first bytes before and after, and links to the bytes.
std::string changes_markup(const Store& store, const std::string& a, const std::string& b,
                           const std::vector<Change>& changes);

}  // namespace vellum::cli
