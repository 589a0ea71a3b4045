// cli/run_summary.hpp: what `vellum run` says when its program has ended.
#pragma once

#include "cli/command.hpp"
#include "cli/run_files.hpp"

namespace vellum::cli {

// As lines on standard error, as standard output is the program's; or as an object behind that.
void say_what_became(Context& context, const std::string& store, int program_status,
                     const RunOutcome& outcome, const RunReports& reports);

}  // namespace vellum::cli
