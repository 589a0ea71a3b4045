// cli/terminal/table.hpp: rows in columns, no wider than the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal/output.hpp"

namespace vellum::cli {

// Columns are two spaces apart, without trailing spaces. If the table is wider than the terminal,
// columns are narrowed in the order of their ranks until it fits.
class Table {
 public:
  enum class Align { left, right };
  enum class Narrowing {
    omit,          // the column is removed
    shorten_time,  // 2024-05-01T12:00:00Z becomes 2024-05-01 12:00; other texts do not change
    cut            // the text ends with an ellipsis, after at least kMinCutColumns
  };
  static constexpr std::size_t kMinCutColumns = 12;
  struct Column {
    std::string title;
    Align align;
    unsigned rank = 0;  // 1 narrows first; 0: never
    Narrowing narrowing = Narrowing::omit;
  };

  explicit Table(std::vector<Column> columns);
  void add(std::vector<std::string> row);
  void print(Output& out) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace vellum::cli
