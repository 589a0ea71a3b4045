// cli/run/run_summary.hpp: the messages of `vellum run` after its program has ended.
#pragma once

#include "cli/run/run_files.hpp"
#include "cli/terminal/command.hpp"

namespace vellum::cli {

// Prints lines on standard error; with --json, an object on standard output, after the program's
// output.
void print_run_summary(Context& context, const std::string& store, int program_status,
                       const RunOutcome& outcome, const RunReports& reports);

}  // namespace vellum::cli
