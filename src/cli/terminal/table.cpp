#include "cli/terminal/table.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "cli/terminal/output.hpp"
#include "cli/terminal/width.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kGap = 2;

std::string shortened_time(const std::string& text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  const bool is_time =
      std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(),
                 [](char c, char form) { return form == 'd' ? c >= '0' && c <= '9' : c == form; });
  return is_time ? text.substr(0, 10) + " " + text.substr(11, 5) : text;
}

// Narrows a table to the width of a screen.
class Layout {
 public:
  Layout(const std::vector<Table::Column>& columns, std::vector<std::vector<std::string>> rows)
      : columns_(columns),
        rows_(std::move(rows)),
        widths_(columns.size()),
        is_shown_(columns.size(), true) {
    for (std::size_t i = 0; i < columns_.size(); ++i) measure(i);
  }

  void fit(std::size_t screen) {
    unsigned last = 0;
    for (const Table::Column& column : columns_) last = std::max(last, column.rank);
    for (unsigned rank = 1; rank <= last && total() > screen; ++rank) {
      for (std::size_t i = 0; i < columns_.size(); ++i)
        if (columns_[i].rank == rank) narrow(i, screen);
    }
  }

  void print(Output& out) const {
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (!is_shown_[i]) continue;
        const std::string padding(widths_[i] - text_columns(row[i]), ' ');
        if (i != first_shown()) line.append(kGap, ' ');
        line += columns_[i].align == Table::Align::right ? padding + row[i] : row[i] + padding;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out.write(line + "\n");
    }
  }

 private:
  std::size_t first_shown() const {
    return static_cast<std::size_t>(std::find(is_shown_.begin(), is_shown_.end(), true) -
                                    is_shown_.begin());
  }

  void measure(std::size_t column) {
    widths_[column] = 0;
    for (const auto& row : rows_)
      if (column < row.size())
        widths_[column] = std::max(widths_[column], text_columns(row[column]));
  }

  std::size_t total() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < widths_.size(); ++i)
      if (is_shown_[i]) sum += widths_[i] + (i == first_shown() ? 0 : kGap);
    return sum;
  }

  void narrow(std::size_t column, std::size_t screen) {
    if (columns_[column].narrowing == Table::Narrowing::omit) {
      is_shown_[column] = false;
      return;
    }
    const std::size_t excess = total() - std::min(total(), screen);
    const std::size_t columns =
        std::max(Table::kMinCutColumns, widths_[column] - std::min(widths_[column], excess));
    const std::string_view ellipsis = screen_takes_utf8() ? "\u2026" : "...";
    for (auto& row : rows_) {
      if (column >= row.size()) continue;
      row[column] = columns_[column].narrowing == Table::Narrowing::cut
                        ? cut_text(row[column], columns, ellipsis)
                        : shortened_time(row[column]);
    }
    measure(column);
  }

  const std::vector<Table::Column>& columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
  std::vector<bool> is_shown_;
};

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  std::vector<std::string> header;
  for (const Column& column : columns_) header.push_back(column.title);
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

void Table::print(Output& out) const {
  Layout layout(columns_, rows_);
  if (const auto screen = screen_columns()) layout.fit(*screen);
  layout.print(out);
}

}  // namespace vellum::cli
