// cli/commands/history/cmd_diff.cpp: vellum diff: bytes, pages or parts that differ between two
// versions.
//
// There may be hundreds of millions of ranges, so nothing is collected: text and JSON are written
// range by range.
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "cli/history/change_stat.hpp"
#include "cli/names/listing.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "format/wire/types.hpp"

namespace vellum::cli {
namespace {

using format::kPageBytes;

struct DiffArguments {
  std::string store;
  std::string a, b;
  bool pages = false;
  bool summary = false;
  bool stat = false;
  bool exit_code = false;
};

struct PageStretch {
  std::uint64_t first = 0, last = 0;
};

PageStretch pages_of(const ByteRange& range) {
  return {range.offset_bytes / kPageBytes,
          (range.offset_bytes + range.length_bytes - 1) / kPageBytes};
}

std::string page_text(const PageStretch& stretch) {
  return stretch.first == stretch.last ? fmt::format("{}", stretch.first)
                                       : fmt::format("{}-{}", stretch.first, stretch.last);
}

// Prints the differences, one line or one JSON value for each.
class DiffPrinter {
 public:
  DiffPrinter(Output& out, bool json, bool pages) : out_(out), json_(json), pages_(pages) {}

  void add(const ByteRange& range) {
    if (!pages_) {
      print_range(range);
      return;
    }
    const PageStretch stretch = pages_of(range);
    if (pending_ && stretch.first <= pending_->last + 1) {
      pending_->last = stretch.last;
      return;
    }
    finish();
    pending_ = stretch;
  }

  void finish() {
    if (pending_) {
      print_pages(*pending_);
      pending_.reset();
    }
  }

 private:
  void print_range(const ByteRange& range) {
    if (json_) {
      item(Json{{"offset", range.offset_bytes}, {"length", range.length_bytes}});
      return;
    }
    if (first_) {
      out_.print("{:>16} {:>12}  page\n", "offset", "length");
      first_ = false;
    }
    out_.print("{:>16} {:>12}  {}\n", range.offset_bytes, range.length_bytes,
               page_text(pages_of(range)));
  }

  void print_pages(const PageStretch& stretch) {
    if (json_) {
      item(Json{{"first", stretch.first}, {"count", stretch.last - stretch.first + 1}});
      return;
    }
    out_.print("{} {}\n", stretch.first == stretch.last ? "page" : "pages", page_text(stretch));
  }

  void item(const Json& value) {
    out_.write(first_ ? "" : ",");
    out_.write(json_text(value));
    first_ = false;
  }

  Output& out_;
  bool json_;
  bool pages_;
  bool first_ = true;
  std::optional<PageStretch> pending_;
};

// The members of a JSON object without its braces.
std::string members(const Json& object) {
  const std::string text = json_text(object);
  return text.substr(1, text.size() - 2);
}

std::uint64_t region_bytes(const Store& store, const std::string& name) {
  return store.version(name).region_bytes;
}

struct DiffResult {
  DiffTotals totals;
  std::uint64_t a_bytes = 0, b_bytes = 0;
  bool different() const { return totals.bytes_different > 0 || a_bytes != b_bytes; }
};

DiffResult run_library(const Store& store, const DiffArguments& arguments,
                       const std::function<void(const ByteRange&)>& visit) {
  DiffResult result;
  result.a_bytes = region_bytes(store, arguments.a);
  result.b_bytes = region_bytes(store, arguments.b);
  result.totals = store.diff(arguments.a, arguments.b, visit);
  return result;
}

Json totals_json(const DiffResult& result) {
  return Json{{"different", result.different()},
              {"a_region_bytes", result.a_bytes},
              {"b_region_bytes", result.b_bytes},
              {"pages_different", result.totals.pages_different},
              {"bytes_different", result.totals.bytes_different},
              {"range_count", result.totals.ranges}};
}

void print_summary(Output& out, const DiffResult& result) {
  if (!result.different()) {
    out.write("no difference\n");
    return;
  }
  if (result.a_bytes != result.b_bytes) {
    out.print_text("the regions have {} and {} bytes\n", result.a_bytes, result.b_bytes);
  }
  out.print_text("{} in {} on {}\n", counted(result.totals.bytes_different, "byte"),
                 counted(result.totals.ranges, "range"),
                 counted(result.totals.pages_different, "page"));
}

DiffResult diff_as_text(Context& context, const Store& store, const DiffArguments& arguments) {
  DiffPrinter printer(context.out, false, arguments.pages);
  const bool list = !arguments.summary && !context.quiet;
  const DiffResult result = run_library(store, arguments, [&](const ByteRange& range) {
    if (list) {
      printer.add(range);
    }
  });
  printer.finish();
  if (!context.quiet) {
    print_summary(context.out, result);
  }
  return result;
}

// Writes the object piece by piece. If the library fails in between, the caller closes it with the
// member "error", so that it stays one valid object.
DiffResult diff_as_json(Context& context, const Store& store, const DiffArguments& arguments) {
  // Checks both names before any output, so that a wrong one gives a plain error object.
  region_bytes(store, arguments.a);
  region_bytes(store, arguments.b);
  Output& out = context.out;
  out.write("{" + members(Json{{"store", store.path()}, {"a", arguments.a}, {"b", arguments.b}}));
  DiffPrinter printer(out, true, arguments.pages);
  DiffResult result;
  try {
    if (!arguments.summary) {
      out.write(arguments.pages ? ",\"pages\":[" : ",\"ranges\":[");
    }
    result = run_library(store, arguments, [&](const ByteRange& range) {
      if (!arguments.summary) {
        printer.add(range);
      }
    });
    printer.finish();
  } catch (const Error&) {
    context.json_prefix = arguments.summary ? "," : "],";
    throw;
  }
  out.write(arguments.summary ? "," : "],");
  out.write(members(totals_json(result)));
  out.write("}\n");
  return result;
}

DiffResult diff_by_parts(Context& context, const Store& store, const DiffArguments& arguments) {
  const ChangeStat stat = change_stat(store, arguments.a, arguments.b);
  const DiffResult result{stat.totals, stat.a_bytes, stat.b_bytes};
  if (context.json) {
    Json object{{"store", store.path()}, {"a", arguments.a}, {"b", arguments.b}};
    object.update(parts_json(stat));
    object.update(totals_json(result));
    context.out.print_json(object);
  } else if (!context.quiet) {
    print_parts(context.out, stat);
    print_summary(context.out, result);
  }
  return result;
}

DiffResult compare(Context& context, const Store& store, const DiffArguments& arguments) {
  if (arguments.stat) return diff_by_parts(context, store, arguments);
  return context.json ? diff_as_json(context, store, arguments)
                      : diff_as_text(context, store, arguments);
}

int run_diff(Context& context, DiffArguments arguments) {
  if (arguments.stat && (arguments.pages || arguments.summary))
    fail(Errc::invalid_argument, "--stat excludes --pages and --summary");
  const Store store = Store::open(arguments.store);
  arguments.a = resolve_version(store, arguments.a);
  arguments.b = resolve_version(store, arguments.b);
  const DiffResult result = compare(context, store, arguments);
  const bool tell = arguments.exit_code || context.quiet;
  return tell && result.different() ? kExitDifferent : kExitOk;
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<DiffArguments>();
  CLI::App* command = add_command(app, context, "diff",
                                  "List the bytes in which two versions differ", arguments->store,
                                  [&context, arguments] { return run_diff(context, *arguments); });
  command->add_option("A", arguments->a, "A branch (its head) or a snapshot")->required();
  command->add_option("B", arguments->b, "Another branch or snapshot")->required();
  command->add_flag("--pages", arguments->pages, "List pages of 4096 bytes instead of bytes");
  command->add_flag("--summary", arguments->summary, "Print only the totals");
  command->add_flag("--stat", arguments->stat, "Print the differences of each part of the region");
  command->add_flag("--exit-code", arguments->exit_code,
                    "Exit with 1 if the versions differ; --quiet implies this");
}

}  // namespace vellum::cli
