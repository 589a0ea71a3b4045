// cli/terminal/retention_arguments.hpp: the rules for the snapshots to keep.
#pragma once

#include <CLI/CLI.hpp>
#include <vellum/retention.hpp>

namespace vellum::cli {

// `policy` must outlive the command.
void add_retention_options(CLI::App& command, RetentionPolicy& policy);

// Whether it has a rule.
bool has_rule(const RetentionPolicy& policy);

}  // namespace vellum::cli
